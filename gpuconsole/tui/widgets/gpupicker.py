"""The GPUs in a list of boxes to tick."""

from __future__ import annotations

from typing import ClassVar

from rich.cells import cell_len
from textual.binding import Binding, BindingType
from textual.message import Message

from gpuconsole.core.text import shorten
from gpuconsole.tui.present.cell import Cell
from gpuconsole.tui.present.launchgpus import GpuRow, toggled
from gpuconsole.tui.widgets.lines import Lines

_MORE = "+ "
"""There is more than is shown."""


class GpuPicker(Lines, can_focus=True):
    """Rows of GPUs; space ticks one, and what is ticked becomes the wish. It scrolls when it has few rows."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space,enter", "turn", "Tick", tooltip="Give this GPU, or do not", id="gpus.tick"),
        Binding("f", "ask('auto')", "Freest", tooltip="The freest one", id="gpus.freest"),
        Binding("a", "ask('all')", "All", tooltip="Every GPU", id="gpus.all"),
        Binding("n", "ask('none')", "None", tooltip="Without GPUs", id="gpus.none"),
        Binding("up", "move(-1)", "Up", show=False),
        Binding("down", "move(1)", "Down", show=False),
    ]

    class Asked(Message):
        """The person asked for GPUs; ``wish`` is written as ``--gpus`` has it."""

        def __init__(self, wish: str) -> None:
            super().__init__()
            self.wish = wish

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._rows: tuple[GpuRow, ...] = ()
        self._instead = ""
        self._cursor = 0
        self._top = 0
        self.rows_at_most = 3

    @property
    def picked(self) -> frozenset[str]:
        """Indices of the ticked GPUs."""
        return frozenset(row.index for row in self._rows if row.picked)

    def show_gpus(self, rows: tuple[GpuRow, ...], *, instead: str) -> None:
        """Show ``rows``; with none, the words ``instead``."""
        self._rows, self._instead = rows, instead
        self.can_focus = bool(rows)
        self._draw()

    def on_resize(self) -> None:
        """Fit anew: a scrollbar takes a cell."""
        self._draw()

    def on_focus(self) -> None:
        """Show the cursor."""
        self._draw()

    def on_blur(self) -> None:
        """Hide it."""
        self._draw()

    def _draw(self) -> None:
        if not self._rows:
            self.show([(Cell(f" {self._instead}", "dim"),)])
            return
        self._cursor = min(self._cursor, len(self._rows) - 1)
        height = max(1, min(self.rows_at_most, len(self._rows)))
        if not self.has_focus and not self._picked_in_sight(height):
            self._top = next((place for place, row in enumerate(self._rows) if row.picked), self._top)
        if self.has_focus:
            self._top = min(max(self._top, self._cursor - height + 1), self._cursor)
        self._top = max(0, min(self._top, len(self._rows) - height))
        shown = range(self._top, self._top + height)
        self.show([self._line(place, place == shown[0], place == shown[-1]) for place in shown])

    def _picked_in_sight(self, height: int) -> bool:
        seen = self._rows[self._top : self._top + height]
        return any(row.picked for row in seen) or not self.picked

    def _line(self, place: int, is_first: bool, is_last: bool) -> tuple[Cell, ...]:
        *cells, last = self._rows[place].cells
        room = self.size.width - len(_MORE) - sum(cell_len(cell.text) for cell in cells)
        cells.append(Cell(shorten(last.text, max(1, room)), last.tone) if self.size.width else last)
        more = (is_first and place > 0) or (is_last and place < len(self._rows) - 1)
        edge = Cell(_MORE if more else " " * len(_MORE), "dim")
        if self.has_focus and place == self._cursor:
            return edge, *(Cell(cell.text, "cursor") for cell in cells)
        return edge, *cells

    def action_move(self, step: int) -> None:
        """To the next row; beyond the last one to the next field."""
        place = self._cursor + step
        if 0 <= place < len(self._rows):
            self._cursor = place
            self._draw()
        elif step > 0:
            self.screen.focus_next()
        else:
            self.screen.focus_previous()

    def action_turn(self) -> None:
        """Tick or untick the GPU under the cursor."""
        if self._rows and (index := self._rows[self._cursor].index):
            self.post_message(self.Asked(toggled(self.picked, index)))

    def action_ask(self, wish: str) -> None:
        """Ask in a word."""
        self.post_message(self.Asked(wish))
