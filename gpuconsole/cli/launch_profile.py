"""What ``launch`` is given first: a profile's name or an image; and what a project's profile may take."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from gpuconsole.cli.output import confirm, talk
from gpuconsole.core.errors import Refused
from gpuconsole.launch.profilefile import is_profile_name

if TYPE_CHECKING:
    from gpuconsole.launch.fields import Surroundings
    from gpuconsole.launch.options import LaunchOptions
    from gpuconsole.launch.profiles import ResolvedProfile
    from gpuconsole.launch.spec import LaunchSpec
    from gpuconsole.services.session import Session

_ALIKE = 0.75


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
    """
    from gpuconsole.launch.options import read_options
    from gpuconsole.launch.spec import SpecInvalid
    from gpuconsole.services.profiles import explained, options_with, taken_by

    around = session.surroundings()
    profile = _profile(word, around)
    if profile is None and image is not None:
        raise click.UsageError(f"{word!r} is no profile, and --image is for one; 'gpuconsole profiles' lists them.")
    fields = dict(typed) | ({"image": image or word} if profile is None or image else {})
    options = options_with(profile, fields)
    try:
        spec = read_options(options, around)
    except SpecInvalid as error:
        raise (explained(error, profile) if profile is not None else error) from error
    if profile is None:
        return Asked(spec, options, _name_of(options.image))
    _allow(profile, around, force=typed.get("force", ()), ask=ask)
    return Asked(replace(spec, profile=profile.name, taken=taken_by(profile)), options, profile.name)


def _name_of(image: str) -> str:
    last = image.partition("@")[0].rpartition("/")[2].partition(":")[0]
    return last if is_profile_name(last) else "launch"


def _profile(word: str, around: Surroundings) -> ResolvedProfile | None:
    from gpuconsole.services.profiles import profile_named, profile_sources

    if not is_profile_name(word):
        return None
    sources = profile_sources()
    found = profile_named(word, sources, around.environment)
    if found is None:
        known = [name for source in sources for name in source.profiles]
        if near := difflib.get_close_matches(word, known, n=1, cutoff=_ALIKE):
            talk(f"Note: there is no profile {word}, so it is taken as an image; there is a profile {near[0]}.")
    return found


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
