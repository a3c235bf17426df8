"""A profile to begin a launch with that is then changed: what it gives, and what of it is still there to be allowed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from gpuconsole.core.text import plain_line
from gpuconsole.launch.profilefile import is_profile_name
from gpuconsole.launch.references import NO_REFERENCES, References
from gpuconsole.services.profilereach import Reach, reaches
from gpuconsole.services.profiles import (
    allow,
    list_profiles,
    no_profile,
    options_with,
    profile_named,
    profile_sources,
    taken_by,
    to_be_allowed,
)
from gpuconsole.services.shownsecrets import references_of_shell

if TYPE_CHECKING:
    from gpuconsole.launch.options import LaunchOptions
    from gpuconsole.launch.profiles import Layer, ResolvedProfile
    from gpuconsole.services.profiles import Listed
    from gpuconsole.services.session import Session


@dataclass(frozen=True, slots=True)
class Filling:
    """A profile that was chosen."""

    profile: ResolvedProfile
    options: LaunchOptions
    """What it gives; the image is empty where it names none."""
    hidden: References = NO_REFERENCES
    """Which values in it are secrets of the shell: they are neither shown nor kept."""

    @property
    def name(self) -> str:
        """The profile's name."""
        return self.profile.name

    @property
    def taken(self) -> frozenset[str]:
        """Variables of the shell whose values are in it."""
        return taken_by(self.profile)


def profiles_to_choose(session: Session) -> tuple[tuple[str, str], ...]:
    """Name and description of every profile that the project and the user have.

    Raises:
        BadFile: A file of profiles cannot be read, or is not TOML.
        NotFound: The folder this program works in is gone.
    """
    listed = list_profiles(profile_sources(), session.surroundings())
    return tuple((each.name, _words(each)) for each in listed if not each.hidden)


def _words(each: Listed) -> str:
    if each.problems or each.options is None:
        count = len(each.problems)
        return f"{count} mistake{'s' if count > 1 else ''}: {plain_line(each.problems[0], limit=60)}" if count else ""
    parts = (each.description, each.options.kind, plain_line(each.options.image), each.source.shown)
    return ", ".join(part for part in parts if part)


def fill_from(session: Session, name: str) -> Filling:
    """The profile of this name, with all that it extends.

    Raises:
        NotFound: There is none, or the folder this program works in is gone.
        BadFile: It has mistakes; all of them are named.
    """
    around, sources = session.surroundings(), profile_sources()
    profile = profile_named(name, sources, around.environment) if is_profile_name(name) else None
    if profile is None:
        raise no_profile(name, sources)
    hidden = references_of_shell(around.environment, taken_by(profile))
    return Filling(profile, options_with(profile, {}), hidden)


def to_be_asked(session: Session, filling: Filling, options: LaunchOptions) -> tuple[Reach, ...]:
    """What the caller has to allow before ``options``, which began as the profile, are launched.

    What was taken out of them need not be allowed; empty when there is nothing, or when it was allowed before.

    Raises:
        Refused: It would hand over this machine or the caller's account, and that was not forced.
    """
    profile = filling.profile
    left = replace(profile, layers=tuple(_left(layer, filling.options, options) for layer in profile.layers))
    return to_be_allowed(left, session.surroundings(), force=options.force)


def _left(layer: Layer, given: LaunchOptions, options: LaunchOptions) -> Layer:
    """The layer without what it gave to ``given`` and ``options`` have no more."""
    fields: dict[str, Any] = {}
    for name, value in layer.fields.items():
        before, now = getattr(given, name), getattr(options, name)
        if isinstance(value, tuple):
            fields[name] = tuple(item for item in value if item in now or item not in before)
        elif now == before or value != before:
            fields[name] = value
    return replace(layer, fields=fields)


def allowed(session: Session, filling: Filling, found: tuple[Reach, ...]) -> None:
    """The caller allowed this; it is remembered where it is all that the profile takes, else for this launch only."""
    if set(found) == set(reaches(filling.profile, session.surroundings())):
        allow(filling.profile, found)
