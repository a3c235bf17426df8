"""What screens about one thing share: fields that can be scrolled, drawn anew when the thing changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll

from gpuconsole.core.text import shorten
from gpuconsole.services import ringing
from gpuconsole.tui import actions, sheets
from gpuconsole.tui.leaving import leave
from gpuconsole.tui.present import details
from gpuconsole.tui.present.cell import Cell
from gpuconsole.tui.present.gpu import ring_word
from gpuconsole.tui.screens.doing import Doing
from gpuconsole.tui.screens.subject import Subject, Thing
from gpuconsole.tui.widgets.keyline import KeyLine
from gpuconsole.tui.widgets.lines import Lines

if TYPE_CHECKING:
    from gpuconsole.tui.app import ConsoleApp

_SCROLLING = (
    Binding("j", "scroll(1)", "Down", show=False),
    Binding("k", "scroll(-1)", "Up", show=False),
    Binding("space", "scroll_page(1)", "Page down", show=False),
    Binding("g", "ends(False)", "First", show=False),
    Binding("G", "ends(True)", "Last", show=False),
)


class DetailsScreen(Doing):
    """A thing's name and fields."""

    CSS_PATH = sheets.of("details")
    app: ConsoleApp
    HELP = "Arrows and page keys scroll. What is shown follows the thing as it changes."
    AUTO_FOCUS = "#body"
    BINDINGS: ClassVar[list[BindingType]] = [actions.BACK.binding(), *_SCROLLING]

    def __init__(self, subject: Subject[Any]) -> None:
        super().__init__()
        self.subject = subject
        self._gone = False

    @property
    def thing(self) -> Thing | None:
        """What can be acted on: it, until it is gone."""
        return None if self._gone else self.subject.thing

    def compose(self) -> ComposeResult:
        """Its name, and the fields."""
        yield Lines(id="top")
        with VerticalScroll(id="body"):
            yield Lines(id="facts")
        yield KeyLine(id="keys")

    def on_mount(self) -> None:
        """Follow the app's state."""
        for name in ("host_view", "containers", "images", "shelf", "runs", "link", "marks"):
            self.watch(self.app, name, self._draw, init=False)
        self.set_interval(1.0, self._draw)
        self._draw()

    def on_resize(self, event: events.Resize) -> None:
        """Fit anew."""
        self._draw()

    def look(self) -> None:
        """Take the newest of it."""
        subject = self.subject
        before, there = subject.stage(), subject.look()
        if there is not None and self._gone is there:
            self._gone = not there
            self.refresh_bindings()
        elif subject.stage() != before:
            self.call_after_refresh(self.refresh_bindings)

    def _draw(self) -> None:
        if not self.is_mounted or not self.size.width:
            return
        self.look()
        width, subject = self.size.width, self.subject
        name = Cell(f" {shorten(subject.headline(), max(8, width - len(subject.KIND) - 12))}", "strong")
        rings = ringing.key_of(subject.thing) in self.app.marks
        mark = Cell(f"  {ring_word(self.app.glyphs)}" if rings else "", "accent")
        self.query_one("#top", Lines).show([(name, Cell(f"  {subject.KIND}", "dim"), mark)])
        self.query_one("#facts", Lines).show(self.lines(width - 1))  # one cell is the scrollbar's

    def lines(self, width: int) -> list[details.Line]:
        """What is known of it, in rows of ``width`` cells."""
        return self.subject.lines(width, gone=self._gone)

    def action_back(self) -> None:
        """Back."""
        leave(self)

    def action_scroll(self, step: int) -> None:
        """Scroll by a line."""
        self.query_one("#body", VerticalScroll).scroll_relative(y=step, animate=False)

    def action_scroll_page(self, step: int) -> None:
        """Scroll by a page."""
        self.action_scroll(step * max(1, self.query_one("#body").size.height - 1))

    def action_ends(self, last: bool) -> None:
        """Scroll to the beginning or the end."""
        body = self.query_one("#body", VerticalScroll)
        body.scroll_to(y=body.max_scroll_y if last else 0, animate=False)
