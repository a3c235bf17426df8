"""The list of benchmark runs, to choose the one that another is compared with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static

from gpuconsole.probes.benchrecords import BenchRun
from gpuconsole.tui import sheets
from gpuconsole.tui.leaving import leave
from gpuconsole.tui.present import benchpast
from gpuconsole.tui.widgets.grid import Grid

if TYPE_CHECKING:
    from gpuconsole.tui.app import ConsoleApp


class _Others(Grid):
    """The runs that can be chosen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "choose", "Compare", tooltip="Compare with it", id="thing.open")
    ]


class PickScreen(ModalScreen[str]):
    """Lists runs, and gives the id of the one that was chosen.

    Args:
        run: What is compared with it.
        others: The runs there are.
        chosen: Id of the one the cursor stands on at first.
    """

    app: ConsoleApp
    CSS_PATH = sheets.of("bench")
    HELP = "Enter compares with the run under the cursor. ALIKE is the number of results that can be compared."
    AUTO_FOCUS = "#others"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q", "back", "Back")]

    def __init__(self, run: BenchRun, others: Sequence[BenchRun], chosen: str) -> None:
        super().__init__()
        self._rows = benchpast.pick_rows(others, run)
        self._chosen = chosen

    def compose(self) -> ComposeResult:
        """A title and the runs."""
        with Vertical(id="picking"):
            yield Static("Compare with which run?", id="title", markup=False)
            yield _Others(benchpast.PICK_COLUMNS, id="others")

    def on_mount(self) -> None:
        """The one that is compared with now has the cursor."""
        grid = self.query_one(Grid)
        grid.show(self._rows)
        grid.cursor = self._chosen

    @on(Grid.Chosen)
    def _choose(self, event: Grid.Chosen) -> None:
        event.stop()
        leave(self, event.key)

    def action_back(self) -> None:
        """Leave it as it is."""
        leave(self)
