"""A GPU as cells: the strip's line in its long and its short form, and the facts of its screen."""

from __future__ import annotations

from collections.abc import Sequence

from gpuconsole.core.text import gib, shorten
from gpuconsole.gpu.model import Gpu
from gpuconsole.gpu.state import MemoryState
from gpuconsole.host.account import PartKind
from gpuconsole.host.accounting import account_in, use_of
from gpuconsole.host.model import GpuView
from gpuconsole.host.state import FREE_BELOW_BYTES, memory_state
from gpuconsole.tui.present.cell import EMPTY, Cell, Tone
from gpuconsole.tui.theme import Glyphs

HOT_C = 85
"""From here a temperature stands out."""
_BRIEF_STATE = 14
"""Cells of a state in the short form, at most."""
STATE_TONES: dict[MemoryState, Tone] = {
    MemoryState.FREE: "ok",
    MemoryState.IDLE: "watch",
    MemoryState.LOADING: "info",
    MemoryState.STEADY: "",
    MemoryState.PACKED: "info",
    MemoryState.WATCH: "watch",
    MemoryState.RISK: "risk",
    MemoryState.CRITICAL: "critical",
    MemoryState.FAILED: "critical",
    MemoryState.UNKNOWN: "dim",
}


def state_cell(view: GpuView, glyphs: Glyphs, width: int = 99) -> Cell:
    """The state as glyph and word, with the time until it is full where there is one and ``width`` cells hold it."""
    state = memory_state(view)
    glyph = {
        MemoryState.FREE: glyphs.ok,
        MemoryState.IDLE: glyphs.idle,
        MemoryState.WATCH: glyphs.watch,
        MemoryState.RISK: glyphs.risk,
        MemoryState.CRITICAL: glyphs.critical,
        MemoryState.FAILED: glyphs.critical,
        MemoryState.UNKNOWN: glyphs.unknown,
    }.get(state, " ")
    text = f"{glyph} {state.value}"
    if view.outlook is not None and view.outlook.state is state:
        from gpuconsole.tui.present.outlook import state_text

        text = state_text(text, view.outlook, width)
    return Cell(text, STATE_TONES[state])


def bar(share: float | None, width: int, glyphs: Glyphs) -> str:
    """A bar of ``width`` cells, filled to ``share`` (0 … 1) in eighths of a cell."""
    if share is None:
        return " " * width
    eighths = round(min(max(share, 0.0), 1.0) * width * 8)
    full, rest = divmod(eighths, 8)
    text = glyphs.full * full
    if rest and full < width:
        text += glyphs.parts[rest]
    return text.ljust(width)


def sparkline(values: Sequence[float | None], width: int, glyphs: Glyphs, *, top: float = 100.0) -> str:
    """The newest ``width`` values as heights; a gap where one is unknown."""
    recent = list(values)[-width:]
    steps = len(glyphs.spark) - 1
    marks = [
        " " if value is None else glyphs.spark[max(1, round(min(max(value / top, 0.0), 1.0) * steps))]
        for value in recent
    ]
    return "".join(marks).rjust(width)


def used_share(view: GpuView) -> float | None:
    """Used part of the memory, 0 … 1."""
    used, total = use_of(view)
    return used / total if used is not None and total else None


def memory_cell(view: GpuView) -> Cell:
    """``131.2/139.8``; of a memory that the GPU shares with the CPU, the machine's figures."""
    used, total = use_of(view)
    if used is None and total is None:
        return Cell("unified", "dim") if view.gpu.unified_memory else EMPTY
    return Cell(f"{gib(used)}/{gib(total)}")


def utilization_cell(gpu: Gpu) -> Cell:
    """``98 %``."""
    return EMPTY if gpu.utilization_pct is None else Cell(f"{gpu.utilization_pct} %")


def temperature_cell(gpu: Gpu) -> Cell:
    """``67°``; a hot one stands out."""
    if gpu.temperature_c is None:
        return EMPTY
    return Cell(f"{gpu.temperature_c}°", "risk" if gpu.temperature_c >= HOT_C else "")


def power_cell(gpu: Gpu) -> Cell:
    """``612 W``."""
    return EMPTY if gpu.power_w is None else Cell(f"{gpu.power_w:.0f} W")


def holders_cell(view: GpuView) -> Cell:
    """Who holds it, in few words: container names, else users or pids."""
    names = dict.fromkeys(
        holder.container_name
        or (holder.container_id and holder.container_id[:12])
        or f"{holder.user or 'pid'}:{holder.pid}"
        for holder in view.holders
    )
    if not names and not view.given_to and account_in(view).bytes_of(PartKind.UNATTRIBUTED) >= FREE_BELOW_BYTES:
        return Cell("nobody", "dim")
    # In the words of the list GPUs are picked from.
    idle = [f"{name} (idle)" for name in view.given_to if name not in names]
    return Cell(", ".join([*(str(name) for name in names), *idle]), "dim" if names or idle else "")


THROTTLE_WORDS = {
    "sw-power-cap": "power cap",
    "hw-slowdown": "hardware slowdown",
    "sw-thermal": "hot (driver slows it)",
    "hw-thermal": "hot (hardware slows it)",
    "hw-power-brake": "power brake",
    "sync-boost": "sync boost",
    "clocks-setting": "clocks set by an application",
    "display-clocks": "display clocks",
}


def throttle_words(gpu: Gpu) -> str:
    """Why its clocks are held down, in words; empty when they are not or it is not known."""
    return ", ".join(THROTTLE_WORDS.get(reason, reason) for reason in gpu.throttle_reasons or ())


def problem_words(view: GpuView) -> str:
    """What a person should know beside the figures: lost, throttled, stale."""
    gpu = view.gpu
    if gpu.problem:
        return gpu.problem
    words = [throttle_words(gpu)] if gpu.throttle_reasons else []
    return ", ".join(words)


def ring_word(glyphs: Glyphs) -> str:
    """What stands beside a thing that rings when it ends, or when it is free."""
    return f"{glyphs.ring} ring"


def brief(view: GpuView, width: int, glyphs: Glyphs, *, rings: bool = False) -> tuple[Cell, ...]:
    """The short form for many GPUs: index, use, a bar and the state, in ``width`` cells."""
    gpu = view.gpu
    state = state_cell(view, glyphs, _BRIEF_STATE)
    memory = memory_cell(view).text
    cells = max(10, len(state.text))
    room = max(3, width - 3 - 6 - len(memory) - 1 - cells - 2)
    return (
        Cell(f"{gpu.index:>2} ", "strong"),
        Cell(f"{utilization_cell(gpu).text:>5} "),
        # The figures beside the bar say the same.
        Cell(f"{ring_word(glyphs):<{room}.{room}}", "accent")
        if rings
        else Cell(bar(used_share(view), room, glyphs), STATE_TONES[memory_state(view)] or "info"),
        Cell(f" {memory}"),
        Cell(f" {shorten(state.text, cells):<{cells}}", state.tone),
    )
