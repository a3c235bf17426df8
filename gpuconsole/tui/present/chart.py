"""A history as a filled line of any height, with what is ahead drawn beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size

from gpuconsole.tui.present.cell import Cell, Tone
from gpuconsole.tui.theme import Glyphs

Line = tuple[Cell, ...]
_LABEL = 6
LEFT = _LABEL + 1
"""Cells before the first column: the scale."""


@dataclass(frozen=True, slots=True)
class Times:
    """Which time each column stands for.

    The columns begin at the same moments from look to look, so that the picture moves by whole columns.
    """

    end: float
    """Seconds since the epoch; it is in the last column of the past."""
    span_s: float
    past: int
    """Columns of the past."""
    ahead: int = 0
    """Columns of what is to come."""

    @property
    def each_s(self) -> float:
        """Seconds a column."""
        return self.span_s / self.past

    @property
    def width(self) -> int:
        """Columns in all, with the one that parts what is to come from the past."""
        return self.past + (self.ahead + 1 if self.ahead else 0)

    @property
    def begins(self) -> float:
        """Where the first column begins."""
        return (int(self.end / self.each_s) - self.past + 1) * self.each_s

    def place(self, at: float) -> int:
        """The column of a moment, which may be outside; of what is to come, as drawn."""
        column = int(at // self.each_s) - int(self.end / self.each_s) + self.past - 1
        return column if column < self.past else column + 1


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


@dataclass(frozen=True, slots=True)
class Scale:
    """What the rows of a chart stand for."""

    top: float
    unit: str
    """As a number on the scale is written: ``{:.0f}``."""
    limit: bool = False
    """The top is the most there can be, and is drawn as a line."""

    def text(self, value: float) -> str:
        """A value as it stands beside the rows."""
        return self.unit.format(value)


class Ahead(NamedTuple):
    """What is to come: a line from now on, as values for each column; None where it has ended."""

    values: tuple[float | None, ...]
    tone: Tone


class _Canvas:
    """Rows of single signs with a tone each."""

    def __init__(self, width: int, height: int) -> None:
        self._signs = [[" "] * width for _ in range(height)]
        self._tones: list[list[Tone]] = [["" for _ in range(width)] for _ in range(height)]

    def put(self, row: int, column: int, sign: str, tone: Tone, *, over: bool = True) -> None:
        """Draw a sign; where something stands, only ``over`` it."""
        if sign != " " and (over or self._signs[row][column] == " "):
            self._signs[row][column] = sign
            self._tones[row][column] = tone

    def line(self, row: int) -> Line:
        """A row, neighbours of one tone together."""
        cells: list[Cell] = []
        for sign, tone in zip(self._signs[row], self._tones[row], strict=True):
            if cells and (cells[-1].tone == tone or sign == " "):
                cells[-1] = Cell(cells[-1].text + sign, cells[-1].tone)
            else:
                cells.append(Cell(sign, tone))
        return tuple(cells)


class _Signs(NamedTuple):
    """What charts are drawn with beside areas."""

    line: str
    """A line at four heights of a cell, the lowest first."""
    limit: str
    now: str


def _signs(glyphs: Glyphs) -> _Signs:
    return _Signs("_.-'", "-", "|") if glyphs.full.isascii() else _Signs("⣀⠤⠒⠉", "▔", "│")


def chart(
    title: Line,
    values: Sequence[float | None],
    *,
    times: Times,
    height: int,
    scale: Scale,
    tone: Tone,
    glyphs: Glyphs,
    high: float | None = None,
    ahead: Ahead | None = None,
) -> list[Line]:
    """A title and the area below, with the scale beside it; ``times.width + LEFT`` cells wide.

    Args:
        title: Cut where it is too long.
        values: Of each column of the past.
        times: Which time the columns stand for.
        height: Rows of the area.
        scale: What they stand for.
        tone: Of the area.
        glyphs: The signs to draw with.
        high: Where the high-water mark is; None for none.
        ahead: What is to come, when ``times`` has room for it.
    """
    canvas, signs = _Canvas(times.width, height), _signs(glyphs)
    for row, text in enumerate(area(values, height, glyphs, top=scale.top)):
        for column, sign in enumerate(text):
            canvas.put(row, column, sign, tone)
    labels = {height - 1: Cell(scale.text(0), "dim")}
    if high is not None:
        row, sign = _at(high, height, scale, signs)
        # In the row of the limit the two lines would be one muddle.
        for column in range(0, times.past if row or not scale.limit else 0, 2):
            canvas.put(row, column, sign, "watch", over=False)
        labels[row] = Cell(scale.text(high), "watch")
    labels[0] = Cell(scale.text(scale.top), "dim")
    if ahead is not None and times.ahead:
        _draw_ahead(canvas, ahead, times, height, scale, signs)
    for column in range(times.width if scale.limit else 0):
        canvas.put(0, column, signs.limit, "dim", over=False)
    lines = [fitted(title, times.width + LEFT)]
    for row in range(height):
        label = labels.get(row, Cell(""))
        lines.append((Cell(f"{label.text:>{_LABEL}} ", label.tone), *canvas.line(row)))
    return lines


def _draw_ahead(canvas: _Canvas, ahead: Ahead, times: Times, height: int, scale: Scale, signs: _Signs) -> None:
    """What is to come, and what parts it from the past."""
    for row in range(height):
        canvas.put(row, times.past, signs.now, "dim")
    for column, value in enumerate(ahead.values[: times.ahead]):
        if value is not None:
            row, sign = _at(value, height, scale, signs)
            canvas.put(row, times.past + 1 + column, sign, ahead.tone)


def _at(value: float, height: int, scale: Scale, signs: _Signs) -> tuple[int, str]:
    """The row from above, and the sign, of a line at that value."""
    steps = len(signs.line)
    step = min(height * steps - 1, int(min(max(value / scale.top, 0.0), 1.0) * height * steps))
    return height - 1 - step // steps, signs.line[step % steps]


def fitted(line: Line, width: int) -> Line:
    """``line`` in exactly ``width`` cells."""
    found, used = [], 0
    for cell in line:
        room = width - used
        text = cell.text if cell_len(cell.text) <= room else set_cell_size(cell.text, room)
        found.append(Cell(text, cell.tone))
        used += cell_len(text)
    return (*found, Cell(" " * (width - used)))


def side_by_side(left: Sequence[Line], right: Sequence[Line]) -> list[Line]:
    """Two charts of one height beside each other."""
    return [(*one, Cell("  "), *other) for one, other in zip(left, right, strict=True)]
