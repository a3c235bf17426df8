"""Tables and wrapped text, measured in terminal cells: side by side where there is room, below each other where not."""

from __future__ import annotations

import sys
import unicodedata

from gpuconsole.core.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Literal

_FLOOR = 8
"""Cells below which a column is not narrowed: less of a name says nothing."""
_WIDEST = 100
"""Cells that a column's other rows are filled up to at most, however long one of them is."""
_LEAST = 8
"""Cells that text is wrapped to at least, however narrow the terminal."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    title: str
    align: Literal["left", "right"] = "left"
    flexible: bool = False
    """It gives way when the terminal is narrow, down to eight characters."""


def width_of(text: str) -> int:
    """Terminal cells of ``text``."""
    return sum(map(_cells, text))


def _cells(char: str) -> int:
    return 0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1


def table(columns: Sequence[Column], rows: Sequence[Sequence[str]], *, width: int | None = None) -> str:
    """Rows under titles, two spaces apart, cut to the terminal's width where a column allows it.

    Where that does not suffice each row becomes some lines, a cell in each with its title. When stdout is no terminal
    nothing is cut, so that scripts get whole names; one that is very long moves its own row only.
    """
    widths = [
        max([width_of(column.title), *(width_of(row[i]) for row in rows)], default=0)
        for i, column in enumerate(columns)
    ]
    if width is None and sys.stdout.isatty():
        import shutil

        width = shutil.get_terminal_size().columns
    if width is not None and not _narrow(widths, columns, sum(widths) + 2 * (len(widths) - 1) - width):
        return "\n".join(line for row in rows for line in _stacked(columns, row, width))
    if width is None:
        widths = [min(each, _WIDEST) for each in widths]
    lines = []
    for cells in ([column.title for column in columns], *rows):
        line = "  ".join(_fit(cell, widths[i], columns[i].align, cut=width is not None) for i, cell in enumerate(cells))
        lines.append(line.rstrip())
    return "\n".join(lines)


def _narrow(widths: list[int], columns: Sequence[Column], excess: int) -> bool:
    """Take ``excess`` cells from the flexible columns, the widest first; whether they had so many to give."""
    while excess > 0:
        candidates = [i for i, column in enumerate(columns) if column.flexible and widths[i] > _FLOOR]
        if not candidates:
            return False
        widest = max(candidates, key=lambda i: widths[i])
        widths[widest] -= 1
        excess -= 1
    return True


def _stacked(columns: Sequence[Column], row: Sequence[str], width: int) -> Iterator[str]:
    """A row in lines: its first cell, and below it the others, each with its title."""
    yield from wrapped(f"{columns[0].title} {row[0].strip() or '–'}", width, rest="    ")
    for column, cell in zip(columns[1:], row[1:], strict=True):
        if cell.strip():
            yield from wrapped(f"{column.title} {cell.strip()}", width, first="  ", rest="    ")


def _fit(text: str, width: int, align: str, *, cut: bool) -> str:
    if cut and width_of(text) > width:
        text = text[: fitting(text, width - 1)] + "…"
    padding = " " * (width - width_of(text))
    return padding + text if align == "right" else text + padding


def fitting(text: str, cells: int) -> int:
    """How many characters of ``text`` fit in so many cells."""
    used = 0
    for position, char in enumerate(text):
        used += _cells(char)
        if used > cells:
            return position
    return len(text)


def wrapped(text: str, width: int, *, first: str = "", rest: str = "", whole_words: bool = False) -> list[str]:
    """``text`` in lines of ``width`` cells, never none.

    Args:
        text: One paragraph.
        width: Of the terminal; less than anybody can read in is taken for that.
        first: Before the first line.
        rest: Before the others.
        whole_words: A word that is too long stays whole, and the terminal folds it: commands and addresses are copied.
    """
    lines: list[str] = []
    line = ""
    for word in text.split():
        prefix = rest if lines else first
        room = max(_LEAST, width - width_of(prefix))
        if line and width_of(line) + 1 + width_of(word) <= room:
            line += f" {word}"
            continue
        if line:
            lines.append(prefix + line)
            prefix = rest
            room = max(_LEAST, width - width_of(prefix))
        while width_of(word) > room and not whole_words:
            cut = max(1, fitting(word, room))
            lines.append((rest if lines else first) + word[:cut])
            word = word[cut:]
            room = max(_LEAST, width - width_of(rest))
        line = word
    return [*lines, (rest if lines else first) + line]
