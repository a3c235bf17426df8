"""Where the rig keeps things: a cache that stays, and one folder per rig that goes when its owner ends."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

RIG_PREFIX = "gcr-"
MARK = "GPUCONSOLE_RIG"
"""Environment variable that every process of a rig carries; its value is the rig's folder."""


class RigUnavailable(Exception):
    """A part cannot exist on this machine; the text says why, and tests skip with it."""


class RigError(Exception):
    """A part should have worked and did not."""


def _cache_folder() -> Path:
    chosen = os.environ.get("GPUCONSOLE_RIG_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "gpuconsole-rig"


def _rigs_folder() -> Path:
    """Give a short path on a real disk: sockets live below it, and so do the engines' layers."""
    chosen = os.environ.get("GPUCONSOLE_RIG_DIR")
    if chosen:
        return Path(chosen)
    return Path("/var/tmp") if os.access("/var/tmp", os.W_OK) else Path(tempfile.gettempdir())


# Read once at import: tests give the program a private XDG_CACHE_HOME later, and the rig's cache must not follow.
CACHE = _cache_folder()
RIGS = _rigs_folder()
PROJECT = Path(__file__).resolve().parents[2]


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock between processes; the kernel releases it when the holder dies."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def tail(path: Path, lines: int = 20) -> str:
    """Give the last lines of a log, for error texts."""
    try:
        return "\n".join(path.read_text(errors="replace").splitlines()[-lines:])
    except OSError as error:
        return f"(no log: {error})"
