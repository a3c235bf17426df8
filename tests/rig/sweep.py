"""Remove everything a rig left: processes, mounts, bridges, cgroups, its folder. Safe to repeat."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import time
from collections.abc import Iterable
from pathlib import Path

from tests.rig.network import remove_bridges
from tests.rig.places import CACHE, MARK, RIG_PREFIX, RIGS, RigError, locked

LOCK = "alive"
"""File in a rig's folder whose lock the supervisor holds while it lives."""
_SHARED = ("libpod_parent/conmon", "libpod_parent")
CREATION = CACHE / "creation.lock"


def bridge_prefix(folder: Path) -> str:
    """Give how the names of a rig's bridges begin (an interface name has 15 characters)."""
    return f"gc{folder.name.removeprefix(RIG_PREFIX)}-"


def cgroup_name(folder: Path) -> str:
    """Give the name of the top control group under which a rig's containers run."""
    return f"gc-{folder.name.removeprefix(RIG_PREFIX)}"


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def members(folder: Path) -> set[int]:
    """Give the processes of a rig: those that carry its mark, those in its containers, and all below them."""
    mark = f"{MARK}={folder}".encode()
    group = f"/{cgroup_name(folder)}/".encode()
    found = set()
    for pid in (int(name) for name in os.listdir("/proc") if name.isdigit()):
        if group in _read(f"/proc/{pid}/cgroup") or mark in _read(f"/proc/{pid}/environ").split(b"\0"):
            found.add(pid)
    return (found | descendants(*found)) - {os.getpid()}


def descendants(*roots: int) -> set[int]:
    """Give every process below some."""
    children: dict[int, list[int]] = {}
    for pid in (int(name) for name in os.listdir("/proc") if name.isdigit()):
        fields = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
        if len(fields) > 1 and fields[0] != b"Z":
            children.setdefault(int(fields[1]), []).append(pid)
    found: set[int] = set()
    waiting = list(roots)
    while waiting:
        below = children.get(waiting.pop(), [])
        found.update(below)
        waiting.extend(below)
    return found


def _kill(pids: Iterable[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _reap() -> None:
    """Collect ended children, ours and those that were handed to us."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def kill_everything(folder: Path, *, below: int | None = None) -> None:
    """Kill a rig's processes until none is left."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        pids = members(folder) | (descendants(below) if below else set())
        if not pids:
            return
        _kill(pids)
        time.sleep(0.02)
        if below:
            _reap()
    raise RigError(f"processes of {folder} do not end: {sorted(pids)}")


def _mounts_below(folder: Path) -> list[str]:
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    points = [line.split()[4].encode().decode("unicode_escape") for line in lines]
    return [point for point in points if point.startswith(f"{folder}/")]


def unmount(folder: Path) -> None:
    """Unmount everything below a rig's folder, the newest first."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    detach = 2
    for point in reversed(_mounts_below(folder)):
        libc.umount2(point.encode(), detach)


def _cgroup_roots() -> list[Path]:
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return [Path(line.split()[4]) for line in lines if " - cgroup" in line]


def _podman_groups(folder: Path) -> list[str]:
    """Give the control groups Podman made outside ours: of its containers, then those all Podmans share."""
    lists = folder.glob("p*/root/overlay-containers/containers.json")
    ids = [container["id"] for path in lists for container in json.loads(path.read_text())]
    shared = _SHARED if any(folder.glob("p*/podman.sock")) else []
    return [*(f"libpod_parent/{kind}-{one}" for one in ids for kind in ("libpod", "libpod-conmon")), *shared]


def remaining_cgroups(folder: Path) -> list[Path]:
    """Give the control groups of a rig that still exist."""
    return [path for root in _cgroup_roots() if (path := root / cgroup_name(folder)).exists()]


def remove_cgroups(folder: Path) -> None:
    """Remove the control groups of a rig's containers in every hierarchy; those in use by others stay."""
    for root in _cgroup_roots():
        for group in (cgroup_name(folder), *_podman_groups(folder)):
            for path in _deepest_first(root / group) if group not in _SHARED else [root / group]:
                with contextlib.suppress(OSError):
                    os.rmdir(path)


def _deepest_first(group: Path) -> list[Path]:
    return [Path(path) for path, _, _ in os.walk(group, topdown=False)]


def sweep(folder: Path, *, below: int | None = None) -> None:
    """Remove a rig completely."""
    kill_everything(folder, below=below)
    unmount(folder)
    remove_bridges(folder, bridge_prefix(folder))
    for _ in range(20):
        remove_cgroups(folder)
        if not remaining_cgroups(folder):
            break
        time.sleep(0.05)  # the kernel lets go of an emptied group a moment later
    shutil.rmtree(folder)


def rigs() -> list[tuple[Path, bool]]:
    """Give every rig on this machine, and whether its supervisor lives."""
    with locked(CREATION):  # a rig being created has a folder and no supervisor's lock yet
        return [(folder, _supervised(folder)) for folder in sorted(RIGS.glob(f"{RIG_PREFIX}*/"))]


def _supervised(folder: Path) -> bool:
    try:
        with (folder / LOCK).open("r") as handle:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def clean() -> list[Path]:
    """Remove what dead rigs left and give their folders."""
    removed = []
    for folder, alive in rigs():
        if not alive and folder.exists():
            sweep(folder)
            removed.append(folder)
    return removed
