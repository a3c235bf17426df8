"""A running container, or what was typed, as a profile: written into a file whose other lines stay as they are."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from gpuconsole.core.errors import BadFile, Conflict, UsageError
from gpuconsole.core.files import write_whole
from gpuconsole.core.text import plain_line
from gpuconsole.launch.options import LaunchOptions, read_options
from gpuconsole.launch.profilefile import FILE_NAME, ProfileSource, is_profile_name, read_profiles
from gpuconsole.launch.profiles import from_folder
from gpuconsole.launch.profiletext import profile_table
from gpuconsole.launch.references import References
from gpuconsole.launch.tomltext import table_text, with_table
from gpuconsole.services.containeroptions import options_of
from gpuconsole.services.imagenames import local_image
from gpuconsole.services.profiles import project_file, user_file
from gpuconsole.services.secrets import mask_arguments, mask_text, mask_value
from gpuconsole.services.session import Session
from gpuconsole.services.shownsecrets import references_of_shell

_PATHS = ("volumes", "mounts", "env_files", "secrets")


@dataclass(frozen=True, slots=True)
class Saved:
    """A profile that was written."""

    name: str
    path: Path
    shown: str
    text: str
    """Its table, as it stands in the file."""
    notes: tuple[str, ...] = ()
    """What could not be written as it is."""


def save_profile(session: Session, name: str, container: str, *, to_user: bool, replace: bool) -> Saved:
    """Write the profile ``name`` that launches ``container`` again.

    Args:
        session: Whose engine.
        name: Of the profile.
        container: Name or id.
        to_user: Into the user's own file, else into the project's, which is made where there is none.
        replace: A profile of that name may be replaced.

    Raises:
        UsageError: The name cannot be one.
        NotFound: There is no such container.
        Conflict: There is such a profile already.
        BadFile: The file is no TOML, or cannot be written.
    """
    place = _place(name, to_user=to_user, replace=replace)
    found = session.engine.container(container)
    options, notes = options_of(found, local_image(session.engine, found.image_id))
    return _write(place, name, options, notes, references_of_shell(session.surroundings().environment))


def save_options(
    session: Session,
    name: str,
    options: LaunchOptions,
    *,
    to_user: bool,
    replace: bool,
    taken: Iterable[str] = (),
) -> Saved:
    """Write the profile ``name`` that launches what ``options`` say; a secret is left to the shell that launches it.

    Args:
        session: Whose engine.
        name: Of the profile.
        options: As they were typed in the folder this program works in.
        to_user: Into the user's own file, else into the project's, which is made where there is none.
        replace: A profile of that name may be replaced.
        taken: Variables of the shell whose values a profile has put into the options.

    Raises:
        UsageError: The name cannot be one.
        SpecInvalid: Options cannot be used.
        Conflict: There is such a profile already.
        BadFile: The file is no TOML, or cannot be written.
    """
    place = _place(name, to_user=to_user, replace=replace)
    around = session.surroundings()
    read_options(options, around)
    kept, notes = without_secrets(options)
    hidden = references_of_shell(around.environment, taken)
    return _write(place, name, _from_root(kept, Path(around.cwd)), notes, hidden)


@dataclass(frozen=True, slots=True)
class _Place:
    """The file a profile goes into, as it is."""

    path: Path
    shown: str
    text: str
    existing: ProfileSource


def _place(name: str, *, to_user: bool, replace: bool) -> _Place:
    if not is_profile_name(name):
        raise UsageError(
            f"{plain_line(repr(name), limit=60)} cannot be a profile's name.",
            hint="Use letters, digits, _ and -, and begin with a letter or digit.",
        )
    path = user_file() if to_user else project_file() or Path.cwd() / FILE_NAME
    shown = f"./{FILE_NAME}" if path.parent == Path.cwd() else plain_line(str(path))
    before = _text(path, shown)
    existing = read_profiles(path, before, shown=shown, of_project=not to_user)
    if not replace and (name in existing.profiles or existing.mistakes_of(name)):
        raise Conflict(f"{shown} has a profile {name} already.", hint="Choose another name, or pass --replace.")
    return _Place(path, shown, before, existing)


def _write(place: _Place, name: str, options: LaunchOptions, notes: tuple[str, ...], hidden: References) -> Saved:
    path, shown, existing = place.path, place.shown, place.existing
    options = _shortened(options, path.parent)
    table = table_text(f"profiles.{name}", profile_table(options, hidden))
    if table != table_text(f"profiles.{name}", profile_table(options)):
        notes = (*notes, "A value that this shell has as a secret is not written: it is taken from the shell.")
    text = with_table(place.text, f"profiles.{name}", table)
    written = read_profiles(path, text, shown=shown, of_project=existing.of_project)
    if written.mistakes_of(name) or set(existing.profiles) - set(written.profiles):
        told = "; ".join(map(str, written.mistakes_of(name))) or "another profile in it would be lost"
        raise BadFile(
            f"{shown} could not take the profile: {told}.",
            hint="Write it by hand, as 'gpuconsole profiles --help' shows.",
            detail=table,
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text)
    except OSError as error:
        raise BadFile(
            f"{shown} cannot be written: {error.strerror}.", hint="Make its folder writable, or pass --user."
        ) from error
    return Saved(name, path, shown, table, notes)


def _text(path: Path, shown: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
        raise BadFile(f"{shown} cannot be read: {why}.", hint="Correct it, or move it away.") from error


def _shortened(options: LaunchOptions, folder: Path) -> LaunchOptions:
    """With paths from the file's folder, and from the home, so that the profile serves others as well."""

    def volume(text: str) -> str:
        source, colon, rest = text.partition(":")
        return f"{_short(source, folder)}:{rest}" if colon and source.startswith("/") else text

    def secret(text: str) -> str:
        name, _, path = text.partition("=")
        return f"{name}={_short(path, folder)}"

    return replace(
        options,
        volumes=tuple(map(volume, options.volumes)),
        secrets=tuple(map(secret, options.secrets)),
        env_files=tuple(_short(path, folder) for path in options.env_files),
    )


