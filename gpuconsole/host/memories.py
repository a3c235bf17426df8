"""RAM and ``/dev/shm`` of this machine and of its containers: a few small files, no request to anybody."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpuconsole.engine.model import Container

_SHM = "dev/shm"
_LONGEST = 8192
_OTHER_IPC = ("host", "container:")
"""A container of such an IPC mode has no ``/dev/shm`` of its own."""


def ram_of_host(root: Path = Path("/")) -> tuple[int | None, int | None]:
    """Bytes of RAM that cannot be had for more, and of all RAM; None for what the kernel does not tell.

    The cache of ZFS is given back when programs need it, and the kernel counts it as used: it grows with what is read.
    """
    try:
        with (root / "proc/meminfo").open("rb", buffering=0) as file:
            text = file.read(_LONGEST)
    except OSError:
        return None, None
    found: dict[bytes, int] = {}
    for line in text.splitlines():
        name, _, rest = line.partition(b":")
        if name in (b"MemTotal", b"MemAvailable"):
            found[name] = int(rest.split()[0]) * 1024
            if len(found) == 2:
                break
    total, available = found.get(b"MemTotal"), found.get(b"MemAvailable")
    return None if total is None or available is None else max(0, total - available - _zfs_cache(root)), total


def _zfs_cache(root: Path) -> int:
    """Bytes that ZFS can give back; 0 where there is none."""
    try:
        with (root / "proc/spl/kstat/zfs/arcstats").open("rb", buffering=0) as file:
            text = file.read(_LONGEST)
    except OSError:
        return 0
    found = {words[0]: int(words[2]) for line in text.splitlines() if len(words := line.split()) == 3
             and words[0] in (b"size", b"c_min") and words[2].isdigit()}  # fmt: skip
    return max(0, found.get(b"size", 0) - found.get(b"c_min", 0))


def shm_of_host(root: Path = Path("/")) -> tuple[int | None, int | None]:
    """Bytes used of this machine's ``/dev/shm``, and its size; None where there is none."""
    return _use_of(str(root / _SHM))


def has_own_shm(container: Container) -> bool:
    """It runs, and its ``/dev/shm`` is the one that the engine made for it alone."""
    mounted = any(mount.target.rstrip("/") in ("/dev", "/dev/shm") for mount in container.mounts)  # noqa: S108
    return container.running and not mounted and not container.ipc_mode.startswith(_OTHER_IPC)


def shm_of_container(pid: int, root: Path = Path("/")) -> tuple[int | None, int | None]:
    """Bytes used of the ``/dev/shm`` that process ``pid`` sees, and its size; None where this user may not look."""
    return _use_of(f"{root}/proc/{pid}/root/{_SHM}")  # as text: it is asked of every container at every look


def _use_of(path: str) -> tuple[int | None, int | None]:
    try:
        # A link inside a container would lead to a place of this machine, or to one that never answers.
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            return None, None
        found = os.statvfs(path)
    except OSError:
        return None, None
    return (found.f_blocks - found.f_bfree) * found.f_frsize, found.f_blocks * found.f_frsize
