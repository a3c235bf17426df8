"""A running container as a profile, written into a file whose other lines stay as they are."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

from gpuconsole.core.errors import BadFile, Conflict, UsageError
from gpuconsole.core.files import write_whole
from gpuconsole.core.text import plain_line
from gpuconsole.launch.options import LaunchOptions
from gpuconsole.launch.profilefile import FILE_NAME, is_profile_name, read_profiles
from gpuconsole.launch.profiletext import profile_table
from gpuconsole.launch.tomltext import table_text, with_table
from gpuconsole.services.containeroptions import options_of
from gpuconsole.services.imagenames import local_image
from gpuconsole.services.profiles import project_file, user_file
from gpuconsole.services.secrets import mask_arguments, mask_value
from gpuconsole.services.session import Session


@dataclass(frozen=True, slots=True)
class Saved:
    """A profile that was written."""

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
    found = session.engine.container(container)
    options, notes = options_of(found, local_image(session.engine, found.image_id))
    table = table_text(f"profiles.{name}", profile_table(_shortened(options, path.parent)))
    text = with_table(before, f"profiles.{name}", table)
    written = read_profiles(path, text, shown=shown, of_project=not to_user)
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
    return Saved(path, shown, table, notes)


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
