"""What this user's consoles and watches on this machine tell each other: a small file, read without asking anybody.

In it: what is ahead of each GPU and its processes, who was given which GPU, and the names of containers. Whoever looks
again and again writes it (:mod:`gpuconsole.services.sharedwriting`); ``status`` reads it, since one look tells no trend
and it asks no engine. It lies in the state folder, one for each machine that shares that folder, and is of use as long
as it is fresh: damaged, old, of another boot, of another user or no file at all, it is as if it were not there.
"""

from __future__ import annotations

import os
import stat
import time

from gpuconsole.core.paths import state_folder
from gpuconsole.core.records import dataclass, field, replace
from gpuconsole.core.text import plain_line
from gpuconsole.gpu.state import MemoryState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Any

SCHEMA = "gpuconsole.shared/1"
MOST_BYTES = 256 * 1024
PACE_S = 2.0
"""Between two writes at least; a writer that looks more seldom has its own."""
_PACES = 3
"""What is ahead counts as known for so many paces of its writer."""
_LONGEST_S = 60.0
"""And never longer, however seldom its writer looks."""
_NAMES_S = 3600.0
"""An id never means another container; a name may be changed while nobody looks."""
_SLACK_S = 5.0
"""By the clock of the file's disk, which may be another machine's; what counts is what the file itself says."""
_LONGEST_WORDS = 300
_INFINITE = float("inf")


@dataclass(frozen=True, slots=True)
class Ahead:
    """What the forecaster said of a memory."""

    state: MemoryState
    eta_s: float | None
    """Seconds from now until it is full."""
    rate_bytes_s: float | None
    why: str


@dataclass(frozen=True, slots=True)
class SharedProcess:
    """What is ahead of a process on a GPU."""

    gpu_uuid: str
    pid: int
    started_at: float
    """Seconds since the epoch."""
    ahead: Ahead


@dataclass(frozen=True, slots=True)
class Shared:
    """What the file says."""

    writer: str
    """Names who wrote what is ahead; nobody else has the same."""
    since: float
    """When that one began to watch, in seconds since the machine started: who watched longer knows more."""
    at: float
    """When it was written, in seconds since the machine started."""
    pace_s: float
    """Between two of its looks."""
    fresh: bool
    """What is ahead still counts."""
    gpus: Mapping[str, Ahead] = field(default_factory=dict)
    """By UUID; empty unless it is fresh."""
    processes: tuple[SharedProcess, ...] = ()
    cpu: Mapping[int, tuple[float, float]] = field(default_factory=dict)
    """Pid of a process on a GPU → when it began, and its CPU use at the writer's last look; empty unless fresh."""
    given: Mapping[str, tuple[str, ...]] | None = None
    """UUID of a GPU → names of running containers that were given it; None where that is not known, or not fresh."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Id of a container → its name."""
    names_at: float = 0.0
    """When an engine told them."""


def shared_path() -> str:
    """The file, there or not; folders of a state are shared by machines, and what it says is of one."""
    name = "".join(char for char in os.uname().nodename if char.isalnum() or char in "-.") or "machine"
    return os.path.join(state_folder(), f"shared-{name[:64]}.json")


def since_boot_s() -> float:
    """Seconds since the machine started, suspended or not: the same for all processes, and never set back."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def boot_id() -> str:
    """Names this start of the machine; empty where the kernel does not tell it."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read(64).strip()
    except (OSError, ValueError):
        return ""


def read_shared(path: Path | str | None = None, *, only_fresh: bool = False) -> Shared | None:
    """What the file says; None when there is none that can be believed.

    Args:
        path: The file; None takes the usual one.
        only_fresh: Names of containers, which last longer than the rest, are not needed. What a look costs most here is
            the import that reads the file, and one that lies there from before needs none.
    """
    content = _content(path or shared_path(), at_most_s=_LONGEST_S if only_fresh else _NAMES_S)
    if content is None:
        return None
    from gpuconsole.core.jsontext import parsed

    try:
        return _shared(parsed(content))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
        return None


def _content(path: Path | str, *, at_most_s: float) -> bytes | None:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    try:
        found = os.fstat(handle)
        ours = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o022
        if not ours or found.st_size > MOST_BYTES or time.time() - found.st_mtime > at_most_s + _SLACK_S:
            return None
        pieces = bytearray()
        while len(pieces) <= MOST_BYTES and (piece := os.read(handle, MOST_BYTES)):
            pieces += piece
        return bytes(pieces)
    except OSError:
        return None
    finally:
        os.close(handle)


def _shared(data: Any) -> Shared | None:
    """What is well-formed of it."""
    if data["schema"] != SCHEMA or not data["boot"] or data["boot"] != boot_id():
        return None
    now = since_boot_s()
    at, since, names_at = _number(data["at"]), _number(data["since"]), _number(data["names_at"])
    age, pace_s = now - at, _number(data["pace_s"])
    fresh = 0 <= age <= min(_LONGEST_S, _PACES * max(PACE_S, pace_s))
    names = data["names"].items() if 0 <= now - names_at <= _NAMES_S else ()
    said = Shared(
        writer=str(data["writer"]),
        since=since,
        at=at,
        pace_s=pace_s,
        fresh=fresh,
        names={str(key): plain_line(str(name), limit=200) for key, name in names},
        names_at=names_at,
    )
    if not fresh:
        return said
    gpus = data["gpus"].items()
    given = data["given"]
    return replace(
        said,
        gpus={str(uuid): _ahead(each, age) for uuid, each in gpus},
        processes=tuple(
            SharedProcess(str(uuid), int(pid), _number(started), _ahead(each, age))
            for uuid, pid, started, each in data["processes"]
        ),
        cpu={int(pid): (_number(started), _number(pct)) for pid, started, pct in data.get("cpu", ())},
        given=None
        if given is None
        else {str(uuid): tuple(plain_line(str(name), limit=200) for name in each) for uuid, each in given.items()},
    )


def _ahead(data: Any, age_s: float) -> Ahead:
    state, eta_s, rate, why = data
    return Ahead(
        MemoryState(state),
        None if eta_s is None else max(0.0, _number(eta_s) - age_s),
        None if rate is None else _number(rate),
        plain_line(str(why), limit=_LONGEST_WORDS),
    )


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < _INFINITE:
        raise ValueError("no number")
    return float(value)
