"""The memory that an engine's containers may use together: the smallest limit of the control groups above them.

A container's own limit is not all that bounds it. The group it is put into, the slice above that, and the group of the
whole system where that is an LXC container itself, each may have a limit, which all that is in them share.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from gpuconsole.core.text import plain_line

_UNLIMITED = 2**60
"""Version 1 writes no limit as a number near 2**63."""
_DROPPED = ("inactive_file", "active_file", "slab_reclaimable")
"""Files that were read, however often: data sets that are read again and again fill a group to its limit with them, and
no process is ended for that. Files in memory, as in ``/dev/shm``, are not among them."""
_CONFIG = "/etc/docker/daemon.json"
_MOST_BYTES = 2**20
_OF_USER = re.compile(r"(/.*/user@\d+\.service)(?:/.*)?")


@dataclass(frozen=True, slots=True)
class MemoryGroup:
    """The control group whose limit is the smallest."""

    name: str
    """Its path: ``/docker.slice``; ``/`` is that of all that is seen of the system."""
    limit_bytes: int
    used_bytes: int | None = None
    """Now, without what the kernel drops when it needs room; None when it cannot be told."""


def containers_parent(
    arguments: Sequence[str], group: str, *, driver: str, rootless: bool = False, root: Path = Path("/")
) -> str | None:
    """The group that an engine puts its containers into, unless one of them asks for another; None if unknown.

    Args:
        arguments: The command line of its process.
        group: What ``/proc/<pid>/cgroup`` says of that process.
        driver: ``systemd`` or ``cgroupfs``.
        rootless: It runs as an ordinary user.
        root: Where the machine's file system is.
    """
    paths = [line.split(":", 2)[2] for line in group.splitlines() if line.count(":") >= 2]
    if not paths or any(path.startswith("/..") for path in paths):
        return None  # it runs outside of what this process sees, as when gpuconsole is in a container itself
    if not arguments:
        return None
    podman = PurePosixPath(arguments[0]).name.startswith("podman")
    if rootless:
        own = next((match[1] for path in paths if (match := _OF_USER.fullmatch(path))), None)
        return f"{own}/user.slice" if own is not None else None
    written = "" if podman else _option(arguments, "--cgroup-parent") or _configured(arguments, root)
    if driver == "systemd":
        return slice_path(written or ("machine.slice" if podman else "system.slice"))
    return f"/{(written or ('libpod_parent' if podman else 'docker')).strip('/')}"


def _option(arguments: Sequence[str], name: str) -> str:
    """The value of an option, written as one word or as two; empty without one."""
    for word, after in zip(arguments, (*arguments[1:], ""), strict=True):
        if word == name:
            return after
        if word.startswith(f"{name}="):
            return word.partition("=")[2]
    return ""


def _configured(arguments: Sequence[str], root: Path) -> str:
    """``cgroup-parent`` of the engine's configuration; empty where it says nothing or cannot be read."""
    path = _option(arguments, "--config-file") or _CONFIG
    try:
        with (root / path.lstrip("/")).open("rb") as file:
            config = json.loads(file.read(_MOST_BYTES))
    except (OSError, ValueError):
        return ""
    value = config.get("cgroup-parent") if isinstance(config, dict) else None
    return value if isinstance(value, str) else ""


def slice_path(name: str) -> str:
    """Where systemd has a slice: ``a-b.slice`` is within ``a.slice``."""
    bare = name.strip("/")
    if not bare.endswith(".slice") or "/" in bare:
        return f"/{bare}"
    parts = bare.removesuffix(".slice").split("-")
    return "".join(f"/{'-'.join(parts[: count + 1])}.slice" for count in range(len(parts)))


def smallest_limit(group: str, *, root: Path = Path("/")) -> MemoryGroup | None:
    """The smallest limit on the way from ``group`` to the root; None where nothing is limited or can be read.

    Args:
        group: A path as ``/proc/<pid>/cgroup`` has it. It need not exist yet: an engine makes it with a container.
        root: Where the machine's file system is.
    """
    top = root / "sys/fs/cgroup"
    unified = (top / "cgroup.controllers").exists()
    found: MemoryGroup | None = None
    for name in _way_up(group):
        folder = (top if unified else top / "memory") / name.lstrip("/")
        limit = _number(folder / ("memory.max" if unified else "memory.limit_in_bytes"))
        if limit is None or limit >= _UNLIMITED or (found is not None and limit >= found.limit_bytes):
            continue
        found = MemoryGroup(plain_line(name), limit, _used(folder, unified=unified))
    return found


def _way_up(group: str) -> Iterator[str]:
    path = PurePosixPath("/" + group.strip("/"))
    if ".." in path.parts:
        return
    yield str(path)
    yield from (str(above) for above in path.parents)


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):  # ValueError: "max"
        return None


def _used(folder: Path, *, unified: bool) -> int | None:
    used = _number(folder / ("memory.current" if unified else "memory.usage_in_bytes"))
    if used is None:
        return None
    try:
        lines = (folder / "memory.stat").read_text().splitlines()
        told = {name: int(count) for name, count in (line.split() for line in lines)}
    except (OSError, ValueError):
        told = {}
    return max(0, used - sum(told.get(name if unified else f"total_{name}", 0) for name in _DROPPED))
