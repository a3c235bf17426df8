"""What ``launch`` is given first: a profile's name or an image; and what a project's profile may take."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from gpuconsole.cli.output import confirm, talk
from gpuconsole.core.errors import ConsoleError, EngineUnavailable, NotFound, Refused
from gpuconsole.launch.profilefile import is_profile_name

if TYPE_CHECKING:
    from gpuconsole.launch.fields import Surroundings
    from gpuconsole.launch.options import LaunchOptions
    from gpuconsole.launch.profiles import ResolvedProfile
    from gpuconsole.launch.spec import LaunchSpec
    from gpuconsole.services.session import Session

_ALIKE = 0.6
"""How alike two words are, from 0 to 1, of which one may have been meant for the other."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be launched."""

    spec: LaunchSpec
    options: LaunchOptions
    """The same as it was written, profile and command line together."""
    profile: str
    """The profile's name; of an image a name that a profile of it could have."""


def launch_spec(session: Session, word: str, image: str | None, typed: Mapping[str, Any], *, ask: bool) -> Asked:
    """What was typed, understood.

    Args:
        session: Whose engine it is for.
        word: A profile's name, or an image.
        image: What ``--image`` gives.
        typed: The other options, and the command.
        ask: Ask for what a project's profile takes from outside of its folder; else it is told only.

    Raises:
        SpecInvalid: Fields cannot be used.
        BadFile: The profile has mistakes.
        Refused: What the profile takes was not allowed.
        NotFound: The word is neither a profile nor an image that is here, and almost a profile's name.
    """
    from gpuconsole.launch.options import read_options
    from gpuconsole.launch.spec import SpecInvalid
    from gpuconsole.services.profiles import explained, options_with, taken_by

    around = session.surroundings()
    profile, near = _profile(word, around)
    if profile is None and image is not None:
        told = f" Did you mean the profile {near}?" if near else ""
        raise click.UsageError(
            f"{word!r} is no profile, and --image is for one; 'gpuconsole profiles' lists them.{told}"
        )
    if near:
        _ask_what_was_meant(session, word, near)
    fields = dict(typed) | ({"image": image or word} if profile is None or image else {})
    options = options_with(profile, fields)
    try:
        spec = read_options(options, around)
    except SpecInvalid as error:
        raise (explained(error, profile) if profile is not None else error) from error
    if profile is None:
        if not near and is_profile_name(word):
            _ask_what_was_meant(session, word, near)
        return Asked(spec, options, _name_of(options.image))
    _allow(profile, around, force=typed.get("force", ()), ask=ask)
    return Asked(replace(spec, profile=profile.name, taken=taken_by(profile)), options, profile.name)


def _name_of(image: str) -> str:
    last = image.partition("@")[0].rpartition("/")[2].partition(":")[0]
    return last if is_profile_name(last) else "launch"


def _profile(word: str, around: Surroundings) -> tuple[ResolvedProfile | None, str]:
    """The profile of this name; where there is none, the name of the one that is written most alike, if any."""
    from gpuconsole.services.profiles import profile_named, profile_sources

    if not is_profile_name(word):
        return None, ""
    sources = profile_sources()
    found = profile_named(word, sources, around.environment)
    known = {name.lower(): name for source in sources for name in source.profiles}
    near = difflib.get_close_matches(word.lower(), known, n=1, cutoff=_ALIKE) if found is None else []
    return found, known[near[0]] if near else ""


def _ask_what_was_meant(session: Session, word: str, near: str) -> None:
    """A bare word that is no profile: before anything of that name is pulled, say what else it may have been.

    Args:
        session: Whose engine may have an image of this name.
        word: What was typed.
        near: The profile that is written most alike; empty when none is.

    Raises:
        NotFound: There is no such image here either, and a profile is called almost so.
    """
    if _is_here(session, word):
        if near:
            talk(f"Note: there is no profile {word}, so it is taken as the image; there is a profile {near}.")
    elif near:
        raise NotFound(
            f"There is no profile {word}, and no image {word} here. Did you mean the profile {near}?",
            hint=f"'gpuconsole profiles' lists them. For an image of that name write its tag: {word.lower()}:latest",
        )
    else:
        talk(f"Note: there is no profile {word}, so it is taken as an image, and none of that name is here.")


def _is_here(session: Session, word: str) -> bool:
    """Whether the engine has an image of this name; of one that does not answer it is not asked further."""
    from gpuconsole.images.reference import parse

    try:
        parse(word)
        session.engine.image(word)
    except EngineUnavailable:
        raise
    except (ConsoleError, ValueError):
        return False
    return True


def _allow(profile: ResolvedProfile, around: Surroundings, *, force: tuple[str, ...], ask: bool) -> None:
    """Have the caller allow what the profile takes from outside of its folder, once for as long as that stays so."""
    from gpuconsole.services.profiles import allow, to_be_allowed

    found = to_be_allowed(profile, around, force=force)
    if not found:
        return
    talk(f"The profile {profile.name} of {profile.source.shown}, which came with this folder,")
    for reach in found:
        talk(f"  {reach.words}")
    if not ask:
        return
    question = "Launch it with that, now and as long as this stays so?"
    if not sys.stdin.isatty():
        raise Refused(
            f"Not launched without an answer to: {question}",
            hint="Launch it once in a terminal and answer there; or pass --force outside-project.",
        )
    confirm(question, assume_yes=False)
    allow(profile, found)
