"""What happened on a GPU, in words, with the signs that stand for it below a chart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len

from gpuconsole.core.text import duration, shorten
from gpuconsole.services.pastevents import EventKind, PastEvent
from gpuconsole.services.runs import RunState
from gpuconsole.tui.present.cell import Cell, Tone
from gpuconsole.tui.present.chart import Line, fitted
from gpuconsole.tui.present.chartaxis import clock
from gpuconsole.tui.present.gpu import THROTTLE_WORDS
from gpuconsole.tui.theme import Glyphs

_MOST = 9
"""Events that have a number: one digit."""
_GAP = 3
_RANK = {EventKind.LOST: 0, EventKind.PEAK: 2, EventKind.SLOWED: 3}
"""Which are left out last when there is no room for all; the others are in between."""
_BAD = (RunState.FAILED, RunState.WARN)


def words(event: PastEvent) -> Cell:
    """What happened, short."""
    about, how = shorten(event.about, 40), event.words
    if event.kind is EventKind.STARTED:
        return Cell(f"{about} started")
    if event.kind is EventKind.ENDED:
        told = "was removed" if how == "removed" else "ended" if how in ("", "ended") else f"ended ({how})"
        return Cell(f"{about} {told}", "risk" if how == "OOM" else "")
    if event.kind in (EventKind.CHECKED, EventKind.MEASURED):
        what = "check" if event.kind is EventKind.CHECKED else "benchmark"
        return Cell(f"{what} of {about}: {how}", "risk" if how in _BAD else "")
    if event.kind is EventKind.PEAK:
        return Cell(f"peak {(event.value or 0) / 2**30:.1f} GiB")
    lasted = ", still" if event.until is None else f" for {duration(event.until - event.at)}"
    if event.kind is EventKind.LOST:
        return Cell(f"{event.about.rstrip('.')}{lasted}", "critical")
    reasons = [THROTTLE_WORDS.get(slug, slug) for slug in event.about.split(", ")]
    return Cell(f"slowed by {', '.join(reasons)}{lasted}", "risk" if "hot" in " ".join(reasons) else "")


@dataclass(frozen=True, slots=True)
class Told:
    """Events, some of them with a number that a line of words explains."""

    events: tuple[PastEvent, ...]
    numbered: tuple[PastEvent, ...]
    legend: tuple[Line, ...]

    def spans(self, now: float, glyphs: Glyphs) -> list[tuple[str, float, float | None]]:
        """Sign, beginning and end of each; those with a number come first, the end is None for what has no length."""
        numbers = {id(event): f"{place}" for place, event in enumerate(self.numbered, 1)}
        ordered = sorted(self.events, key=lambda event: id(event) not in numbers)
        return [(numbers.get(id(event), glyphs.idle), event.at, _until(event, now)) for event in ordered]


def _until(event: PastEvent, now: float) -> float | None:
    if event.kind not in (EventKind.SLOWED, EventKind.LOST):
        return None
    return now if event.until is None else event.until


def told(events: Sequence[PastEvent], width: int, *, rows: int, seconds: bool) -> Told:
    """As many events in words as fit into ``rows`` of ``width`` cells: what matters most, and of that the newest.

    Args:
        events: Oldest first.
        width: Cells.
        rows: Lines at most.
        seconds: Tell their time to the second.
    """
    ranked = sorted(events, key=lambda event: (_RANK.get(event.kind, 1), -event.at))
    for many in range(min(_MOST, len(ranked)), 0, -1):
        chosen = sorted(ranked[:many], key=lambda event: event.at)
        lines = _flowing([_entry(number, event, seconds) for number, event in enumerate(chosen, 1)], width)
        if len(lines) <= rows or many == 1:
            return Told(tuple(events), tuple(chosen), tuple(lines[:rows]))
    return Told(tuple(events), (), ())


def _entry(number: int, event: PastEvent, seconds: bool) -> Line:
    said = words(event)
    tone: Tone = said.tone
    return Cell(f"{number} ", "accent"), Cell(f"{clock(event.at, seconds=seconds)} ", "dim"), Cell(said.text, tone)


def _flowing(entries: Sequence[Line], width: int) -> list[Line]:
    """Entries one after the other, none of them broken; one that is too wide is cut."""
    rows: list[list[Cell]] = []
    used = width
    for entry in entries:
        size = sum(cell_len(cell.text) for cell in entry)
        if size > width - 1:
            entry, size = fitted(entry, width - 1), width - 1
        if not rows or used + _GAP + size > width:
            rows.append([Cell(" ")])
            used = 1
        else:
            rows[-1].append(Cell(" " * _GAP))
            used += _GAP
        rows[-1] += entry
        used += size
    return [tuple(row) for row in rows]
