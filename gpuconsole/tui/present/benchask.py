"""What a benchmark would be run on, and what it would run, before it is begun."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import set_cell_size

from gpuconsole.core.errors import UsageError
from gpuconsole.core.text import duration, shorten
from gpuconsole.probes.catalog import bench_deadline_s, benchmarks_for
from gpuconsole.services.benching import BenchWish
from gpuconsole.services.benchtargets import BenchTarget
from gpuconsole.tui.present.cell import Cell
from gpuconsole.tui.present.details import Line, wrapped
from gpuconsole.tui.theme import Glyphs

_TITLE = 24
MOST = 7
"""Rows of targets that are shown at once where there is room."""


def targets(found: Sequence[BenchTarget], chosen: int, *, width: int, glyphs: Glyphs, most: int = MOST) -> list[Line]:
    """At most ``most`` targets around the chosen one, which is marked."""
    if len(found) == 1:
        return [(Cell(part, "dim"),) for part in wrapped(found[0].note, width)]
    top = max(0, min(chosen - most // 2, len(found) - most))
    room = min(_TITLE, max(len(target.title) for target in found))
    lines: list[Line] = []
    for place, target in enumerate(found[top : top + most], start=top):
        mark, here = (f"{glyphs.pointer} ", True) if place == chosen else ("  ", False)
        title = set_cell_size(shorten(target.title, room), room)
        note = shorten(target.note, max(4, width - room - 4))
        lines.append((Cell(mark, "accent"), Cell(f"{title}  ", "strong" if here else ""), Cell(note, "dim")))
    left = len(found) - len(lines)
    if left:
        lines.append((Cell(f"  and {left} more: up and down go through them", "dim"),))
    return lines


def names_in(text: str) -> tuple[str, ...]:
    """Benchmarks as a person lists them, with commas or spaces between."""
    return tuple(text.replace(",", " ").split())


def plan(text: str, target: BenchTarget, *, width: int) -> list[Line]:
    """What quick and full would run; or why that cannot be."""
    only = names_in(text)
    try:
        modes = {mode: benchmarks_for(mode, only) for mode in ("quick", "full")}
    except UsageError as error:
        return [*_wrapped(error.message, "critical", width), *_wrapped(error.hint or "", "accent", width)]
    lines: list[Line] = []
    for mode, each in modes.items():
        named = " ".join(one.id.removeprefix("bench.") for one in sorted(each, key=lambda one: one.code))
        words = named if mode == "quick" or only else f"all {len(each)}, longer"
        most = duration(bench_deadline_s(mode, each))
        head = Cell(f"{mode:<6}")
        rows = wrapped(f"{words}; {most} at most", width - 6)
        lines += [(head if not place else Cell(" " * 6), Cell(row, "dim")) for place, row in enumerate(rows)]
    if target.shared:
        words = "Others hold the GPU: what they do is in the figures, which are marked and judge nothing later."
        lines += _wrapped(words, "watch", width)
    elif target.given:
        words = "Another container was given the GPU: what is measured while it begins something there is marked."
        lines += _wrapped(words, "watch", width)
    return lines


def _wrapped(text: str, tone: str, width: int) -> list[Line]:
    return [(Cell(part, tone),) for part in wrapped(text, width)]  # type: ignore[arg-type]


def wish(text: str, *, full: bool) -> BenchWish:
    """What is to be measured.

    Raises:
        UsageError: There is no benchmark of a name in ``text``.
    """
    only = names_in(text)
    benchmarks_for("full", only)
    return BenchWish(full=full, only=only)
