"""What the kernel shows of GPUs on the PCI bus, whether or not there is a driver for them."""

from __future__ import annotations

import os

_DEVICES = "bus/pci/devices"
_NVIDIA = "0x10de"
_DISPLAY_CLASSES = ("0x0300", "0x0302")
_WSL = "/dev/dxg"


def on_bus(sysfs: str | os.PathLike[str]) -> bool | None:
    """Whether an NVIDIA GPU is on the bus; None where that cannot be told, as under WSL, whose GPUs are not on it."""
    if os.path.exists(_WSL):
        return None
    try:
        devices = os.listdir(os.path.join(sysfs, _DEVICES))
    except OSError:
        return None
    return any(
        read_line(sysfs, each, "vendor") == _NVIDIA and read_line(sysfs, each, "class").startswith(_DISPLAY_CLASSES)
        for each in devices
    )


def read_line(sysfs: str | os.PathLike[str], device: str, name: str) -> str:
    """A file of a device; empty when it cannot be read."""
    try:
        with open(os.path.join(sysfs, _DEVICES, device, name), encoding="ascii", errors="replace") as file:
            return file.read(4096).strip()
    except OSError:
        return ""
