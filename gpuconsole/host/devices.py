"""What a path below ``/dev`` is: a disk, a GPU, a folder with such in it, whatever it is called."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_MOST = 3000
"""Entries of a folder that are looked at."""
_NVIDIA_MAJOR, _CONTROL_MINOR = 195, 254
"""GPUs are the numbers below; 254 and 255 are modeset and control, which give none."""
_GPU_NAME = re.compile(r"/dev/nvidia(\d+|-caps/.*)")
_NVIDIA = "0x10de"


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """One path, or all that is in it. What cannot be told is None."""

    exists: bool | None = None
    real: str = ""
    """Where its links lead in the end."""
    names: tuple[str, ...] = ()
    """Itself, or every device in the folder, links followed."""
    disks: tuple[str, ...] = ()
    """Of these the block devices."""
    gpus: tuple[str, ...] = ()
    """Of these NVIDIA's GPUs, and the rights to their MIG instances."""
    graphics: tuple[str, ...] = ()
    """Of these the nodes by which graphics programs reach NVIDIA's GPUs."""


def look_at_device(path: str, *, root: Path = Path("/")) -> DeviceFacts:
    """What is at ``path``; of a folder, what is anywhere in it, since engines hand out all of it.

    Args:
        path: From the root.
        root: Where the machine's ``/sys`` is.
    """
    real = os.path.realpath(path)
    try:
        found = os.stat(real)
    except FileNotFoundError:
        return DeviceFacts(exists=False, real=real)
    except (OSError, ValueError):
        return DeviceFacts(real=real)
    devices = list(_within(real)) if stat.S_ISDIR(found.st_mode) else [(real, found)]
    return DeviceFacts(
        exists=True,
        real=real,
        names=tuple(name for name, _ in devices),
        disks=tuple(name for name, one in devices if stat.S_ISBLK(one.st_mode)),
        gpus=tuple(name for name, one in devices if _is_gpu(name, one)),
        graphics=tuple(name for name, one in devices if stat.S_ISCHR(one.st_mode) and _draws(name, root)),
    )


def _within(folder: str) -> Iterator[tuple[str, os.stat_result]]:
    seen = 0
    for place, _, files in os.walk(folder):
        for file in files:
            seen += 1
            if seen > _MOST:
                return
            name = os.path.realpath(os.path.join(place, file))
            try:
                found = os.stat(name)
            except (OSError, ValueError):
                continue
            if stat.S_ISBLK(found.st_mode) or stat.S_ISCHR(found.st_mode):
                yield name, found


def _is_gpu(name: str, found: os.stat_result) -> bool:
    if _GPU_NAME.fullmatch(name):
        return True
    number = found.st_rdev
    return stat.S_ISCHR(found.st_mode) and os.major(number) == _NVIDIA_MAJOR and os.minor(number) < _CONTROL_MINOR


def _draws(name: str, root: Path) -> bool:
    """Whether it is a node of the kernel's graphics for a GPU of NVIDIA."""
    if not name.startswith("/dev/dri/"):
        return False
    try:
        return (root / "sys/class/drm" / Path(name).name / "device/vendor").read_text().strip() == _NVIDIA
    except OSError:
        return False
