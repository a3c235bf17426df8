"""What this machine is: its GPUs on the PCI bus, its driver's files, its system. Read from files, no root needed."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gpuconsole.core.text import plain_line

_NVIDIA = "0x10de"
_DISPLAY_CLASSES = ("0x0300", "0x0302")
_LIBRARY_FOLDERS = (
    "usr/lib/x86_64-linux-gnu",
    "usr/lib/aarch64-linux-gnu",
    "usr/lib64",
    "usr/lib",
    "usr/local/nvidia/lib64",
    "usr/lib/wsl/lib",
    "run/opengl-driver/lib",
)
_SECURE_BOOT = "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"


@dataclass(frozen=True, slots=True)
class PciGpu:
    """An NVIDIA GPU on the PCI bus."""

    address: str
    """``0000:01:00.0``."""
    driver: str | None
    """The kernel driver that owns it: ``nvidia``, ``nouveau``, ``vfio-pci``; None when none does."""


@dataclass(frozen=True, slots=True)
class Machine:
    """Facts of this machine that need neither NVML nor the engine. A None could not be found out."""

    os_name: str
    os_family: str
    """``debian``, ``ubuntu``, ``fedora``, ``suse``, ``arch`` or ``other``: which package manager to name."""
    kernel: str
    wsl: bool = False
    in_container: bool = False
    pci_gpus: tuple[PciGpu, ...] = ()
    module_version: str | None = None
    """Version of the loaded kernel module."""
    library_version: str | None = None
    """Version of the driver library file, from its name."""
    nouveau_loaded: bool = False
    module_for_kernel: bool | None = None
    """An nvidia module file exists for the running kernel."""
    secure_boot: bool | None = None
    device_nodes: tuple[str, ...] = ()
    """Names under ``/dev``: ``nvidia0``, ``nvidiactl``, ``nvidia-uvm`` …"""


def read_machine(root: Path = Path("/")) -> Machine:
    """The facts of the machine whose file system is at ``root``."""
    os_name, os_family = _system(root)
    kernel = os.uname().release
    version = _text(root / "proc/version")
    return Machine(
        os_name=os_name,
        os_family=os_family,
        kernel=kernel,
        wsl="microsoft" in version.lower() or (root / "dev/dxg").exists(),
        in_container=(root / ".dockerenv").exists() or (root / "run/.containerenv").exists(),
        pci_gpus=tuple(_pci_gpus(root)),
        module_version=_module_version(root),
        library_version=_library_version(root),
        nouveau_loaded=any(line.startswith("nouveau ") for line in _text(root / "proc/modules").splitlines()),
        module_for_kernel=_module_for(root, kernel),
        secure_boot=_secure_boot(root),
        device_nodes=tuple(sorted(path.name for path in (root / "dev").glob("nvidia*") if not path.is_dir())),
    )


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8", errors="replace")
    except OSError:
        return ""


def _system(root: Path) -> tuple[str, str]:
    entries = {}
    for line in _text(root / "etc/os-release").splitlines():
        key, separator, value = line.partition("=")
        if separator:
            entries[key] = value.strip().strip("\"'")
    words = [entries.get("ID", ""), *entries.get("ID_LIKE", "").split()]
    for family, names in {
        "ubuntu": ("ubuntu",),
        "debian": ("debian",),
        "fedora": ("fedora", "rhel", "centos", "rocky", "almalinux"),
        "suse": ("suse", "opensuse", "sles"),
        "arch": ("arch",),
    }.items():
        if any(word in names for word in words):
            return plain_line(entries.get("PRETTY_NAME", family)), family
    return plain_line(entries.get("PRETTY_NAME", "Linux")), "other"


def _pci_gpus(root: Path) -> Iterator[PciGpu]:
    for device in sorted((root / "sys/bus/pci/devices").glob("*")):
        if _text(device / "vendor").strip() != _NVIDIA or not _text(device / "class").startswith(_DISPLAY_CLASSES):
            continue
        driver = device / "driver"
        yield PciGpu(device.name, Path(os.readlink(driver)).name if driver.is_symlink() else None)


def _module_version(root: Path) -> str | None:
    match = re.search(r"Kernel Module(?: for \S+)?\s+([\d.]+)", _text(root / "proc/driver/nvidia/version"))
    return match[1] if match else (_text(root / "sys/module/nvidia/version").strip() or None)


def _library_version(root: Path) -> str | None:
    for folder in _LIBRARY_FOLDERS:
        link = root / folder / "libnvidia-ml.so.1"
        try:
            name = link.resolve(strict=True).name
        except OSError:
            continue
        match = re.fullmatch(r"libnvidia-ml\.so\.(\d[\d.]+)", name)
        if match and match[1] != "1":
            return match[1]
    return None


def _module_for(root: Path, kernel: str) -> bool | None:
    folder = root / "lib/modules" / kernel
    if not folder.is_dir():
        return None
    index = _text(folder / "modules.dep")
    return bool(re.search(r"(^|/)nvidia\.ko", index, re.MULTILINE)) if index else None


def _secure_boot(root: Path) -> bool | None:
    try:
        return (root / _SECURE_BOOT).read_bytes()[-1:] == b"\x01"
    except OSError:
        return None


def disk_space(path: str) -> tuple[int, int] | None:
    """Free and total bytes of the file system of ``path`` or of its nearest folder that exists; None if unreadable."""
    folder = Path(path)
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        usage = shutil.disk_usage(folder)
    except OSError:
        return None
    return usage.free, usage.total
