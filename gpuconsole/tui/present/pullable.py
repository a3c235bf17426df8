"""What could be pulled: names that complete what was typed, and what is known of one."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpuconsole.core.errors import ConsoleError
from gpuconsole.core.text import plain_line
from gpuconsole.images.reference import parse
from gpuconsole.tui.present import verdict as verdicts
from gpuconsole.tui.present.cell import Cell
from gpuconsole.tui.theme import Glyphs

if TYPE_CHECKING:
    from gpuconsole.services.images import ImageView
    from gpuconsole.services.shelf import Shelf

_MOST = 200
_LINES = 3
Line = tuple[Cell, ...]


def choices(words: str, shelf: Shelf | None, images: Sequence[ImageView], glyphs: Glyphs) -> list[tuple[str, str]]:
    """References with all the words in them, each with what it would be here.

    What a lock file pins stands first, then the catalog with what runs here before what does not, then what is here.
    """
    wanted = words.lower().split()
    found: dict[str, str] = {}
    for holds in (shelf.holds if shelf is not None else {}).values():
        found |= {hold.reference: "pinned" for hold in holds}
    listed = sorted(shelf.catalog if shelf is not None else (), key=lambda view: not verdicts.fits(view.verdict))
    for view in listed:
        found.setdefault(view.image.reference, verdicts.word_cell(view.verdict.word, glyphs).text)
    for image in images:
        for tag in image.image.tags:
            found.setdefault(tag, "is here")
    fitting = [(name, told) for name, told in found.items() if all(word in name.lower() for word in wanted)]
    return fitting[:_MOST]


def known(text: str, shelf: Shelf | None, glyphs: Glyphs, *, width: int) -> list[Line]:
    """The verdict on what was typed, in a few lines; or that nothing is known of it."""
    if not text:
        return [(Cell("The catalog's images are completed; any other reference can be pulled too.", "dim"),)]
    try:
        name = str(parse(text))
    except ValueError:
        return [(Cell("Not a whole reference yet.", "dim"),)]
    view = next((each for each in shelf.catalog if each.image.reference == name), None) if shelf is not None else None
    if view is None:
        return [(Cell("The catalog does not know it: whether it runs here shows once it is here.", "dim"),)]
    cell = verdicts.word_cell(view.verdict.word, glyphs)
    parts = textwrap.wrap(verdicts.why(view.verdict), max(20, width - len(cell.text) - 2)) or [""]
    lines: list[Line] = [(cell, Cell(f"  {parts[0]}"))]
    lines += [(Cell(" " * (len(cell.text) + 2)), Cell(part)) for part in parts[1:_LINES]]
    if view.instead is not None:
        lines.append((Cell("→ instead  ", "accent"), Cell(view.instead.reference)))
    return lines


def refused(error: ConsoleError) -> list[Line]:
    """Why it cannot be pulled, and what to do."""
    return [(Cell(plain_line(error.message), "critical"),), (Cell(f"→ {plain_line(error.hint)}", "dim"),)]
