"""What a prune would take, to be looked at before it is done."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Button, Static

from gpuconsole.tui import sheets
from gpuconsole.tui.leaving import leave
from gpuconsole.tui.present import pruning
from gpuconsole.tui.present.cell import Cell
from gpuconsole.tui.widgets.lines import Lines
from gpuconsole.tui.widgets.tick import Tick

if TYPE_CHECKING:
    from gpuconsole.services.imageremoval import Kept, Removal
    from gpuconsole.tui.app import ConsoleApp


class PruneScreen(ModalScreen["tuple[Removal, ...]"]):
    """Lists what nothing needs, and gives what is to be removed.

    Args:
        taken: What could go, with and without a name.
        kept: What stays although no container needs it.
    """

    app: ConsoleApp
    CSS_PATH = sheets.of("images")
    HELP = "a, or space on it, ticks the box; tab goes on. Enter presses the button in focus, esc means no."
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,n", "back", "No"),
        Binding("a", "also_named", "Also named", tooltip="Also images with a name that no container was made from"),
        Binding("left", "app.focus_previous", "Before", show=False),
        Binding("right", "app.focus_next", "Next", show=False),
    ]

    def __init__(self, taken: Sequence[Removal], kept: Sequence[Kept]) -> None:
        super().__init__()
        self._taken = taken
        self._kept = kept

    def compose(self) -> ComposeResult:
        """A title, the box, the list, what it frees, buttons."""
        with Vertical(id="pruning"):
            yield Static("Remove images that nothing needs?", id="title", markup=False)
            yield Tick("a  also those with a name that no container was made from", id="named")
            with VerticalScroll(id="list", can_focus=False):
                yield Lines(id="removals")
            yield Lines(id="total")
            with Horizontal(id="buttons"):
                yield Button("Cancel", id="no", compact=True)
                yield Button("Remove", id="yes", compact=True)

    def on_mount(self) -> None:
        """The safe answer has the focus."""
        self._show()
        self.query_one("#no", Button).focus()

    @property
    def _chosen(self) -> tuple[Removal, ...]:
        return pruning.chosen(self._taken, named=self.query_one("#named", Tick).value)

    @on(Tick.Turned)
    def _show(self) -> None:
        removals = self._chosen
        named = self.query_one("#named", Tick).value
        kept = [each for each in self._kept if named or not each.image.tags]
        self.query_one("#removals", Lines).show(pruning.lines(removals, kept, self.app.glyphs))
        self.query_one("#total", Lines).show([(Cell(pruning.total(removals), "strong"),)])
        self.query_one("#yes", Button).disabled = not removals

    @on(Button.Pressed)
    def _answer(self, event: Button.Pressed) -> None:
        leave(self, self._chosen if event.button.id == "yes" else None)

    def action_also_named(self) -> None:
        """Take the named ones too, or not."""
        self.query_one("#named", Tick).action_turn()

    def action_back(self) -> None:
        """Remove nothing."""
        leave(self)
