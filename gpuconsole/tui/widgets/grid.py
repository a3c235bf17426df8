"""A table that writes to the terminal only the cells that changed, and whose cursor stays on the thing, not the row."""

from __future__ import annotations

from typing import ClassVar

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from gpuconsole.tui.present.cell import EMPTY, Column, Row, laid_out
from gpuconsole.tui.widgets.bare import Bare
from gpuconsole.tui.widgets.tones import Tones


class Grid(Bare, ScrollView, can_focus=True, inherit_bindings=False):
    """Rows of cells under fixed titles."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "cursor(-1)", "Up", show=False),
        Binding("down,j", "cursor(1)", "Down", show=False),
        Binding("pageup", "cursor_page(-1)", "Page up", show=False),
        Binding("pagedown", "cursor_page(1)", "Page down", show=False),
        Binding("home,g", "cursor_end(False)", "First", show=False),
        Binding("end,G", "cursor_end(True)", "Last", show=False),
        Binding("enter", "choose", "Open", tooltip="All about it", id="thing.open"),
    ]

    sorted_by: reactive[str | None] = reactive(None, repaint=False)
    """Key of the column whose title is marked."""
    cursor: reactive[str | None] = reactive(None, repaint=False)
    """Key of the row under the cursor; None when there are no rows."""

    class Moved(Message):
        """The cursor came to another row."""

        def __init__(self, grid: Grid, key: str | None) -> None:
            super().__init__()
            self.grid = grid
            self.key = key

        @property
        def control(self) -> Grid:
            """The grid it happened in."""
            return self.grid

    class Chosen(Message):
        """Enter was pressed on a row."""

        def __init__(self, grid: Grid, key: str) -> None:
            super().__init__()
            self.grid = grid
            self.key = key

        @property
        def control(self) -> Grid:
            """The grid it happened in."""
            return self.grid

    def __init__(self, columns: tuple[Column, ...], *, titles: bool = True, id: str | None = None) -> None:
        super().__init__(id=id)
        self._columns = columns
        self._titles = 1 if titles else 0
        self._rows: tuple[Row, ...] = ()
        self._places: dict[str, int] = {}
        self._layout: tuple[tuple[int, Column, int], ...] = ()
        self._tones = Tones(self)

    @property
    def rows(self) -> tuple[Row, ...]:
        """The rows shown."""
        return self._rows

    @property
    def cursor_index(self) -> int:
        """Place of the cursor's row; -1 when there is none."""
        return self._places.get(self.cursor, -1) if self.cursor is not None else -1

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Without rows there is nothing to open."""
        return action != "choose" or self.cursor is not None

    def use_columns(self, columns: tuple[Column, ...]) -> None:
        """Have other columns from the next :meth:`show` on, which must follow at once."""
        self._columns = columns
        self._lay_out()
        self.refresh()

    def show(self, rows: tuple[Row, ...]) -> None:
        """Show ``rows``; only cells that differ are drawn, and the cursor stays on its key."""
        before, place = self._rows, self.cursor_index
        self._rows = rows
        self._places = {row.key: index for index, row in enumerate(rows)}
        if self.cursor not in self._places:
            # The thing under the cursor is gone: its neighbour takes the cursor, not the first row.
            self.cursor = rows[min(max(place, 0), len(rows) - 1)].key if rows else None
        if len(before) != len(rows):
            self.virtual_size = Size(self.size.width, len(rows) + self._titles)
            self.refresh()
            return
        moved = place != self.cursor_index
        for index, (old, new) in enumerate(zip(before, rows, strict=True)):
            if old == new:
                continue
            if old.key != new.key or moved:
                self._refresh_row(index)
            else:
                self._refresh_cells(index, old, new)
        if moved:
            self._refresh_row(place)
            self._refresh_row(self.cursor_index)
            self._keep_cursor_visible()

    def watch_sorted_by(self) -> None:
        """Draw the titles anew."""
        self.refresh(Region(0, 0, self.size.width, self._titles))

    def _refresh_row(self, index: int) -> None:
        if 0 <= index < len(self._rows):
            self._refresh_part(index, 0, self.size.width)

    def _refresh_cells(self, index: int, old: Row, new: Row) -> None:
        x = 0
        for place, _, width in self._layout:
            if place >= len(new.cells) or place >= len(old.cells) or old.cells[place] != new.cells[place]:
                self._refresh_part(index, x, width)
            x += width + 1

    def _refresh_part(self, index: int, x: int, width: int) -> None:
        y = index + self._titles - self.scroll_offset.y
        if self._titles <= y < self.size.height:
            self.refresh(Region(x, y, width, 1))

    def _lay_out(self) -> None:
        self._layout = laid_out(self._columns, self.size.width)

    def on_resize(self, event: events.Resize) -> None:
        """Lay the columns out anew."""
        self._lay_out()
        self.virtual_size = Size(event.size.width, len(self._rows) + self._titles)
        self.refresh()
        self._keep_cursor_visible()

    def on_focus(self) -> None:
        """Draw the cursor as the one that acts."""
        self._refresh_row(self.cursor_index)

    def on_blur(self) -> None:
        """Draw the cursor as one that only marks."""
        self._refresh_row(self.cursor_index)

    def drawn_from(self, y: int) -> object:
        """The row with its mark, or the titles."""
        if y < self._titles:
            return self._layout, self.sorted_by
        row = self._row(y)
        return row and (self._layout, row, self._mark(row))

    def _row(self, y: int) -> Row | None:
        index = y - self._titles + self.scroll_offset.y
        return self._rows[index] if 0 <= index < len(self._rows) else None

    def _mark(self, row: Row) -> str:
        if row.key != self.cursor:
            return ""
        return "cursor" if self.has_focus else "blurred"

    def render_line(self, y: int) -> Strip:
        """One line of the screen."""
        width = self.size.width
        if y < self._titles:
            return self._title_line(width)
        row = self._row(y)
        if row is None:
            return Strip.blank(width, self._tones[""])
        tones, mark = self._tones, self._mark(row)
        gap = Segment(" ", tones.marked("", mark))
        segments = []
        for place, column, cells in self._layout:
            cell = row.cells[place] if place < len(row.cells) else EMPTY
            segments.append(Segment(fitted(cell.text, cells, column.align), tones.marked(cell.tone, mark)))
            segments.append(gap)
        # Each cell is as wide as its column, so nothing needs to be measured.
        length = sum(cells + 1 for _, _, cells in self._layout)
        return Strip(segments, length).adjust_cell_length(width, tones.marked("", mark))

    def _title_line(self, width: int) -> Strip:
        style = self._tones["dim"]
        segments = []
        for _, column, cells in self._layout:
            title = f"{column.title}▾" if column.key == self.sorted_by else column.title
            segments.append(Segment(fitted(title, cells, column.align) + " ", style))
        return Strip(segments).adjust_cell_length(width, style)

    def watch_cursor(self, before: str | None, after: str | None) -> None:
        """Redraw both rows and tell the screen."""
        if before is not None:
            self._refresh_row(self._places.get(before, -1))
        self._refresh_row(self.cursor_index)
        self._keep_cursor_visible()
        self.post_message(self.Moved(self, after))

    def _keep_cursor_visible(self) -> None:
        index, page = self.cursor_index, self.size.height - self._titles
        if index < 0 or page <= 0:
            return
        top = self.scroll_offset.y
        if index < top:
            self.scroll_to(y=index, animate=False)
        elif index >= top + page:
            self.scroll_to(y=index - page + 1, animate=False)

    def action_cursor(self, step: int) -> None:
        """Move the cursor by ``step`` rows."""
        if self._rows:
            place = min(max(self.cursor_index + step, 0), len(self._rows) - 1)
            self.cursor = self._rows[place].key

    def action_cursor_page(self, direction: int) -> None:
        """Move the cursor by a page."""
        self.action_cursor(direction * max(1, self.size.height - self._titles - 1))

    def action_cursor_end(self, last: bool) -> None:
        """Move the cursor to the first or last row."""
        self.action_cursor(len(self._rows) if last else -len(self._rows))

    def action_choose(self) -> None:
        """Open the row under the cursor."""
        if self.cursor is not None:
            self.post_message(self.Chosen(self, self.cursor))

    def on_click(self, event: events.Click) -> None:
        """Take the cursor to the row that was clicked; a second click opens it."""
        index = event.y - self._titles + self.scroll_offset.y
        if event.y >= self._titles and 0 <= index < len(self._rows):
            self.cursor = self._rows[index].key
            if event.chain == 2:
                self.action_choose()


def fitted(text: str, width: int, align: str = "left") -> str:
    """``text`` in exactly ``width`` terminal cells, cut with an ellipsis."""
    length = len(text) if text.isascii() else cell_len(text)
    if length > width:
        return set_cell_size(text, max(0, width - 1)) + "…" if width > 0 else ""
    return " " * (width - length) + text if align == "right" else text + " " * (width - length)
