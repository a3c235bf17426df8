"""What is remembered of alarms between consoles: which were dismissed, and for which the user's command ran already.

A small JSON file in the state folder, written under a lock and exchanged in one piece. Damaged, foreign or from a newer
gpuconsole, it is ignored and replaced; where it cannot be written, this console remembers by itself.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpuconsole.core.paths import state_dir
from gpuconsole.gpu.state import MemoryState

FILE = "alarms.json"
_TRIES, _TRY_S = 20, 0.02
_SCHEMA = "gpuconsole.alarms/1"
_MOST_BYTES = 256 * 1024
_KEPT = 300
"""Entries of a kind; the oldest go."""
_UNBOUND_S = 12 * 3600.0
"""What is said of a GPU or the machine, which outlive every run, is forgotten after so long."""
_PROCESS = re.compile(r"process (\d+)/(\d+)/(.*)", re.DOTALL)
_LEEWAY_S = 2
"""The kernel's second of the machine's start wanders with its clock, and the beginnings of processes with it."""


@dataclass(slots=True)
class _Kept:
    dismissed: dict[str, tuple[int, float]] = field(default_factory=dict)
    """Key → severity, and when."""
    told: dict[str, tuple[int, float]] = field(default_factory=dict)
    """The same of those for which the command ran."""


class AlarmFile:
    """Dismissals and told commands of this user on this machine. Safe from any thread and beside other consoles.

    Args:
        path: The file; None takes the usual one.
        kept: Remember in the file; else only as long as this program runs.
    """

    def __init__(self, path: Path | None = None, *, kept: bool = True) -> None:
        self._path = path or state_dir() / FILE
        self._in_file = kept
        self._lock = threading.Lock()
        self._kept = _Kept()
        self._stamp: tuple[int, int, int] | None = None

    def dismissed(self, key: str) -> int:
        """The severity at which a subject was dismissed, by whichever console; 0 for one that was not."""
        with self._lock:
            self._refresh()
            return _severity_of(self._kept.dismissed, key)

    def dismiss(self, keys: Iterable[str], state: MemoryState, now: float) -> None:
        """Subjects are to be silent until their state is worse than ``state``."""

        def change(kept: _Kept) -> None:
            for key in keys:
                kept.dismissed[key] = (max(state.severity, _severity_of(kept.dismissed, key)), now)

        self._change(change, now)

    def heed(self, keys: Iterable[str], now: float) -> None:
        """Subjects are not dismissed any more."""

        def change(kept: _Kept) -> None:
            for key in keys:
                for known in [each for each in kept.dismissed if _same(each, key)]:
                    del kept.dismissed[known]

        self._change(change, now)

    def claim(self, keys: Iterable[str], state: MemoryState, now: float, *, within_s: float) -> bool:
        """Whether nobody ran the command for this yet; from now on somebody did.

        Args:
            keys: What the alarm is about.
            state: Its state: a worse one is something new.
            now: Seconds since the epoch.
            within_s: So long the same is the same.
        """
        free = False

        def change(kept: _Kept) -> None:
            nonlocal free
            wanted = tuple(keys)
            for key in wanted:
                known = next((kept.told[each] for each in kept.told if _same(each, key)), None)
                if known is None or known[0] < state.severity or not 0 <= now - known[1] < within_s:
                    free = True
            if free:
                kept.told.update({key: (state.severity, now) for key in wanted})

        self._change(change, now)
        return free

    # --- the file ---

    def _refresh(self) -> None:
        stamp = self._stamp_now() if self._in_file else None
        if stamp is not None and stamp != self._stamp:
            self._kept, self._stamp = self._read(), stamp

    def _stamp_now(self) -> tuple[int, int, int] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size

    def _read(self) -> _Kept:
        try:
            handle = os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            with open(handle, "rb") as file:
                data = json.loads(file.read(_MOST_BYTES + 1))
        except (OSError, ValueError, RecursionError):
            return _Kept()
        if not isinstance(data, dict) or data.get("schema") != _SCHEMA:
            return _Kept()
        return _Kept(_entries(data.get("dismissed")), _entries(data.get("told")))

    def _change(self, change: Callable[[_Kept], None], now: float) -> None:
        with self._lock, self._alone() if self._in_file else contextlib.nullcontext():
            self._refresh()
            change(self._kept)
            _thin(self._kept, now)
            if not self._in_file:
                return
            with contextlib.suppress(OSError):  # it is remembered here all the same
                self._write()

    def _write(self) -> None:
        text = json.dumps({"schema": _SCHEMA, "dismissed": self._kept.dismissed, "told": self._kept.told})
        fresh = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with open(handle, "w", encoding="utf-8") as file:
            file.write(text)
        fresh.replace(self._path)
        self._stamp = self._stamp_now()

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """While no other console changes the file; where it cannot be locked, it cannot be written either."""
        handle = None
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            name = self._path.with_name(f"{self._path.name}.lock")
            handle = os.open(name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            _lock(handle)
        try:
            yield
        finally:
            if handle is not None:
                os.close(handle)


def _lock(handle: int) -> None:
    """Lock it; a console that was stopped while it wrote holds nobody up."""
    for _ in range(_TRIES):
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        time.sleep(_TRY_S)


def _entries(data: Any) -> dict[str, tuple[int, float]]:
    """What is well-formed of it."""
    if not isinstance(data, dict):
        return {}
    found = {}
    for key, value in data.items():
        if isinstance(value, list) and len(value) == 2 and _is_whole(value[0]) and isinstance(value[1], int | float):
            found[key] = (value[0], float(value[1]))
    return found


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _thin(kept: _Kept, now: float) -> None:
    for entries in (kept.dismissed, kept.told):
        old = [key for key, (_, at) in entries.items() if not key.startswith("process ") and now - at > _UNBOUND_S]
        old += sorted((key for key in entries if key not in old), key=lambda key: entries[key][1])[:-_KEPT]
        for key in old:
            del entries[key]


def _severity_of(entries: dict[str, tuple[int, float]], key: str) -> int:
    if key in entries:
        return entries[key][0]
    return max((severity for known, (severity, _) in entries.items() if _same(known, key)), default=0)


def _same(one: str, other: str) -> bool:
    """Whether two keys mean the same."""
    if one == other:
        return True
    first, second = _PROCESS.fullmatch(one), _PROCESS.fullmatch(other)
    if first is None or second is None or (first[1], first[3]) != (second[1], second[3]):
        return False
    return abs(int(first[2]) - int(second[2])) <= _LEEWAY_S
