"""A text to read, to scroll and to copy."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import Static

from gpuconsole.tui import sheets
from gpuconsole.tui.leaving import leave
from gpuconsole.tui.present.cell import Cell
from gpuconsole.tui.widgets.keyline import KeyLine
from gpuconsole.tui.widgets.lines import Lines

if TYPE_CHECKING:
    from gpuconsole.tui.app import ConsoleApp


class ReadingScreen(Screen[None]):
    """Shows a text until it is closed."""

    CSS_PATH = sheets.of("reading")
    app: ConsoleApp
    HELP = "Arrows and page keys scroll; y copies the whole text."
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "close", "Back"),
        Binding("y", "copy", "Copy"),
        Binding("j", "scroll(1)", "Down", show=False),
        Binding("k", "scroll(-1)", "Up", show=False),
    ]

    def __init__(self, title: str, text: str) -> None:
        super().__init__()
        self._title = title
        self._text = text

    def compose(self) -> ComposeResult:
        """Title and text."""
        yield Lines(id="top")
        with VerticalScroll(id="text"):
            yield Static(self._text, markup=False)
        yield KeyLine(id="keys")

    def on_mount(self) -> None:
        """Name it."""
        self.query_one("#top", Lines).show([(Cell(f" {self._title}", "strong"),)])

    def action_close(self) -> None:
        """Back."""
        leave(self)

    def action_scroll(self, step: int) -> None:
        """Scroll by a line."""
        self.query_one("#text", VerticalScroll).scroll_relative(y=step, animate=False)

    def action_copy(self) -> None:
        """Copy the whole text."""
        from gpuconsole.tui.screens.copying import copy

        copy(self.app, self._text)
        self.app.notify("Copied.", markup=False, timeout=2)
