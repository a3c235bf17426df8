"""A screen of cells as an SVG picture: small, the same bytes for the same cells, true to the grid in every viewer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from xml.sax.saxutils import escape

from rich.cells import cell_len
from rich.color import Color
from rich.segment import Segment
from rich.style import Style

FONT_SIZE = 20.0
CELL = (12.04, 23.3)
"""Width and height of a cell: the advance and line height of DejaVu Sans Mono at that size, so that blocks join."""
_BASELINE = 18.2
_EDGE = 14.0
_OVERLAP = 0.6
"""Areas are so much wider and higher than their cells, or the seam between two neighbours would shine through."""
_AREAS = {sign: (1.0, (place + 1) / 8) for place, sign in enumerate("▁▂▃▄▅▆▇█")}
_AREAS |= {sign: ((place + 1) / 8, 1.0) for place, sign in enumerate("▏▎▍▌▋▊▉")}
"""Block signs: which share of their cell they fill, from the left and from below."""
_FAMILY = "'DejaVu Sans Mono', Menlo, Consolas, 'Liberation Mono', monospace"


@dataclass(frozen=True, slots=True)
class _Run:
    """Neighbouring cells that look the same."""

    column: int
    width: int
    text: str
    fill: str
    back: str
    weight: str


def picture(lines: Sequence[Sequence[Segment]], size: tuple[int, int], *, fill: str, back: str, alt: str) -> str:
    """The SVG.

    Args:
        lines: Segments of each row.
        size: Columns and rows.
        fill: Colour of text that has none of its own, ``#rrggbb``.
        back: Colour behind.
        alt: What the picture shows, for who cannot see it.
    """
    columns, rows = size
    width, height = columns * CELL[0] + 2 * _EDGE, rows * CELL[1] + 2 * _EDGE
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img">',
        f"<title>{escape(alt)}</title>",
        f'<rect width="{width:g}" height="{height:g}" rx="8" fill="{back}"/>',
        f'<g transform="translate({_EDGE:g} {_EDGE:g})" font-family="{_FAMILY}" font-size="{FONT_SIZE:g}">',
    ]
    for row, segments in enumerate(lines):
        runs = list(_runs(segments, fill, back))
        parts += [_rectangle(run, row) for run in runs if run.back != back]
        parts += [drawn for run in runs for drawn in _drawn(run, row)]
    return "\n".join([*parts, "</g>", "</svg>", ""])


def _runs(segments: Sequence[Segment], fill: str, back: str) -> Iterator[_Run]:
    column = 0
    waiting: _Run | None = None
    for text, style, control in segments:
        if control or not text:
            continue
        run = _run(column, text, style or Style.null(), fill, back)
        column += run.width
        if waiting is not None and _alike(waiting, run):
            waiting = _Run(
                waiting.column, waiting.width + run.width, waiting.text + run.text, waiting.fill, run.back, run.weight
            )
            continue
        if waiting is not None:
            yield waiting
        waiting = run
    if waiting is not None:
        yield waiting


def _alike(one: _Run, other: _Run) -> bool:
    return (one.fill, one.back, one.weight) == (other.fill, other.back, other.weight)


def _run(column: int, text: str, style: Style, fill: str, back: str) -> _Run:
    text = text.rstrip("\n")
    front, behind = _hex(style.color, fill), _hex(style.bgcolor, back)
    if style.reverse:
        front, behind = behind, front
    if style.dim:
        front = _mixed(front, behind)
    if not text.strip():
        front = fill
    return _Run(column, cell_len(text), text, front, behind, "bold" if style.bold and text.strip() else "")


def _hex(color: Color | None, default: str) -> str:
    return default if color is None or color.is_default else color.get_truecolor().hex


def _mixed(one: str, other: str) -> str:
    pairs = ((int(one[place : place + 2], 16), int(other[place : place + 2], 16)) for place in (1, 3, 5))
    return "#" + "".join(f"{(first + second) // 2:02x}" for first, second in pairs)


def _rectangle(run: _Run, row: int) -> str:
    return (
        f'<rect x="{run.column * CELL[0]:g}" y="{row * CELL[1]:g}" width="{run.width * CELL[0] + _OVERLAP:g}" '
        f'height="{CELL[1] + _OVERLAP:g}" fill="{run.back}"/>'
    )


def _drawn(run: _Run, row: int) -> Iterator[str]:
    """Its blocks as areas, since a font's would leave seams between rows, and the words between them as text."""
    column = run.column
    for blocks, characters in groupby(run.text, key=lambda character: character in _AREAS):
        part = "".join(characters)
        if blocks:
            yield _areas(part, column, row, run.fill)
        elif part.strip():
            yield _text(part, column, row, run)
        column += cell_len(part)


def _areas(part: str, column: int, row: int, fill: str) -> str:
    path = ""
    for (across, up), alike in groupby(part, key=_AREAS.__getitem__):
        count = len(list(alike))
        step = count if across == 1 else 1
        for first in range(0, count, step):
            x, bottom = (column + first) * CELL[0], (row + 1) * CELL[1]
            width = step * CELL[0] if across == 1 else across * CELL[0]
            top = bottom - up * CELL[1]
            path += f"M{x:g} {top:g}H{x + width + _OVERLAP:g}V{bottom + _OVERLAP:g}H{x:g}Z"
        column += count
    return f'<path fill="{fill}" d="{path}"/>'


def _text(part: str, column: int, row: int, run: _Run) -> str:
    """Words, at the place of their cells: where the font is another one, only their ends are off."""
    weight = f' font-weight="{run.weight}"' if run.weight else ""
    words = part.rstrip()
    start = column + cell_len(words) - cell_len(words.lstrip())
    words = words.lstrip()
    return (
        f'<text x="{start * CELL[0]:g}" y="{row * CELL[1] + _BASELINE:g}" textLength="{cell_len(words) * CELL[0]:g}" '
        f'fill="{run.fill}"{weight} xml:space="preserve">{escape(words)}</text>'
    )
