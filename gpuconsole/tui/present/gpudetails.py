"""A GPU in full: every fact of it; what is not known says why. How it is now is ``gpunow``'s."""

from __future__ import annotations

from gpuconsole.core.text import duration, gib
from gpuconsole.gpu.model import Gpu, GpuSnapshot, Mig
from gpuconsole.host.model import GpuView
from gpuconsole.tui.present.cell import Cell
from gpuconsole.tui.present.details import Field, Line, field, unknown
from gpuconsole.tui.present.gpumemory import memory_field
from gpuconsole.tui.present.gpunow import whole_fields
from gpuconsole.tui.theme import UNICODE, Glyphs


def fields(view: GpuView, snapshot: GpuSnapshot, *, width: int = 80, glyphs: Glyphs = UNICODE) -> tuple[Field, ...]:
    """Every fact, and why one is missing; who has its memory comes first, then what had to be cut of how it is now."""
    gpu = view.gpu
    return (
        memory_field(view, width=width, glyphs=glyphs),
        *whole_fields(view, width=width, glyphs=glyphs),
        Field("clocks", tuple(_clocks(gpu))),
        field("slowed", _throttle(gpu)),
        field("memory bus", _bus(gpu)),
        field("fan", _percent(gpu, "fan_pct")),
        Field("PCIe", tuple(_pcie(gpu))),
        Field("ECC", tuple(_ecc(gpu))),
        Field("MIG", tuple(_mig(gpu))),
        field("name", gpu.name or unknown(gpu.unknown.get("name"))),
        field("computes", _capability(gpu)),
        field("mode", _mode(gpu)),
        field("UUID", gpu.uuid or unknown(gpu.unknown.get("uuid"))),
        field("PCI address", gpu.pci_bus_id or unknown(gpu.unknown.get("pci_bus_id"))),
        field("device", "–" if gpu.minor is None else f"/dev/nvidia{gpu.minor}"),
        field("driver", _driver(snapshot)),
        field("note", *gpu.notes, "it sleeps, and was not woken for these figures" if gpu.asleep else None,
              f"the slow readings are {duration(gpu.age_s)} old" if gpu.age_s >= 5 else None),
    )  # fmt: skip


def _known(gpu: Gpu, name: str, unit: str) -> str | None:
    value = getattr(gpu, name)
    return None if value is None else f"{value}{unit}"


def _percent(gpu: Gpu, name: str) -> str | Cell:
    return _known(gpu, name, " %") or unknown(gpu.unknown.get(name))


def _clocks(gpu: Gpu) -> list[Line]:
    lines: list[Line] = []
    for word, now, most in (("SM", "sm_clock_mhz", "max_sm_clock_mhz"),
                            ("memory", "memory_clock_mhz", "max_memory_clock_mhz")):  # fmt: skip
        value, top = _known(gpu, now, " MHz"), _known(gpu, most, "")
        text = Cell(f"{value}{f' of {top}' if top else ''}") if value else unknown(gpu.unknown.get(now))
        lines.append((Cell(f"{word:<7}"), text))
    state = _known(gpu, "performance_state", "")
    return [
        *lines,
        (Cell(f"{'state':<7}"), Cell(f"P{state}") if state else unknown(gpu.unknown.get("performance_state"))),
    ]


def _throttle(gpu: Gpu) -> Cell | None:
    """Only what does not stand above."""
    if gpu.throttle_reasons is None:
        return unknown(gpu.unknown.get("throttle_reasons"))
    return None if gpu.throttle_reasons else Cell("by nothing", "dim")


def _bus(gpu: Gpu) -> str | Cell:
    bus = _known(gpu, "memory_utilization_pct", " %")
    return f"{bus} of the time" if bus else unknown(gpu.unknown.get("memory_utilization_pct"))


def _pcie(gpu: Gpu) -> list[Line]:
    link = gpu.pcie
    if link.generation is None or link.width is None:
        return [(unknown(gpu.unknown.get("pcie.generation") or gpu.unknown.get("pcie.width")),)]
    most = "" if link.max_generation is None or link.max_width is None else (
        f", at most generation {link.max_generation} x{link.max_width}"
    )  # fmt: skip
    lines: list[Line] = [(Cell(f"generation {link.generation} x{link.width}{most}"),)]
    if link.max_generation is not None and link.generation < link.max_generation:
        lines.append((Cell("an idle GPU slows its link down: judge it under load", "dim"),))
    return lines


def _ecc(gpu: Gpu) -> list[Line]:
    ecc = gpu.ecc
    if ecc.enabled is None:
        return [(unknown(gpu.unknown.get("ecc.enabled")),)]
    if not ecc.enabled:
        return [(Cell("off"),)]
    lines: list[Line] = [(Cell("on"),)]
    for word, fixed, lost in (
        ("since the driver was loaded", ecc.volatile_corrected, ecc.volatile_uncorrected),
        ("ever", ecc.aggregate_corrected, ecc.aggregate_uncorrected),
    ):
        counts = f"{_count(fixed)} errors corrected, {_count(lost)} not"
        lines.append((Cell(f"{counts}  ", "risk" if lost else ""), Cell(word, "dim")))
    if ecc.remap_pending:
        lines.append((Cell("a row of memory waits to be remapped: reset the GPU", "risk"),))
    if ecc.remap_failed:
        lines.append((Cell("a row of memory could not be remapped: have the GPU replaced", "critical"),))
    return lines


def _count(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"


def _mig(gpu: Gpu) -> list[Line]:
    if gpu.mig_enabled is None:
        return [(unknown(gpu.unknown.get("mig_enabled")),)]
    if not gpu.mig_enabled:
        return [(Cell("off", "dim"),)]
    if not gpu.migs and (reason := gpu.unknown.get("migs")):
        return [(Cell("on, its instances are unknown  "), Cell(reason, "dim"))]
    return [line for mig in gpu.migs for line in _instance(mig)] or [(Cell("on, without instances"),)]


def _instance(mig: Mig) -> list[Line]:
    used = "–" if mig.memory_used_bytes is None else gib(mig.memory_used_bytes)
    count = "processes unknown" if mig.processes is None else f"{len(mig.processes)} processes"
    if mig.processes is None and (reason := mig.unknown.get("processes")):
        count += f" ({reason})"
    words = f"{used}/{gib(mig.memory_total_bytes)} GiB, {count}"
    name = f"UUID unknown ({mig.unknown.get('uuid', 'the driver does not tell it')})" if mig.uuid is None else mig.uuid
    return [(Cell(f"{mig.name or 'instance'}  ", "strong"), Cell(words)), (Cell("  "), Cell(name, "dim"))]


def _capability(gpu: Gpu) -> str | Cell:
    if gpu.compute_capability is None:
        return unknown(gpu.unknown.get("compute_capability"))
    major, minor = gpu.compute_capability
    return f"compute capability {major}.{minor} (sm_{major}{minor})"


def _mode(gpu: Gpu) -> str:
    persistence = {True: "persistence on", False: "persistence off", None: "persistence –"}[gpu.persistence]
    return f"{gpu.compute_mode or 'compute mode –'} · {persistence}"


def _driver(snapshot: GpuSnapshot) -> str | Cell:
    if snapshot.driver_version is None:
        return unknown(snapshot.unknown.get("driver_version"))
    return f"{snapshot.driver_version}{f' · up to CUDA {snapshot.cuda_version}' if snapshot.cuda_version else ''}"
