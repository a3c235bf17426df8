"""Launch profiles: where they are, which one a word means, and what was allowed to a project's."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpuconsole.core.config import nearest
from gpuconsole.core.errors import BadFile, NotFound, Refused
from gpuconsole.core.paths import config_dir, state_dir
from gpuconsole.core.store import FILE, Store
from gpuconsole.core.text import plain_line
from gpuconsole.launch.fields import Surroundings
from gpuconsole.launch.layering import overlay
from gpuconsole.launch.options import LaunchOptions, read_options
from gpuconsole.launch.profilefile import FILE_NAME, MOST_BYTES, BadProfile, Mistake, ProfileSource, read_profiles
from gpuconsole.launch.profiles import ResolvedProfile, find_source, resolve
from gpuconsole.launch.spec import FieldProblem, Force, SpecInvalid
from gpuconsole.services.profilereach import Reach, reaches, refusal

_SCHEMA = """
CREATE TABLE IF NOT EXISTS profile_grants (file TEXT, profile TEXT, granted TEXT NOT NULL, at REAL NOT NULL,
    PRIMARY KEY (file, profile));
"""


def user_file() -> Path:
    """The user's own file of profiles, whether it is there or not."""
    return config_dir() / FILE_NAME


def project_file(folder: Path | None = None) -> Path | None:
    """The project's file: in ``folder``, else the nearest one above that belongs to the caller or to root.

    Raises:
        NotFound: The folder this program works in is gone.
        BadFile: What is called so in ``folder`` is no file.
    """
    try:
        folder = folder or Path.cwd()
    except FileNotFoundError as error:
        raise NotFound("The folder you are in is gone.", hint="Go to one that is there: cd ~") from error
    if _is_there(folder / FILE_NAME):
        return folder / FILE_NAME
    for above in folder.parents:
        path = above / FILE_NAME
        with contextlib.suppress(OSError):
            if stat.S_ISREG(path.stat().st_mode) and {path.stat().st_uid, path.lstat().st_uid} <= {0, os.geteuid()}:
                return path
    return None


def profile_sources(folder: Path | None = None) -> tuple[ProfileSource, ...]:
    """The project's profiles, then the user's; files that are not there are left out.

    Raises:
        BadFile: A file cannot be read, or is not TOML.
    """
    project, own = project_file(folder), user_file()
    found = [] if project is None or project == own else [_read(project, of_project=True)]
    return tuple([*found, *([_read(own, of_project=False)] if _is_there(own) else [])])


def _is_there(path: Path) -> bool:
    """Whether a file of profiles is there.

    Raises:
        BadFile: Something else is: it is not opened, since a pipe would be waited for.
    """
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        if not path.is_symlink():
            return False
        what = "is a link that leads nowhere"
    except OSError:
        return False
    else:
        if stat.S_ISREG(mode):
            return True
        what = "is a folder" if stat.S_ISDIR(mode) else "is a pipe" if stat.S_ISFIFO(mode) else "is a device or socket"
    raise BadFile(
        f"{_shown(path)} {what}, and no file of profiles.", hint="Move it away, or write a file in its place."
    )


def _shown(path: Path) -> str:
    with contextlib.suppress(OSError):
        if path.parent == Path.cwd():
            return f"./{path.name}"
    return plain_line(str(path))


def _read(path: Path, *, of_project: bool) -> ProfileSource:
    shown = _shown(path)
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise BadFile(f"{shown} is above 1 MiB, which no file of profiles is.", hint="Name another, or shorten it.")
        text = content.decode()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
        raise BadFile(f"{shown} cannot be read: {why}.", hint="Correct it, or move it away.") from error
    return read_profiles(path, text, shown=shown, of_project=of_project)


def profile_named(
    word: str, sources: Iterable[ProfileSource], environment: Mapping[str, str]
) -> ResolvedProfile | None:
    """The profile of this name; None when there is none.

    Raises:
        BadFile: It has mistakes; all of them are named.
    """
    known = tuple(sources)
    return resolve(word, known, environment) if find_source(word, known) is not None else None


def options_with(profile: ResolvedProfile | None, typed: Mapping[str, Any]) -> LaunchOptions:
    """The options of a profile, with those that were typed over them."""
    fields = overlay(profile.fields if profile is not None else {}, typed)
    return LaunchOptions(**({"image": ""} | fields))


def taken_by(profile: ResolvedProfile) -> frozenset[str]:
    """Variables of the shell whose values a profile has put in."""
    return frozenset(variable for layer in profile.layers for variable in layer.used)


def explained(error: SpecInvalid, profile: ResolvedProfile) -> SpecInvalid:
    """The problems of a launch with the places in the profile's file that they come from."""
    return SpecInvalid([_placed(problem, profile) for problem in error.problems])


def _placed(problem: FieldProblem, profile: ResolvedProfile) -> FieldProblem:
    if problem.field == "IMAGE" and "image" not in profile.fields:
        told = f'the profile {profile.name} names none; write image = "…" in {profile.source.shown}, or give --image'
        return FieldProblem("IMAGE", told)
    place = profile.place(problem.field)
    return FieldProblem(problem.field, f"{problem.message} ({place})", problem.exit_code) if place else problem


