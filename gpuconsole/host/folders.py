"""What a path of this machine is: there or not, readable, whose, on what kind of file system."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

_ESCAPED = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True, slots=True)
class FolderFacts:
    """One path. What cannot be told is None."""

    exists: bool | None = None
    readable: bool | None = None
    """By this process, as far as a folder lets itself be entered too."""
    owner_uid: int | None = None
    filesystem: str | None = None
    """``ext4``, ``nfs4`` …"""
    real: str | None = None
    """Where its links lead in the end."""


def look(path: str, *, mounts: tuple[tuple[str, str], ...] | None = None) -> FolderFacts:
    """What ``path`` is.

    Args:
        path: From the root.
        mounts: What :func:`mount_table` gave, to read it once for many paths.
    """
    try:
        real = os.path.realpath(path)
    except (OSError, ValueError):
        real = path
    kind = filesystem_of(real, mount_table() if mounts is None else mounts)
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return FolderFacts(exists=False, filesystem=kind)
    except PermissionError:
        return FolderFacts(exists=None, readable=False, filesystem=kind, real=real)
    except (OSError, ValueError):
        return FolderFacts(filesystem=kind)
    wanted = os.R_OK | os.X_OK if os.path.isdir(path) else os.R_OK
    return FolderFacts(True, os.access(path, wanted), found.st_uid, kind, real)


def mount_table(root: Path = Path("/")) -> tuple[tuple[str, str], ...]:
    """Mount point and kind of each file system, in the order they were mounted; empty when it cannot be read."""
    try:
        text = (root / "proc/self/mountinfo").read_text(errors="replace")
    except OSError:
        return ()
    found = []
    for line in text.splitlines():
        before, dash, after = line.partition(" - ")
        words = before.split()
        if dash and len(words) > 4 and after.split():
            found.append((_ESCAPED.sub(lambda match: chr(int(match[1], 8)), words[4]), after.split()[0]))
    return tuple(found)


def filesystem_of(path: str, mounts: tuple[tuple[str, str], ...]) -> str | None:
    """The kind of file system a path lies on: that of the longest mount point above it, the last one mounted there."""
    best, kind = -1, None
    wanted = os.path.normpath(path)
    for point, name in mounts:
        above = point == "/" or wanted == point or wanted.startswith(f"{point}/")
        if above and len(point) >= best:
            best, kind = len(point), name
    return kind


def selinux_enforced(root: Path = Path("/")) -> bool:
    """The kernel enforces SELinux."""
    try:
        return (root / "sys/fs/selinux/enforce").read_text().strip() == "1"
    except OSError:
        return False
