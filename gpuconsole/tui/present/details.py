"""All about one thing: titled fields of cells, and how they are laid out in any width."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from rich.cells import cell_len, chop_cells, set_cell_size

from gpuconsole.core.text import duration
from gpuconsole.services.runs import Run, RunState
from gpuconsole.services.secrets import mask_environment, mask_value
from gpuconsole.tui.keymap import USUAL, Keymap
from gpuconsole.tui.present.cell import Cell, Tone
from gpuconsole.tui.present.container import check_cell
from gpuconsole.tui.theme import Glyphs

Line = tuple[Cell, ...]
_LONGEST = 2_000
"""Characters of one value that are shown."""
_TITLE = 12
_INDENT = Cell("  ")
_WORDS = re.compile(r"\S+\s*|\s+")


@dataclass(frozen=True, slots=True)
class Field:
    """Something known of the thing; without lines it is left out."""

    title: str
    lines: tuple[Line, ...]
    """Of each line the last cell flows on in further rows where it is too long."""


def field(title: str, *lines: str | Cell | Line | None) -> Field:
    """A field of lines, each a text, a cell or several; None and empty texts are left out."""
    return Field(title, tuple(_line(line) for line in lines if line))


def with_field(fields: Sequence[Field], more: Field, *, after: Sequence[str]) -> tuple[Field, ...]:
    """``fields`` with one more after the first there is of these titles; at the end when there is none."""
    titles = [each.title for each in fields]
    place = next((titles.index(title) + 1 for title in after if title in titles), len(titles))
    return (*fields[:place], more, *fields[place:])


def _line(line: str | Cell | Line) -> Line:
    if isinstance(line, str):
        return (Cell(line),)
    return (line,) if isinstance(line, Cell) else line


def unknown(reason: str | None) -> Cell:
    """What is not known, and why."""
    return Cell(f"–  {reason or 'not known'}", "dim")


def room(width: int) -> int:
    """Cells beside the titles, in rows of ``width`` cells."""
    return max(8, width - _TITLE - 2)


def cells_of(line: Line) -> int:
    """Cells that a line takes."""
    return sum(cell_len(cell.text) for cell in line)


def in_a_row(line: Line, width: int) -> Line:
    """``line`` cut to ``width`` cells with an ellipsis, so that it never flows on into another row."""
    found: list[Cell] = []
    left = width
    for cell in line:
        size = cell_len(cell.text)
        if size > left:
            found.append(Cell(f"{set_cell_size(cell.text, left - 1)}…" if left > 0 else "", cell.tone))
            break
        found.append(cell)
        left -= size
    return (*found, Cell(""))  # the last cell is what flows: there is nothing in it


def laid_out(fields: Iterable[Field], width: int) -> list[Line]:
    """The fields in rows of ``width`` cells."""
    rows: list[Line] = []
    for each in fields:
        title = each.title
        for line in each.lines:
            for row in _flowing(line, room(width)):
                rows.append((Cell(set_cell_size(f" {title}", _TITLE), "dim"), Cell(" "), *row))
                title = ""
    return rows


def _flowing(line: Line, width: int) -> list[Line]:
    """A line in rows: what comes before its last cell stands once, the last cell flows beside it."""
    *head, last = line
    used = sum(cell_len(cell.text) for cell in head)
    if used > width // 2:
        # Too little room beside it: below it, indented.
        return [*_filled(head, width), *((_INDENT, Cell(part, last.tone)) for part in wrapped(last.text, width - 2))]
    first, *rest = wrapped(last.text, width - used) or [""]
    return [(*head, Cell(first, last.tone)), *((Cell(" " * used), Cell(part, last.tone)) for part in rest)]


def _filled(cells: Iterable[Cell], width: int) -> list[Line]:
    """Cells one after another, in as many rows as they need; one that is too wide is cut."""
    rows: list[list[Cell]] = [[]]
    used = 0
    for cell in cells:
        size = cell_len(cell.text.rstrip())
        if rows[-1] and used + size > width:
            rows.append([_INDENT])
            used = 2
        text = cell.text if used + cell_len(cell.text) <= width else set_cell_size(cell.text, width - used)
        rows[-1].append(Cell(text, cell.tone))
        used += cell_len(text)
    return [tuple(row) for row in rows]


def wrapped(text: str, width: int) -> list[str]:
    """``text`` in rows of ``width`` cells, broken between words where it can be."""
    return list(_wrapped(text, width))


@lru_cache(512)  # of a thing that is looked at again and again most texts stay
def _wrapped(text: str, width: int) -> tuple[str, ...]:
    rows, row, used = [], "", 0
    for word in _WORDS.findall(one_line(text)):
        size = cell_len(word.rstrip())
        if size > width:
            # It has to be broken anyway, so it begins beside what stands there.
            *whole, word = chop_cells(f"{row}{word}", width)
            rows += whole
            row, used = "", 0
        elif row and used + size > width:
            rows.append(row.rstrip())
            row, used = "", 0
        row, used = row + word, used + cell_len(word)
    return (*rows, row.rstrip()) if row.strip() else tuple(rows)


def one_line(text: str) -> str:
    """``text`` without line breaks, which would pass for further entries, and not endless."""
    text = text.replace("\n", " ⏎ ").replace("\t", " ")
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… ({len(text) - _LONGEST:,} more characters)"


def variables(pairs: Iterable[tuple[str, str | None]]) -> tuple[Line, ...]:
    """Variables of an environment, secrets masked."""
    return tuple(_pair(name, value) for name, value in mask_environment(pairs))


def labels(pairs: Iterable[tuple[str, str]]) -> tuple[Line, ...]:
    """Labels in the order of their names, secrets masked."""
    return tuple(_pair(name, mask_value(name, value)) for name, value in sorted(pairs))


def _pair(name: str, value: str | None) -> Line:
    return (Cell(name if value is None else f"{name}={value}"),)


def check_field(
    runs: Sequence[Run], subject_id: str, *, now: float, glyphs: Glyphs, keys: Keymap = USUAL, action: str
) -> Field:
    """The check under way and the last one that ended, with what was wrong; ``action`` is what checks it."""
    from gpuconsole.tui.present.checkdetails import checks_in

    mine = [run for run in runs if run.subject_id == subject_id and run.kind.value == "check"]
    lines: list[Line] = []
    for run in [run for run in mine if not run.ended][:1]:
        share = "" if run.progress is None else f" {run.progress:.0%}"
        lines.append((Cell(f"runs{share}  ", "info"), Cell(run.headline)))
    ended = [run for run in mine if run.ended]
    told = [run for run in ended if run.state is not RunState.CANCELLED]
    for run in (told or ended)[:1]:  # one that was cut short says nothing of the thing
        verdict = check_cell(run, glyphs)
        lines.append((Cell(f"{verdict.text}  ", verdict.tone), Cell(run.headline)))
        lines.append((Cell(f"{duration(now - (run.ended_at or run.started_at))} ago", "dim"),))
        for check in checks_in(run):
            if check.status in ("fail", "warn"):
                tone: Tone = "critical" if check.status == "fail" else "watch"
                lines.append((Cell(f"{check.status} ", tone), Cell(f"{check.name}: {check.why}")))
                lines += [(Cell("     "), Cell(f"→ {check.fix}", "dim"))] if check.fix else []
    return Field("check", tuple(lines) or ((Cell(f"not checked yet; {keys.name(action)} checks it", "dim"),),))
