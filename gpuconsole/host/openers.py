"""Which processes have a GPU's device open: whoever holds its memory does, listed by the driver or not."""

from __future__ import annotations

import os
import time

from gpuconsole.core.records import dataclass
from gpuconsole.core.text import plain_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

_NODE = "/dev/nvidia"
_LONGEST_S = 0.05
"""On a machine with very many open files the search is given up, and nothing is told rather than half of it."""
_FRESH_S = 15.0
_OURS = frozenset(
    {"nvidia-persiste", "nv-hostengine", "nvidia-smi", "nvtop", "nvitop", "dcgm-exporter", "nvidia-powerd"}
)
"""Programs that only look, as the kernel cuts their names."""


@dataclass(frozen=True, slots=True)
class Opener:
    """A process that has GPUs open."""

    pid: int
    name: str
    minors: frozenset[int]
    """N of each ``/dev/nvidiaN``."""


class Openers:
    """Searches processes for open GPUs, at most every few seconds.

    Only root sees the files of other users' processes; of the others nothing is told.

    Args:
        proc: Where the process file system is mounted.
    """

    def __init__(self, proc: Path | str) -> None:
        self._proc = str(proc)
        self._found: tuple[Opener, ...] = ()
        self._looked_at: float | None = None

    def of(self, minor: int, *, listed: Collection[int]) -> tuple[Opener, ...]:
        """The processes that have ``/dev/nvidia<minor>`` open, beside those ``listed``, ourselves and monitors."""
        now = time.monotonic()
        if self._looked_at is None or now - self._looked_at >= _FRESH_S:
            self._looked_at, self._found = now, self._search(now + _LONGEST_S)
        return tuple(one for one in self._found if minor in one.minors and one.pid not in listed)

    def _search(self, until: float) -> tuple[Opener, ...]:
        found = []
        for name in sorted(filter(str.isdecimal, _names(self._proc)), key=int, reverse=True):
            if time.monotonic() > until:
                return ()
            minors = frozenset(_minors(f"{self._proc}/{name}/fd"))
            if not minors or int(name) == os.getpid():
                continue
            program = _program(f"{self._proc}/{name}")
            if program not in _OURS:
                found.append(Opener(int(name), program, minors))
        return tuple(sorted(found, key=lambda one: one.pid))


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:  # it has ended, or belongs to somebody else
        return []


def _minors(folder: str) -> set[int]:
    found = set()
    for name in _names(folder):
        try:
            opened = os.readlink(f"{folder}/{name}")
        except OSError:
            continue
        number = opened.removeprefix(_NODE)
        if number != opened and number.isdecimal():
            found.add(int(number))
    return found


def _program(process: str) -> str:
    try:
        with open(f"{process}/comm", "rb") as file:
            return plain_line(file.read(), limit=32) or "?"
    except OSError:
        return "?"
