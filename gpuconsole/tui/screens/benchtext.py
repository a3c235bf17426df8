"""What screens with lines about benchmarks share: a title, lines that scroll, keys."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll

from gpuconsole.core.text import shorten
from gpuconsole.tui import actions, sheets
from gpuconsole.tui.leaving import leave
from gpuconsole.tui.present.cell import Cell
from gpuconsole.tui.screens.asker import Asker
from gpuconsole.tui.widgets.keyline import KeyLine
from gpuconsole.tui.widgets.lines import Line, Lines

if TYPE_CHECKING:
    from gpuconsole.tui.app import ConsoleApp


class BenchText(Asker):
    """Lines about benchmarks."""

    app: ConsoleApp
    CSS_PATH = sheets.of("bench")
    AUTO_FOCUS = "#body"
    BINDINGS: ClassVar[list[BindingType]] = [
        actions.BACK.binding(),
        Binding("j", "scroll(1)", "Down", show=False),
        Binding("k", "scroll(-1)", "Up", show=False),
        Binding("space", "page", "Page down", show=False),
    ]

    def compose(self) -> ComposeResult:
        """Title, lines, keys."""
        yield Lines(id="top")
        with VerticalScroll(id="body"):
            yield Lines(id="facts")
        yield KeyLine(id="keys")

    def on_mount(self) -> None:
        """Draw what is there."""
        self.draw()

    def on_resize(self, event: events.Resize) -> None:
        """Fit anew."""
        self.draw()

    @abstractmethod
    def title_words(self) -> tuple[str, str]:
        """What it is about, and what that is."""

    @abstractmethod
    def lines(self, width: int) -> list[Line]:
        """All of it in rows of ``width`` cells."""

    def draw(self) -> None:
        """Draw it anew."""
        if not self.is_mounted or not self.size.width:
            return
        width = self.size.width
        title, kind = self.title_words()
        name = Cell(f" {shorten(title, max(8, width - len(kind) - 4))}", "strong")
        self.query_one("#top", Lines).show([(name, Cell(f"  {kind}", "dim"))])
        self.query_one("#facts", Lines).show(self.lines(width - 1))  # one cell is the scrollbar's

    def action_back(self) -> None:
        """Back."""
        leave(self)

    def action_scroll(self, step: int) -> None:
        """Scroll by a line."""
        self.query_one("#body", VerticalScroll).scroll_relative(y=step, animate=False)

    def action_page(self) -> None:
        """Scroll by a page."""
        self.action_scroll(max(1, self.query_one("#body").size.height - 1))
