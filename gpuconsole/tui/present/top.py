"""The first line and the line of tabs."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from gpuconsole.core.text import shorten
from gpuconsole.host.model import HostView
from gpuconsole.tui.present.cell import Cell
from gpuconsole.tui.theme import UNICODE, Glyphs

if TYPE_CHECKING:
    from gpuconsole.engine.model import EngineInfo

STALE_AFTER = 3.0
"""So many missed looks make the GPUs' figures stale."""


def line(
    host: HostView | None,
    engine: EngineInfo | None,
    *,
    host_name: str,
    width: int,
    now: float,
    pace_s: float,
    readonly: bool,
) -> tuple[Cell, ...]:
    """Host, driver, CUDA, engine; the clock on the right, or how old the figures are."""
    parts = []
    if host is not None and host.snapshot.driver_version:
        parts.append(f"driver {host.snapshot.driver_version.rpartition('.')[0] or host.snapshot.driver_version}")
        if host.snapshot.cuda_version:
            parts.append(f"CUDA {host.snapshot.cuda_version}")
    if engine is not None:
        parts.append(f"{engine.name or 'engine'} {'.'.join(engine.version.split('+')[0].split('.')[:2])}")
    if readonly:
        parts.append("read-only")
    age = None if host is None else now - host.snapshot.taken_at
    stale = age is not None and age > max(STALE_AFTER * pace_s, 4.0)
    right = f"{age:.0f} s old " if stale and age is not None else f"{time.strftime('%H:%M:%S', time.localtime(now))} "
    name = " gpuconsole "
    facts = shorten(" · ".join([host_name, *parts]), max(0, width - len(name) - len(right) - 2))
    gap = max(1, width - len(name) - len(facts) - 1 - len(right))
    return (
        Cell(name, "accent"),
        Cell(f" {facts}"),
        Cell(" " * gap),
        Cell(right, "risk" if stale else "dim"),
    )


_TITLES = {"containers": "Containers", "images": "Images", "processes": "Processes", "runs": "Runs"}


def tabs(
    counts: Mapping[str, int | None],
    chosen: str,
    *,
    words: str,
    marks: Sequence[str],
    width: int,
    going: int = 0,
    glyphs: Glyphs = UNICODE,
) -> tuple[Cell, ...]:
    """The lists with their sizes; the one shown stands out, also without colour.

    Args:
        counts: How many there are of each; None is not known.
        chosen: The list that is shown.
        words: What it is filtered by.
        marks: What else is left out of it, or added, a word each.
        width: Cells of the line.
        going: How many runs are under way.
        glyphs: The signs to draw with.
    """
    cells = [Cell(" ")]
    for name, title in _TITLES.items():
        count = counts.get(name)
        text = f"{title} {count}" if count is not None else title
        cells.append(Cell(f"[{text}]" if name == chosen else f" {text} ", "strong" if name == chosen else "dim"))
    if going:
        gap = " " if chosen == "runs" else ""  # the last of the tabs
        cells.append(Cell(f"{gap}{glyphs.busy}{going} ", "info"))
    told = " · ".join([*([f"/{words}"] if words else []), *marks])
    used = sum(len(cell.text) for cell in cells)
    room = width - used - 1
    if room >= 8:
        text = shorten(told or "/ filter", room)
        cells.append(Cell(text.rjust(room) + " ", "accent" if told else "dim"))
    return tuple(cells)