def _short(path: str, folder: Path) -> str:
    home = os.path.expanduser("~")
    if path == str(folder):
        return "."
    if path.startswith(f"{folder}/") and str(folder) != "/":
        return f"./{os.path.relpath(path, folder)}"
    return f"~{path[len(home) :]}" if home != "/" and path.startswith(f"{home}/") else path


def _from_root(options: LaunchOptions, folder: Path) -> LaunchOptions:
    """With relative paths, which were written in ``folder``, from the root."""
    moved: dict[str, Any] = {
        key: tuple(from_folder(key, text, folder) for text in getattr(options, key)) for key in _PATHS
    }
    return replace(options, **moved)


def without_secrets(options: LaunchOptions) -> tuple[LaunchOptions, tuple[str, ...]]:
    """The options as they may be written to a file that others read, and what is left open in them."""
    kept, notes = without_secret_values(options), []
    for before, after in zip(options.environment, kept.environment, strict=True):
        if before != after:
            notes.append(f"{after} holds a secret: it is taken from the shell that launches the profile.")
    open_labels = tuple(text for text in kept.labels if _is_open(*text.partition("=")))
    if open_labels != kept.labels:
        notes.append("A label with a secret in it is left out.")
    changed: dict[str, Any] = {"labels": open_labels}
    if mask_arguments(kept.command) != kept.command:
        notes.append("The command has a secret in it and is left out; put that into a variable, and write the command.")
        changed["command"] = ()
    for field in fields(kept):
        text = getattr(kept, field.name)
        if isinstance(text, str) and mask_text(text) != text:
            notes.append(f"The {field.name.replace('_', ' ')} has a secret in it and is left out.")
            changed[field.name] = "" if field.name == "image" else None
    if kept.force:
        notes.append(f"Give --force {' --force '.join(kept.force)} when it is launched: no file says that for anybody.")
    return replace(kept, **changed), tuple(notes)


def _is_open(name: str, equals: str, value: str) -> bool:
    return not equals or mask_value(name, value) == value


def without_secret_values(options: LaunchOptions) -> LaunchOptions:
    """The options with variables that look like secrets taken from the shell, by name."""
    environment = tuple(
        name if equals and mask_value(name, value) != value else text
        for text in options.environment
        for name, equals, value in (text.partition("="),)
    )
    return replace(options, environment=environment)


def harmless(options: LaunchOptions) -> LaunchOptions:
    """The options as they may be shown: secrets in labels and in the command masked as well."""
    pairs = ((text, *text.partition("=")) for text in options.labels)
    shown = tuple(f"{name}={mask_value(name, value)}" if equals else text for text, name, equals, value in pairs)
    return replace(without_secret_values(options), labels=shown, command=tuple(mask_arguments(options.command)))
