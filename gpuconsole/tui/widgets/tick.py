"""A box to tick: a sign and words, plain ASCII, reached by the keyboard; and lines as wide as they need be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.cells import cell_len
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message

from gpuconsole.tui.present.cell import Cell, Tone
from gpuconsole.tui.widgets.lines import Line, Lines


class Snug(Lines):
    """Lines that are as wide as what they say."""

    def _width(self) -> int:
        return max((sum(cell_len(cell.text) for cell in line) for line in self.lines), default=0)

    def show(self, lines: Sequence[Line]) -> None:
        """Show ``lines``; with another width the row is laid out anew."""
        before = self._width()
        super().show(lines)
        if self._width() != before:
            self.refresh(layout=True)

    def get_content_width(self, container: Size, viewport: Size) -> int:
        """As many cells as the longest line."""
        return self._width()


class Tick(Snug, can_focus=True):
    """``[X] words``; space or enter turns it round."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("space,enter", "turn", "Tick", show=False)]

    class Turned(Message):
        """The person turned it round."""

        def __init__(self, tick: Tick) -> None:
            super().__init__()
            self.tick = tick

    def __init__(self, words: str, *, id: str, value: bool = False) -> None:
        super().__init__(id=id)
        self._words = words
        self._value = value
        self.touched = False
        """The person decided it; what is only proposed does not change it any more."""

    @property
    def value(self) -> bool:
        """Whether it is ticked."""
        return self._value

    def propose(self, value: bool) -> None:
        """Tick it or not, unless the person has decided."""
        if not self.touched and value != self._value:
            self._value = value
            self._draw()

    def decide(self, value: bool) -> None:
        """Tick it or not, as the person decided."""
        self._value, self.touched = value, True
        self._draw()

    def leave_open(self, value: bool) -> None:
        """Tick it or not, as one that nobody has decided."""
        self._value, self.touched = value, False
        self._draw()

    def on_mount(self) -> None:
        """Draw it."""
        self._draw()

    def on_focus(self) -> None:
        """Show that keys go here."""
        self._draw()

    def on_blur(self) -> None:
        """Show that they do not."""
        self._draw()

    def _draw(self) -> None:
        sign = "X" if self._value else " "
        tone: Tone = "cursor" if self.has_focus else "accent" if self._value else ""
        self.show([(Cell(f"[{sign}] {self._words}", tone),)])

    def action_turn(self) -> None:
        """Turn it round."""
        self.decide(not self._value)
        self.post_message(self.Turned(self))

    def on_click(self) -> None:
        """Turn it round."""
        self.action_turn()
