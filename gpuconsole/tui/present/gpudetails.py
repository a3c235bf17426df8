"""A GPU in full: how it is now, and every fact; what is not known says why."""

from __future__ import annotations

from gpuconsole.core.text import duration, gib
from gpuconsole.gpu.model import Gpu, GpuSnapshot, Mig
from gpuconsole.host.accounting import account_in
from gpuconsole.host.model import GpuView
from gpuconsole.host.state import memory_state
from gpuconsole.tui.present.cell import Cell
from gpuconsole.tui.present.details import Field, Line, field, unknown
from gpuconsole.tui.present.gpu import (
    STATE_TONES,
    bar,
    holders_cell,
    state_cell,
    temperature_cell,
    throttle_words,
    used_share,
)
from gpuconsole.tui.present.gpumemory import memory_field, shared_words
from gpuconsole.tui.theme import UNICODE, Glyphs


def now_fields(view: GpuView, *, width: int, glyphs: Glyphs) -> tuple[Field, ...]:
    """How it is now, in large."""
    gpu = view.gpu
    if gpu.problem:
        return (field("state", state_cell(view, glyphs), Cell(gpu.problem, "critical")),)
    held = holders_cell(view).text
    word = state_cell(view, glyphs)
    state: Line = (Cell(word.text.strip(), word.tone), Cell(f"  held by {held}" if held else "", "dim"))
    throttle = throttle_words(gpu)
    slowed = Cell(f"by {throttle}", "risk") if throttle else None
    return (
        Field("state", (state,)),
        field("forecast", _forecast(view)),
        Field("memory", (_memory(view, width, glyphs),)),
        Field("at work", (_work(gpu),)),
        field("slowed", slowed),
    )


def _forecast(view: GpuView) -> Cell | None:
    """Where its memory is going, and why that is thought; the word and the time stand above."""
    if view.outlook is None:
        return unknown("its instances are not watched over time") if view.gpu.migs else None
    from gpuconsole.tui.present.outlook import ALARMING, is_worth_telling

    said = view.outlook
    return Cell(said.why, "" if said.state in ALARMING else "dim") if is_worth_telling(said) else None


def _memory(view: GpuView, width: int, glyphs: Glyphs) -> Line:
    gpu = view.gpu
    if gpu.unified_memory and gpu.memory_total_bytes is None:
        words = shared_words(account_in(view)) or "shared with the CPU: the driver gives no figures of its own"
        return (Cell(words, "dim"),)
    share = used_share(view)
    if share is None:
        return (unknown(gpu.unknown.get("memory_used_bytes") or gpu.unknown.get("memory_total_bytes")),)
    room = min(30, max(6, width - 56))
    free = f", {gib(gpu.memory_free_bytes)} free" if gpu.memory_free_bytes is not None else ""
    tone = STATE_TONES[memory_state(view)] or "info"
    figures = f"{gib(gpu.memory_used_bytes)} of {gib(gpu.memory_total_bytes)} GiB, {share:.0%}{free}"
    return (
        Cell("[", "dim"),
        Cell(bar(share, room, glyphs), "info" if tone in ("ok", "watch") else tone),
        Cell("]  ", "dim"),
        Cell(figures, "strong"),
    )


def _work(gpu: Gpu) -> Line:
    use = "–" if gpu.utilization_pct is None else f"{gpu.utilization_pct} %"
    heat = temperature_cell(gpu)
    power = "–" if gpu.power_w is None else f"{gpu.power_w:.0f} W"
    limit = "" if gpu.power_limit_w is None else f" of {gpu.power_limit_w:.0f} W"
    return (Cell(f"{use}  ", "strong"), Cell(f"{heat.text}  ", heat.tone), Cell(f"{power}{limit}"))


def fields(view: GpuView, snapshot: GpuSnapshot, *, width: int = 80, glyphs: Glyphs = UNICODE) -> tuple[Field, ...]:
    """Every fact, and why one is missing; who has its memory comes first."""
    gpu = view.gpu
    return (
        memory_field(view, width=width, glyphs=glyphs),
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
