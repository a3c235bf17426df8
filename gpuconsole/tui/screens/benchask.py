"""What is asked before a benchmark: on what, quick or full, all or only some; enter alone is the first, quick."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Static

from gpuconsole.core.errors import UsageError
from gpuconsole.services.benching import BenchWish
from gpuconsole.services.benchtargets import BenchTarget
from gpuconsole.tui import sheets
from gpuconsole.tui.leaving import leave
from gpuconsole.tui.present import benchask
from gpuconsole.tui.widgets.lines import Lines

if TYPE_CHECKING:
    from gpuconsole.tui.app import ConsoleApp


_REST = 19
"""Rows that all but the targets takes at most."""


@dataclass(frozen=True, slots=True)
class BenchOrder:
    """What was chosen."""

    target: BenchTarget
    wish: BenchWish


class BenchAsk(ModalScreen[BenchOrder]):
    """Asks, and gives the order; None when nothing is to be measured.

    Args:
        title: What it is about.
        targets: What can be measured; the first is proposed.
    """

    app: ConsoleApp
    CSS_PATH = sheets.of("bench")
    HELP = (
        "Enter begins the quick run, a minute; left goes to the full one, ten minutes. Up and down choose on what. "
        "In the field stand names of benchmarks, where it is to be only some."
    )
    AUTO_FOCUS = "#quick"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "Cancel"),
        Binding("enter", "begin", "Quick", show=False),  # keys in one piece come before anything has the focus
        Binding("up", "target(-1)", "On what", show=False, priority=True),
        Binding("down", "target(1)", "On what", show=False, priority=True),
        Binding("left", "app.focus_previous", "Other button", show=False),
        Binding("right", "app.focus_next", "Other button", show=False),
    ]

    def __init__(self, title: str, targets: Sequence[BenchTarget]) -> None:
        super().__init__()
        self._title = title
        self._targets = tuple(targets)
        self._chosen = 0

    def compose(self) -> ComposeResult:
        """On what, which, how long."""
        with Vertical(id="asking"):
            yield Static(self._title, id="title", markup=False)
            yield Lines(id="targets")
            with Horizontal(classes="row"):
                yield Static("Only ", classes="label", markup=False)
                yield Input(id="only", compact=True, placeholder="all; or names: mm mem attn")
            yield Lines(id="plan")
            with Horizontal(id="buttons"):
                yield Button("Cancel", id="no", compact=True)
                yield Button("Full", id="full", compact=True)
                yield Button("Quick", id="quick", compact=True)

    def on_mount(self) -> None:
        """Show what is chosen; enter is quick."""
        self._draw()

    def on_resize(self, event: events.Resize) -> None:
        """Fit anew."""
        self.call_after_refresh(self._draw)

    def _draw(self) -> None:
        width = max(20, self.query_one("#plan").size.width or min(76, self.size.width) - 6)
        glyphs, target = self.app.glyphs, self._targets[self._chosen]
        most = max(1, min(benchask.MOST, self.size.height - _REST))
        self.query_one("#targets", Lines).show(
            benchask.targets(self._targets, self._chosen, width=width, glyphs=glyphs, most=most)
        )
        self.query_one("#plan", Lines).show(benchask.plan(self._typed, target, width=width))

    @property
    def _typed(self) -> str:
        return self.query_one("#only", Input).value

    @on(Input.Changed)
    def _hear(self, event: Input.Changed) -> None:
        event.stop()
        self._draw()

    @on(Input.Submitted)
    def _submit(self, event: Input.Submitted) -> None:
        event.stop()
        self._take(full=False)

    @on(Button.Pressed)
    def _press(self, event: Button.Pressed) -> None:
        if event.button.id == "no":
            self.action_back()
        else:
            self._take(full=event.button.id == "full")

    def _take(self, *, full: bool) -> None:
        """Give the order, unless a name is of no benchmark: that stands there already."""
        try:
            wish = benchask.wish(self._typed, full=full)
        except UsageError:
            self.query_one("#only", Input).focus()
            return
        leave(self, BenchOrder(self._targets[self._chosen], wish))

    def action_target(self, step: int) -> None:
        """Another thing to measure on."""
        self._chosen = min(max(self._chosen + step, 0), len(self._targets) - 1)
        self._draw()

    def action_begin(self) -> None:
        """The quick run."""
        self._take(full=False)

    def action_back(self) -> None:
        """Measure nothing."""
        leave(self)
