"""A history as a filled line of any height."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from gpuconsole.tui.present.cell import Cell, Tone
from gpuconsole.tui.theme import Glyphs

Line = tuple[Cell, ...]
_HELD_S = 12.0
"""A value stands for what was not looked at after it, for so long: the slowest pace, and a little."""
_LABEL = 6


def columns(
    samples: Iterable[tuple[float, float | None]], *, end: float, span_s: float, width: int
) -> list[float | None]:
    """The mean of each of ``width`` equal parts of the ``span_s`` seconds before ``end``; None where unknown.

    The parts begin at the same moments from look to look, so that the picture moves by whole columns.
    """
    part_s = span_s / width
    last = int(end / part_s)
    sums: dict[int, tuple[float, int]] = {}
    seen: dict[int, tuple[float, float | None]] = {}
    held: tuple[float, float | None] | None = None
    for at, value in samples:
        place = int(at / part_s) - last + width - 1
        if place < 0:
            held = (at, value)
        if not 0 <= place < width:
            continue
        seen[place] = (at, value)
        if value is not None:
            total, count = sums.get(place, (0.0, 0))
            sums[place] = (total + value, count + 1)
    found: list[float | None] = []
    for place in range(width):
        held = seen.get(place, held)
        if place in sums:
            total, count = sums[place]
            found.append(total / count)
        else:
            begins = (last - width + 1 + place) * part_s
            found.append(held[1] if held is not None and begins - held[0] < _HELD_S else None)
    return found


def area(values: Sequence[float | None], height: int, glyphs: Glyphs, *, top: float) -> list[str]:
    """``values`` as ``height`` rows, the upper first; zero is a line at the bottom, unknown is empty."""
    steps = len(glyphs.spark) - 1
    levels = [
        None if value is None else max(1, round(min(max(value / top, 0.0), 1.0) * height * steps)) for value in values
    ]
    rows = []
    for row in range(height - 1, -1, -1):
        marks = [" " if level is None else glyphs.spark[min(max(level - row * steps, 0), steps)] for level in levels]
        rows.append("".join(marks))
    return rows


def chart(
    title: str,
    values: Sequence[float | None],
    *,
    height: int,
    top: float,
    label: Callable[[float], str],
    tone: Tone,
    glyphs: Glyphs,
) -> list[Line]:
    """A title and the area below, with the scale beside it; ``len(values) + 7`` cells wide."""
    width = len(values) + _LABEL + 1
    known = [value for value in values if value is not None]
    extent = f"{label(min(known))} … {label(max(known))}" if known else "nothing known yet"
    head = f" {title}  "
    rows = area(values, height, glyphs, top=top)
    lines: list[Line] = [(Cell(head, "strong"), Cell(extent[: width - len(head)].ljust(width - len(head)), "dim"))]
    for place, row in enumerate(rows):
        scale = label(top) if place == 0 else label(0) if place == height - 1 else ""
        lines.append((Cell(f"{scale:>{_LABEL}} ", "dim"), Cell(row, tone)))
    return lines


def chart_width(cells: int) -> int:
    """Values that a chart of ``cells`` cells shows."""
    return max(4, cells - _LABEL - 1)


def side_by_side(left: Sequence[Line], right: Sequence[Line]) -> list[Line]:
    """Two charts of one height beside each other."""
    return [(*one, Cell("  "), *other) for one, other in zip(left, right, strict=True)]