@dataclass(frozen=True, slots=True)
class Listed:
    """A profile as a list shows it."""

    name: str
    source: ProfileSource
    options: LaunchOptions | None = None
    """What it amounts to; None when it has mistakes."""
    description: str | None = None
    problems: tuple[str, ...] = ()
    """What is wrong with it."""
    reach: tuple[Reach, ...] = ()
    """What it takes from outside of the project."""
    hidden: bool = False
    """The project has another one of this name, which is meant."""
    taken: frozenset[str] = frozenset()
    """Variables of the shell whose values are in it."""

    @property
    def abstract(self) -> bool:
        """It names no image: others extend it."""
        return self.options is not None and not self.options.image

    @property
    def refused(self) -> str:
        """Why a launch of it is refused before anything is asked; empty when it is not, or cannot come to that."""
        return "" if self.problems or self.hidden or self.abstract else refusal(self.reach)


def list_profiles(sources: Iterable[ProfileSource], around: Surroundings) -> tuple[Listed, ...]:
    """All profiles, each one judged."""
    known = tuple(sources)
    found: list[Listed] = []
    seen: set[str] = set()
    for position, source in enumerate(known):
        names = dict.fromkeys((*source.profiles, *(each.profile for each in source.mistakes if each.profile)))
        found += [_judged(name, source, known[position:], around, hidden=name in seen) for name in names]
        seen |= set(names)
    return tuple(found)


def one_profile(name: str, around: Surroundings) -> Listed:
    """The profile of this name, judged.

    Raises:
        NotFound: There is none.
        BadFile: It, or one it extends, has mistakes.
    """
    sources = profile_sources()
    source = find_source(name, sources)
    if source is None:
        raise no_profile(name, sources)
    resolve(name, sources, around.environment)
    return _judged(name, source, sources, around, hidden=False)


class NoProfile(NotFound):
    """There is no profile of a name."""


def no_profile(name: str, sources: Iterable[ProfileSource]) -> NoProfile:
    """What tells that there is none of this name, and which is near."""
    near = nearest(name, [each for one in sources for each in one.profiles])
    return NoProfile(
        f"There is no profile {plain_line(name, limit=60)}{near if near.endswith('?') else f'{near}.'}",
        hint="'gpuconsole profiles' lists them; 'gpuconsole profiles save NAME CONTAINER' makes one.",
    )


def _judged(
    name: str, source: ProfileSource, sources: tuple[ProfileSource, ...], around: Surroundings, *, hidden: bool
) -> Listed:
    try:
        profile = resolve(name, sources, around.environment)
    except BadProfile as error:
        return Listed(name, source, problems=tuple(map(str, error.mistakes)), hidden=hidden)
    options = options_with(profile, {})
    taken = taken_by(profile)
    listed = Listed(name, source, options, profile.description, (), reaches(profile, around), hidden, taken)
    if not options.image:
        return listed
    try:
        read_options(options, around)
    except SpecInvalid as error:
        told = explained(error, profile).problems
        return Listed(
            name, source, options, profile.description,
            tuple(f"{each.field}: {each.message}" for each in told), listed.reach, hidden, taken,
        )  # fmt: skip
    return listed


def file_mistakes(sources: Iterable[ProfileSource]) -> tuple[tuple[ProfileSource, Mistake], ...]:
    """What is wrong with files outside of any profile."""
    return tuple((source, each) for source in sources for each in source.mistakes if each.profile is None)


# What was allowed


def to_be_allowed(profile: ResolvedProfile, around: Surroundings, *, force: Iterable[str]) -> tuple[Reach, ...]:
    """What the caller has to allow before this profile is launched; empty when nothing, or when it was allowed before.

    Raises:
        Refused: It would hand over this machine or the caller's account, and that was not forced.
    """
    if Force.OUTSIDE_PROJECT in force:
        return ()
    found = reaches(profile, around)
    if told := refusal(found):
        raise Refused(
            f"The profile {profile.name} of {profile.source.shown} {told}.",
            hint="Take it out of the file, or put the profile into your own: "
            f"{plain_line(str(user_file()))}. To do it all the same: --force {Force.OUTSIDE_PROJECT}.",
        )
    return () if not found or _granted(profile) == _mark(found) else found


def allow(profile: ResolvedProfile, found: Iterable[Reach]) -> None:
    """Remember that the caller allowed this; where nothing can be remembered, they are asked again."""
    with contextlib.suppress(BadFile):
        store = Store(_SCHEMA)
        with store.writing() as connection:
            row = (*_key(profile), _mark(found), time.time())
            connection.execute("INSERT OR REPLACE INTO profile_grants VALUES (?, ?, ?, ?)", row)
        store.close()


def _granted(profile: ResolvedProfile) -> str | None:
    if not (state_dir() / FILE).exists():
        return None  # opening it would make it, and a dry run makes nothing
    try:
        store = Store(_SCHEMA)
        rows = store.rows("SELECT granted FROM profile_grants WHERE file = ? AND profile = ?", _key(profile))
        store.close()
    except BadFile:
        return None
    return str(rows[0]["granted"]) if rows else None


def _key(profile: ResolvedProfile) -> tuple[str, str]:
    return os.path.realpath(profile.source.path), profile.name


def _mark(found: Iterable[Reach]) -> str:
    words = "\n".join(sorted(reach.words for reach in found))
    return hashlib.sha256(words.encode(errors="replace")).hexdigest()
