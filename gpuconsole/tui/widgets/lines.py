"""Lines of cells: the base of everything on the screen that is no table. Writes only the cells that changed."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region, Size
from textual.strip import Strip

from gpuconsole.tui.present.cell import Cell
from gpuconsole.tui.widgets.bare import Bare
from gpuconsole.tui.widgets.tones import Tones

Line = tuple[Cell, ...]


class Lines(Bare):
    """Shows lines, each a row of cells one after another; what does not fit on the right is cut."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._lines: tuple[Line, ...] = ()
        self._tones = Tones(self)

    @property
    def lines(self) -> tuple[Line, ...]:
        """The lines shown."""
        return self._lines

    def show(self, lines: Sequence[Line]) -> None:
        """Show ``lines``; only cells that differ are drawn."""
        before, self._lines = self._lines, tuple(lines)
        if len(before) != len(self._lines):
            # Only where the stylesheet lets the height follow the content does the layout depend on it.
            if self.styles.height is not None and self.styles.height.is_auto:
                # Of a layout that is still due Textual keeps the height it found; one asked for anew finds it anew.
                self._layout_required = False
                self.refresh(layout=True)
            else:
                self.refresh()
            return
        changed = [
            region
            for y, (old, new) in enumerate(zip(before, self._lines, strict=True))
            if old != new
            for region in self._changed(y, old, new)
        ]
        if changed:
            self.refresh(*changed)

    def _changed(self, y: int, old: Line, new: Line) -> list[Region]:
        """The parts of a line that are to be drawn anew; neighbours as one."""
        if len(old) != len(new) or not all(map(_as_wide, old, new)):
            return [Region(0, y, self.size.width, 1)]
        regions: list[Region] = []
        x = 0
        for a, b in zip(old, new, strict=True):
            width = cell_len(b.text)
            if a != b and regions and regions[-1].right == x:
                regions[-1] = regions[-1].grow((0, width, 0, 0))
            elif a != b:
                regions.append(Region(x, y, width, 1))
            x += width
        return regions

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """As many rows as there are lines."""
        return len(self._lines)

    def style_of(self, tone: str) -> Style:
        """The terminal style of a tone."""
        return self._tones[tone]

    def drawn_from(self, y: int) -> object:
        """The cells of the line."""
        return self._lines[y] if 0 <= y < len(self._lines) else None

    def render_line(self, y: int) -> Strip:
        """One line of the screen."""
        width = self.size.width
        if not 0 <= y < len(self._lines):
            return Strip.blank(width, self.style_of(""))
        segments = [Segment(cell.text, self.style_of(cell.tone)) for cell in self._lines[y]]
        return Strip(segments).adjust_cell_length(width, self.style_of(""))


def _as_wide(one: Cell, other: Cell) -> bool:
    return one.text == other.text or cell_len(one.text) == cell_len(other.text)
