"""Cells and rows: what presenters make and grids draw.

A cell is plain text and the name of a style, so that two of them compare cheaply and a grid redraws only what changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

Tone = Literal["", "dim", "strong", "ok", "info", "watch", "risk", "critical", "accent", "cursor"]
"""Names of styles; each has a class ``tone--<name>`` in the stylesheet."""


class Cell(NamedTuple):
    """Text of one line, and how it is meant."""

    text: str
    tone: Tone = ""


EMPTY = Cell("–", "dim")
"""A value that is not known or does not apply."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a grid."""

    key: str
    """What the row is about: a container's id, a GPU's UUID. The cursor stays on it."""
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a grid."""

    key: str
    title: str
    width: int
    """Cells it takes at least."""
    align: Literal["left", "right"] = "left"
    grow: int = 0
    """Share of the room that is left; 0 keeps its width."""
    rank: int = 0
    """When the terminal is narrow, columns of the highest rank go first; rank 0 always stays."""


def laid_out(columns: tuple[Column, ...], width: int) -> tuple[tuple[int, Column, int], ...]:
    """Which columns are shown in ``width`` cells, as (index, column, cells), one space between them."""
    shown = list(enumerate(columns))
    while len(shown) > 1 and sum(column.width + 1 for _, column in shown) - 1 > width:
        last = max(shown, key=lambda item: (item[1].rank, item[0]))
        if last[1].rank == 0:
            break
        shown.remove(last)
    room = width - (sum(column.width + 1 for _, column in shown) - 1)
    shares = sum(column.grow for _, column in shown)
    result = []
    for index, column in shown:
        extra = 0
        if room > 0 and shares and column.grow:
            extra = room * column.grow // shares
            room -= extra
            shares -= column.grow
        result.append((index, column, column.width + extra))
    return tuple(result)
