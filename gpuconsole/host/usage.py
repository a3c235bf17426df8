"""CPU and memory of a container on this machine, read from its control group: two small files instead of a request.

The figures are those of ``docker stats``: memory without the page cache that can be reclaimed (``inactive_file``), CPU
as the difference of the group's CPU time over the time between two looks, 100 being one core. No root is needed.

Files that are read again and again, as a data set is in each epoch, become active page cache (``active_file``), which
``docker stats`` counts. The kernel takes it back all the same, so memory that is kept is told without it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from gpuconsole.engine.model import Usage

_NO_LIMIT = 1 << 60
"""Version 1 writes a number near 2^63 when there is no limit."""
_LASTING_S = 5.0
"""So long a limit and a number of processes are believed: reading them at each look would cost as much as the rest."""
_LONGEST = 65536
"""No such file has more bytes, and the kernel gives them at once."""


@dataclass(frozen=True, slots=True)
class _Look:
    cpu_s: float
    at: float


@dataclass(frozen=True, slots=True)
class _Lasting:
    """What changes seldom."""

    at: float
    limit: int | None
    pids: int | None


@dataclass(frozen=True, slots=True)
class _Place:
    """The files of one container's group."""

    pid: int
    """Of the main process they were found by."""
    cpu: str
    memory: str
    memory_stat: str
    cache: str
    """Name of the memory that can be reclaimed, in ``memory_stat``."""
    active: str
    """The same of files that were read more than once."""
    limit: str
    pids: str | None
    """None where they are not counted."""


class UsageReader:
    """Reads control groups, and remembers the last look at each for the CPU share.

    Args:
        root: Where the machine's file system is.
    """

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root
        self._looks: dict[str, _Look] = {}
        self._places: dict[str, _Place] = {}
        """Where the files of a container are: found once, since that takes longer than reading them."""
        self._lasting: dict[str, _Lasting] = {}

    def read(self, pids: Mapping[str, int]) -> dict[str, Usage]:
        """Usage of each container id → main process; those that cannot be read are left out."""
        found = {}
        for container_id, pid in pids.items():
            place = self._places.get(container_id)
            if place is None or place.pid != pid:
                self._forget(container_id)
                place = self._find(container_id, pid)
            usage = self._usage(container_id, place) if place is not None else None
            if place is not None and usage is not None:
                self._places[container_id] = place
                found[container_id] = usage
            else:
                self._forget(container_id)
        for gone in self._looks.keys() - pids.keys():
            del self._looks[gone]
            self._forget(gone)
        return found

    def _forget(self, container_id: str) -> None:
        self._places.pop(container_id, None)
        self._lasting.pop(container_id, None)

    def _find(self, container_id: str, pid: int) -> _Place | None:
        groups = _groups(_text(self._root / f"proc/{pid}/cgroup"), container_id)
        unified = groups.get("")
        mount = self._root / "sys/fs/cgroup"
        if unified is not None and (mount / "cgroup.controllers").exists():
            group = str(mount / unified)
            return _Place(
                pid=pid,
                cpu=f"{group}/cpu.stat",
                memory=f"{group}/memory.current",
                memory_stat=f"{group}/memory.stat",
                cache="inactive_file",
                active="active_file",
                limit=f"{group}/memory.max",
                pids=f"{group}/pids.current",
            )
        if "memory" in groups and "cpuacct" in groups:
            group = str(mount / "memory" / groups["memory"])
            return _Place(
                pid=pid,
                cpu=str(mount / "cpuacct" / groups["cpuacct"] / "cpuacct.usage"),
                memory=f"{group}/memory.usage_in_bytes",
                memory_stat=f"{group}/memory.stat",
                cache="total_inactive_file",
                active="total_active_file",
                limit=f"{group}/memory.limit_in_bytes",
                pids=None,
            )
        return None

    def _usage(self, container_id: str, place: _Place) -> Usage | None:
        memory, cpu_s = _number(_text(place.memory)), _cpu_s(_text(place.cpu))
        if memory is None or cpu_s is None:
            return None
        stat = _text(place.memory_stat)
        cache, active = _field(stat, place.cache) or 0, _field(stat, place.active)
        now = time.monotonic()
        lasting = self._lasting.get(container_id)
        if lasting is None or now - lasting.at >= _LASTING_S:
            limit, pids = _number(_text(place.limit)), _number(_text(place.pids)) if place.pids else None
            lasting = self._lasting[container_id] = _Lasting(
                now, None if limit is None or limit >= _NO_LIMIT else limit, pids
            )
        before = self._looks.get(container_id)
        self._looks[container_id] = _Look(cpu_s, now)
        share = None
        # A group whose CPU time went back was made anew: the container was restarted between the looks.
        if before is not None and now > before.at and cpu_s >= before.cpu_s:
            share = 100 * (cpu_s - before.cpu_s) / (now - before.at)
        return Usage(
            cpu_pct=share,
            memory_bytes=max(0, memory - cache),
            memory_limit_bytes=lasting.limit,
            pids=lasting.pids,
            memory_kept_bytes=None if active is None else max(0, memory - cache - active),
        )


def _cpu_s(text: str) -> float | None:
    """Seconds of CPU: version 2 has microseconds in a field, version 1 nothing but nanoseconds."""
    if text.startswith("usage_usec") or "\nusage_usec" in text:
        usec = _field(text, "usage_usec")
        return None if usec is None else usec / 1e6
    nsec = _number(text)
    return None if nsec is None else nsec / 1e9


def _groups(text: str, container_id: str) -> dict[str, str]:
    """Controller → the container's own group in ``/proc/<pid>/cgroup``; version 2 under the empty name.

    An init inside may have moved its main process into a group below: the container's is the one named by its id.
    """
    groups: dict[str, str] = {}
    for line in text.splitlines():
        _, separator, rest = line.partition(":")
        controllers, separator, path = rest.partition(":")
        if separator and ".." not in Path(path).parts:
            own = _down_to(path.lstrip("/"), container_id)
            groups |= {controller: own for controller in controllers.split(",") if own}
    return groups


def _down_to(path: str, container_id: str) -> str:
    """The part of a path down to the group named by the container's id; empty when none is.

    In its first moment a container's process is still in the engine's group, whose figures are not the container's.
    """
    parts = path.split("/")
    named = [place for place, part in enumerate(parts) if container_id in part]
    return "/".join(parts[: named[0] + 1]) if named else ""


def _text(path: Path | str) -> str:
    try:
        file = os.open(path, os.O_RDONLY)
    except OSError:
        return ""
    try:
        return os.read(file, _LONGEST).decode(errors="replace")
    except OSError:
        return ""
    finally:
        os.close(file)


def _number(text: str) -> int | None:
    text = text.strip()
    return int(text) if text.isdecimal() else None


def _field(text: str, name: str) -> int | None:
    """The number after ``name`` at the beginning of a line."""
    _, found, rest = f"\n{text}".partition(f"\n{name} ")
    return _number(rest.partition("\n")[0]) if found else None


def pids_of(containers: Iterable[tuple[str, int | None]]) -> dict[str, int]:
    """Those of (id, main process) that have a process."""
    return {container_id: pid for container_id, pid in containers if pid}
