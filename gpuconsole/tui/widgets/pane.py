"""All about the thing under the cursor, beside the list: shown as it is, never in the focus."""

from __future__ import annotations

from collections.abc import Callable

from textual.message import Message

from gpuconsole.core.text import shorten
from gpuconsole.tui.present.cell import Cell
from gpuconsole.tui.theme import Glyphs
from gpuconsole.tui.widgets.lines import Line, Lines


class DetailPane(Lines):
    """A headline and as many lines as there is room for; what is left out is said."""

    class Resized(Message):
        """There is another room to fill."""

    def __init__(self, glyphs: Glyphs, *, id: str) -> None:
        super().__init__(id=id)
        self._more = f" {glyphs.ellipsis} enter shows the rest"

    def on_resize(self) -> None:
        """Ask for lines that fit."""
        self.post_message(self.Resized())

    def fill(self, headline: str, kind: str, lines: Callable[[int], list[Line]]) -> None:
        """Show a thing.

        Args:
            headline: Its name.
            kind: What it is, in a word.
            lines: Gives its lines for so many cells.
        """
        width, height = self.size.width, self.size.height
        if not width or not height:
            return
        name = shorten(headline, max(8, width - len(kind) - 4))
        body = lines(width)
        room = height - 2
        if len(body) > room:
            body = [*body[: max(0, room - 1)], (Cell(self._more, "dim"),)]
        self.show([(Cell(f" {name}", "strong"), Cell(f"  {kind}", "dim")), (), *body])

    def empty(self) -> None:
        """Show nothing: the cursor is on nothing."""
        self.show([])
