"""Paths that begin with what was typed."""

from __future__ import annotations

import itertools
import os
from typing import TYPE_CHECKING

from gpuconsole.core.text import plain_line

if TYPE_CHECKING:
    from gpuconsole.launch.fields import Surroundings

_LOOKED_AT = 20_000
"""Entries of a folder that are looked at; a folder of a million files must not keep anybody waiting."""


def complete_path(text: str, around: Surroundings, *, at_most: int = 100) -> tuple[str, ...]:
    """The files and folders that ``text`` can become, folders first and with a slash at their end.

    A name without any slash is taken as one in the current folder and written ``./name``, since a bare word names a
    volume. Names that cannot be mounted or would disguise themselves are left out. It reads the folder, which can hang.
    """
    if text == "~":
        return ("~/",)
    base, slash, start = text.rpartition("/")
    base = f"{base}/" if slash else "./"
    folder = around.absolute(base)
    found: list[tuple[bool, str]] = []
    try:
        with os.scandir(folder) as entries:
            found.extend(
                (not _is_folder(entry), entry.name)
                for entry in itertools.islice(entries, _LOOKED_AT)
                if _fits(entry.name, start)
            )
    except OSError:
        return ()
    found.sort()
    return tuple(f"{base}{name}{'' if is_file else '/'}" for is_file, name in found[:at_most])


def _fits(name: str, start: str) -> bool:
    if name.startswith(".") and not start.startswith("."):
        return False
    return name.startswith(start) and ":" not in name and plain_line(name) == name


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False
