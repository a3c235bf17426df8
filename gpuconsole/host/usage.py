"""CPU and memory of a container on this machine, read from its control group: two small files instead of a request.

The figures are those of ``docker stats``: memory without the page cache that can be reclaimed (``inactive_file``), CPU
as the difference of the group's CPU time over the time between two looks, 100 being one core. No root is needed.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from gpuconsole.engine.model import Usage

_NO_LIMIT = 1 << 60
"""Version 1 writes a number near 2^63 when there is no limit."""


@dataclass(frozen=True, slots=True)
class _Look:
    cpu_s: float
    at: float


class UsageReader:
    """Reads control groups, and remembers the last look at each for the CPU share.

    Args:
        root: Where the machine's file system is.
    """

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root
        self._looks: dict[str, _Look] = {}

    def read(self, pids: Mapping[str, int]) -> dict[str, Usage]:
        """Usage of each container id → main process; those that cannot be read are left out."""
        found = {}
        for container_id, pid in pids.items():
            usage = self._one(container_id, pid)
            if usage is not None:
                found[container_id] = usage
        for gone in self._looks.keys() - pids.keys():
            del self._looks[gone]
        return found

    def _one(self, container_id: str, pid: int) -> Usage | None:
        groups = _groups(_text(self._root / f"proc/{pid}/cgroup"), container_id)
        unified = groups.get("")
        mount = self._root / "sys/fs/cgroup"
        if unified is not None and (mount / "cgroup.controllers").exists():
            return self._version2(container_id, mount / unified)
        if "memory" in groups and "cpuacct" in groups:
            return self._version1(
                container_id, mount / "memory" / groups["memory"], mount / "cpuacct" / groups["cpuacct"]
            )
        return None

    def _version2(self, container_id: str, group: Path) -> Usage | None:
        memory, cpu = _number(_text(group / "memory.current")), _field(_text(group / "cpu.stat"), "usage_usec")
        if memory is None or cpu is None:
            return None
        cache = _field(_text(group / "memory.stat"), "inactive_file") or 0
        return self._usage(
            container_id,
            cpu_s=cpu / 1e6,
            memory=max(0, memory - cache),
            limit=_number(_text(group / "memory.max")),
            pids=_number(_text(group / "pids.current")),
        )

    def _version1(self, container_id: str, memory_group: Path, cpu_group: Path) -> Usage | None:
        memory, cpu = (
            _number(_text(memory_group / "memory.usage_in_bytes")),
            _number(_text(cpu_group / "cpuacct.usage")),
        )
        if memory is None or cpu is None:
            return None
        cache = _field(_text(memory_group / "memory.stat"), "total_inactive_file") or 0
        limit = _number(_text(memory_group / "memory.limit_in_bytes"))
        return self._usage(
            container_id,
            cpu_s=cpu / 1e9,
            memory=max(0, memory - cache),
            limit=None if limit is None or limit >= _NO_LIMIT else limit,
            pids=None,
        )

    def _usage(self, container_id: str, *, cpu_s: float, memory: int, limit: int | None, pids: int | None) -> Usage:
        now = time.monotonic()
        before = self._looks.get(container_id)
        self._looks[container_id] = _Look(cpu_s, now)
        share = None
        # A group whose CPU time went back was made anew: the container was restarted between the looks.
        if before is not None and now > before.at and cpu_s >= before.cpu_s:
            share = 100 * (cpu_s - before.cpu_s) / (now - before.at)
        return Usage(cpu_pct=share, memory_bytes=memory, memory_limit_bytes=limit, pids=pids)


def _groups(text: str, container_id: str) -> dict[str, str]:
    """Controller → the container's own group in ``/proc/<pid>/cgroup``; version 2 under the empty name.

    An init inside may have moved its main process into a group below: the container's is the one named by its id.
    """
    groups = {}
    for line in text.splitlines():
        _, separator, rest = line.partition(":")
        controllers, separator, path = rest.partition(":")
        if separator and ".." not in Path(path).parts:
            for controller in controllers.split(","):
                groups[controller] = _down_to(path.lstrip("/"), container_id)
    return groups


def _down_to(path: str, container_id: str) -> str:
    parts = path.split("/")
    named = [place for place, part in enumerate(parts) if container_id in part]
    return "/".join(parts[: named[0] + 1]) if named else path


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def _number(text: str) -> int | None:
    text = text.strip()
    return int(text) if text.isdecimal() else None


def _field(text: str, name: str) -> int | None:
    for line in text.splitlines():
        key, _, value = line.partition(" ")
        if key == name:
            return _number(value)
    return None


def pids_of(containers: Iterable[tuple[str, int | None]]) -> dict[str, int]:
    """Those of (id, main process) that have a process."""
    return {container_id: pid for container_id, pid in containers if pid}
