"""What of this machine bears on a benchmark beside its GPUs: processor, governor, virtualisation, NUMA nodes."""

from __future__ import annotations

import re
from pathlib import Path

from gpuconsole.core.text import plain_line

_ROOT = Path("/")
_BUS = re.compile(r"([0-9a-f]{4,8}):([0-9a-f]{2}:[0-9a-f]{2}\.[0-7])")


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""


def _cpu_entries(root: Path) -> dict[str, str]:
    entries: dict[str, str] = {}
    for line in _text(root / "proc/cpuinfo").splitlines():
        name, separator, value = line.partition(":")
        if separator:
            entries.setdefault(name.strip().lower(), value.strip())
    return entries


def cpu_model(root: Path = _ROOT) -> str | None:
    """What the processor is called; of an ARM one, which has no name there, its numbers."""
    entries = _cpu_entries(root)
    if model := entries.get("model name"):
        return plain_line(model, limit=100)
    numbers = [entries[name] for name in ("cpu implementer", "cpu part") if name in entries]
    return plain_line(f"ARM {' '.join(numbers)}", limit=100) if numbers else None


def governor(root: Path = _ROOT) -> str | None:
    """How the first processor's clock is chosen: ``performance``, ``powersave`` …; None where nobody does."""
    return plain_line(_text(root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"), limit=40) or None


def is_virtual(root: Path = _ROOT) -> bool | None:
    """This is a virtual machine; None when the processor does not tell."""
    flags = _cpu_entries(root).get("flags")
    return None if flags is None else "hypervisor" in flags.split()


def numa_node(bus_id: str | None, root: Path = _ROOT) -> int | None:
    """The NUMA node of a device; None when it has none, or is not known.

    Args:
        bus_id: As NVML writes it, ``00000000:17:00.0``.
        root: Where the file system of the machine is.
    """
    match = _BUS.fullmatch((bus_id or "").lower())
    if match is None:
        return None
    text = _text(root / f"sys/bus/pci/devices/{match[1][-4:]}:{match[2]}/numa_node")
    return int(text) if text.isdecimal() else None  # -1 is none
