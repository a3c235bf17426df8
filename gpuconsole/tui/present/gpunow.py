"""How a GPU is now, in large: always as many rows, so that the charts below keep their place whatever is said."""

from __future__ import annotations

from typing import NamedTuple

from gpuconsole.core.text import gib
from gpuconsole.gpu.model import Gpu
from gpuconsole.host.accounting import account_in
from gpuconsole.host.model import GpuView
from gpuconsole.host.state import memory_state
from gpuconsole.tui.present import details
from gpuconsole.tui.present.cell import Cell, Tone
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
from gpuconsole.tui.present.gpumemory import shared_words
from gpuconsole.tui.theme import Glyphs

ROWS = 4
"""It always has so many."""
_BAR = 30
_SHORTEST_BAR = 6
_FEWEST_OF_NAMES = 16
"""In fewer cells nothing could be told of who holds it."""
_GROWS_NOT = "nothing grows"


class _Row(NamedTuple):
    """One row, and what had to be cut in it."""

    title: str
    line: Line
    whole: Field | None = None


def now_rows(view: GpuView, *, width: int, glyphs: Glyphs, note: str = "") -> list[Line]:
    """How it is now, in ``ROWS`` rows of ``width`` cells.

    Args:
        view: The GPU.
        width: Cells.
        glyphs: The signs.
        note: Stands in place of the forecast: of what is not there any more there is none.
    """
    found = [Field(each.title, (each.line,)) for each in _rows(view, width, glyphs)]
    if note:
        found[1:2] = [Field("", (details.in_a_row((Cell(note, "risk"),), details.room(width)),))]
    lines = details.laid_out(found, width)
    return [*lines, *((Cell(""),) for _ in range(ROWS - len(lines)))]


def whole_fields(view: GpuView, *, width: int, glyphs: Glyphs) -> tuple[Field, ...]:
    """In full, what does not fit into the rows of now."""
    return tuple(row.whole for row in _rows(view, width, glyphs) if row.whole is not None)


def _rows(view: GpuView, width: int, glyphs: Glyphs) -> tuple[_Row, ...]:
    room = details.room(width)
    if view.gpu.problem:
        return (_Row("state", (state_cell(view, glyphs), Cell(f"  {view.gpu.problem}", "critical"))),)
    return (
        _state(view, room, glyphs),
        _forecast(view, room),
        _Row("memory", details.in_a_row(_memory(view, room, glyphs), room)),
        _work(view.gpu, room),
    )


def _state(view: GpuView, room: int, glyphs: Glyphs) -> _Row:
    word, held = state_cell(view, glyphs), holders_cell(view).text
    state = Cell(word.text.strip(), word.tone)
    line = (state, Cell(f"  held by {held}" if held else "", "dim"))
    whole = field("held by", held)
    if details.cells_of(line) > room and room - len(state.text) < _FEWEST_OF_NAMES:
        return _Row("state", details.in_a_row((state,), room), whole)
    return _cut("state", line, room, whole)


def _forecast(view: GpuView, room: int) -> _Row:
    """Where its memory is going, and why that is thought; the word and the time stand above."""
    from gpuconsole.tui.present.outlook import ALARMING, fitting, is_worth_telling

    said = view.outlook
    if said is None:
        cell = _no_forecast(view)
        return _cut("forecast", (cell,), room, field("forecast", cell))
    if not is_worth_telling(said):
        return _cut("forecast", (Cell(_GROWS_NOT, "dim"),), room, None)
    tone: Tone = "" if said.state in ALARMING else "dim"
    words = fitting((view,), said, room) or said.why
    whole = None if words == said.why and len(words) <= room else field("forecast", said.why)
    return _Row("forecast", details.in_a_row((Cell(words, tone),), room), whole)


def _no_forecast(view: GpuView) -> Cell:
    """Why nothing is said of what is ahead."""
    gpu = view.gpu
    if gpu.migs:
        return unknown("its instances are not watched over time")
    if gpu.unified_memory:
        return unknown("its memory is the machine's own, which is watched as RAM")
    if gpu.memory_used_bytes is None:
        return unknown(gpu.unknown.get("memory_used_bytes") or "its memory in use is not known")
    if not view.holders and gpu.processes is not None:
        return Cell("nobody holds it", "dim")
    return unknown("it has not been watched for long enough")


def _memory(view: GpuView, room: int, glyphs: Glyphs) -> Line:
    gpu = view.gpu
    if gpu.unified_memory and gpu.memory_total_bytes is None:
        words = shared_words(account_in(view)) or "shared with the CPU: the driver gives no figures of its own"
        return (Cell(words, "dim"),)
    share = used_share(view)
    if share is None:
        return (unknown(gpu.unknown.get("memory_used_bytes") or gpu.unknown.get("memory_total_bytes")),)
    figures = f"{gib(gpu.memory_used_bytes)} of {gib(gpu.memory_total_bytes)} GiB, {share:.0%}"
    free = f", {gib(gpu.memory_free_bytes)} free" if gpu.memory_free_bytes is not None else ""
    # Figures of any length stand beside a bar that keeps its length.
    cells = min(_BAR, room - 4 - len("1000.0 of 1000.0 GiB, 100%, 1000.0 free"))
    if cells < _SHORTEST_BAR:
        return (Cell(figures, "strong"), Cell(free if len(figures + free) <= room else "", "strong"))
    tone = STATE_TONES[memory_state(view)] or "info"
    return (
        Cell("[", "dim"),
        Cell(bar(share, cells, glyphs), "info" if tone in ("ok", "watch") else tone),
        Cell("]  ", "dim"),
        Cell(f"{figures}{free}", "strong"),
    )


def _work(gpu: Gpu, room: int) -> _Row:
    use = "–" if gpu.utilization_pct is None else f"{gpu.utilization_pct} %"
    heat = temperature_cell(gpu)
    power = "–" if gpu.power_w is None else f"{gpu.power_w:.0f} W"
    limit = "" if gpu.power_limit_w is None else f" of {gpu.power_limit_w:.0f} W"
    throttle = throttle_words(gpu)
    slowed = Cell(f"  slowed by {throttle}" if throttle else "", "risk")
    line = (Cell(f"{use}  ", "strong"), Cell(f"{heat.text}  ", heat.tone), Cell(f"{power}{limit}"), slowed)
    return _cut("at work", line, room, Field("at work", (line,)))


def _cut(title: str, line: Line, room: int, whole: Field | None) -> _Row:
    """A row; with the ``whole`` of it where it is too long."""
    fits = details.cells_of(line) <= room
    return _Row(title, details.in_a_row(line, room), None if fits else whole)
