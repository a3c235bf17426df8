"""The strip of GPUs: always on the screen, however many there are, the worst never hidden."""

from __future__ import annotations

from collections import deque
from typing import ClassVar, NamedTuple

from rich.segment import Segment
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip

from gpuconsole.gpu.names import short_name
from gpuconsole.host.model import GpuView, HostView
from gpuconsole.host.state import memory_state
from gpuconsole.services import ringing
from gpuconsole.services.ringing import gpu_key
from gpuconsole.tui.present import gpu as present
from gpuconsole.tui.present.cell import Cell
from gpuconsole.tui.theme import Glyphs
from gpuconsole.tui.widgets.grid import fitted
from gpuconsole.tui.widgets.lines import Line, Lines
from gpuconsole.tui.widgets.outlookline import OutlookLine

_HISTORY = 120
_BRIEF_WIDTH = 38
"""Cells of a GPU's short form."""


_STATE, _AHEAD, _BAR = 12, 7, 9
"""Cells of a state, of the time ahead beside it, and of a bar before that gets room."""


class _Columns(NamedTuple):
    """Cells of each column of the long form."""

    name: int
    spark: int
    bar: int
    state: int
    ring: int
    limit: bool
    """The power limit is shown."""
    holders: int


class GpuStrip(Lines, can_focus=True):
    """One line a GPU with a history of its use; two or more a line when there are many."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "go(-1, True)", "Up", show=False),
        Binding("down,j", "go(1, True)", "Down", show=False),
        Binding("left,h", "go(-1)", "Left", show=False),
        Binding("right", "go(1)", "Right", show=False),
        Binding("enter", "choose", "Open", tooltip="All about it", id="thing.open"),
    ]

    class Moved(Message):
        """The cursor came to another GPU."""

    class Chosen(Message):
        """Enter was pressed on a GPU."""

        def __init__(self, view: GpuView) -> None:
            super().__init__()
            self.view = view

    def __init__(self, glyphs: Glyphs, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._glyphs = glyphs
        self._host: HostView | None = None
        self._history: dict[str, deque[float | None]] = {}
        self._order: list[GpuView] = []
        self.cursor: str | None = None
        """Key of the GPU that ``enter`` opens."""
        self.marks: frozenset[str] = frozenset()
        """Keys of what rings."""
        self.rows_at_most = 8
        """Rows the strip may take."""
        self._outlook = OutlookLine()

    def look(self, host: HostView, *, draw: bool = True) -> None:
        """Show what was seen; of what was not shown before the history grows by one.

        Args:
            host: What was seen.
            draw: Draw it too; else :meth:`draw` does so later.
        """
        is_new = self._host is None or self._host.snapshot.taken_at != host.snapshot.taken_at
        self._host = host
        for view in host.gpus if is_new else ():
            past = self._history.setdefault(gpu_key(view), deque(maxlen=_HISTORY))
            past.append(view.gpu.utilization_pct)
        if is_new:
            self._outlook.look(host)
        for gone in self._history.keys() - {gpu_key(view) for view in host.gpus}:
            del self._history[gone]
        keys = [gpu_key(view) for view in host.gpus]
        if self.cursor not in keys:
            self.cursor = keys[0] if keys else None
        if draw:
            self.draw()

    def forget(self) -> None:
        """Nothing was seen yet."""
        self._host = None
        self._history.clear()
        self._outlook = OutlookLine()

    @property
    def is_blank(self) -> bool:
        """There are no GPUs to show, and no memory that is running full."""
        return self._host is not None and self._host.snapshot.problem is not None and not self._warned()

    def fit(self, height: int) -> None:
        """Take no more rows than suit a window of ``height`` rows."""
        self.rows_at_most = max(2, min(17, (height - 6) // 2))
        self.draw()

    @property
    def chosen(self) -> GpuView | None:
        """The GPU under the cursor."""
        return next((view for view in self._all() if gpu_key(view) == self.cursor), None)

    @property
    def _per_line(self) -> int:
        """GPUs a line: one, unless they would take too many rows."""
        count = len(self._host.gpus) if self._host else 0
        if count <= max(1, self.rows_at_most - 1):
            return 1
        return max(1, (self._width + 2) // (_BRIEF_WIDTH + 2))

    @property
    def _width(self) -> int:
        """Cells of a line; before it has a place, those of the window, which it will take from side to side."""
        return self.size.width or self.app.size.width

    def draw(self) -> None:
        """Make the lines anew from what was seen last."""
        if self._host is None or self._width == 0:
            return
        views = list(self._host.gpus)
        if self._host.snapshot.problem is not None:  # why there are none stands below; RAM may still run full
            self.show(self._warned())
            return
        per_line = self._per_line
        if per_line == 1 and len(views) <= max(1, self.rows_at_most - 1):
            self._order = views
            at = self._columns()
            self.show([_titles(at), *(self._long(view, at) for view in views), *self._warned()] if views else [])
            return
        room = self.rows_at_most * per_line
        # More than fit: the worst come first, so that what needs a look is never cut off.
        self._order = views if len(views) <= room else sorted(views, key=_worst_first)[:room]
        width = (self._width - 2 * (per_line - 1)) // per_line
        lines = []
        for start in range(0, len(self._order), per_line):
            line: list[Cell] = []
            for view in self._order[start : start + per_line]:
                if line:
                    line.append(Cell("  "))
                line += self._marked(view, present.brief(view, width, self._glyphs, rings=self._rings(view)))
            lines.append(tuple(line))
        self.show([*lines, *self._warned()])

    def _warned(self) -> list[Line]:
        return [] if self._host is None else self._outlook.lines(self._host, self._width, self._glyphs)

    def _spark_width(self) -> int:
        return min(30, max(5, (self._width - 72) // 2))

    def _rings(self, view: GpuView) -> bool:
        return ringing.key_of(view) in self.marks

    def _columns(self) -> _Columns:
        width = self._width
        names = max((len(short_name(view.gpu.name)) for view in self._order or self._all()), default=3)
        name = min(16, max(7, names + 4))
        spark = self._spark_width()
        limit = width >= 100
        ring = len(present.ring_word(self._glyphs)) + 1 if any(map(self._rings, self._all())) else 0
        holders = max(0, min(40, width - 112)) if width >= 124 else 0
        fixed = name + spark + 6 + 14 + _STATE + ring + 6 + (12 if limit else 7) + (holders + 1 if holders else 0)
        room = width - fixed - 2
        # A time ahead beside the state is worth more than a longer bar; its room is always there, so nothing jumps.
        ahead = min(_AHEAD, max(0, room - _BAR))
        return _Columns(name, spark, max(6, room - ahead), _STATE + ahead, ring, limit, holders)

    def _all(self) -> tuple[GpuView, ...]:
        return self._host.gpus if self._host else ()

    def _long(self, view: GpuView, at: _Columns) -> Line:
        gpu, glyphs = view.gpu, self._glyphs
        state = present.state_cell(view, glyphs, at.state - 1)
        if gpu.problem:
            text = fitted(f" {gpu.problem}", max(0, self._width - at.name))
            return self._marked(view, (Cell(fitted(f" {gpu.index} {short_name(gpu.name)}", at.name), "strong"),
                                       Cell(text, "critical")))  # fmt: skip
        power = present.power_cell(gpu).text
        if at.limit and gpu.power_w is not None and gpu.power_limit_w is not None:
            power = f"{gpu.power_w:.0f}/{gpu.power_limit_w:.0f} W"
        temperature = present.temperature_cell(gpu)
        history = self._history.get(gpu_key(view), deque())
        tone = present.STATE_TONES[memory_state(view)] or "info"
        shade = "info" if tone in ("", "ok", "watch") else tone
        line = [
            Cell(fitted(f" {gpu.index} {short_name(gpu.name)}", at.name), "strong"),
            Cell(present.sparkline(history, at.spark, glyphs), "accent"),
            Cell(fitted(present.utilization_cell(gpu).text, 6, "right")),
            Cell("  "),
            Cell(present.bar(present.used_share(view), at.bar, glyphs), shade),
            Cell(fitted(present.memory_cell(view).text, 13, "right") + " "),
            Cell(fitted(state.text, at.state), state.tone),
            Cell(fitted(present.ring_word(glyphs) if self._rings(view) else "", at.ring), "accent"),
            Cell(fitted(temperature.text, 6, "right"), temperature.tone),
            Cell(fitted(power, 12 if at.limit else 7, "right")),
        ]
        if at.holders:
            words = " · ".join(filter(None, (present.holders_cell(view).text, present.problem_words(view))))
            line.append(Cell(" " + fitted(words, at.holders), "dim"))
        return self._marked(view, tuple(line))

    def _marked(self, view: GpuView, line: Line) -> Line:
        if not (self.has_focus and gpu_key(view) == self.cursor):
            return line
        return tuple(Cell(cell.text, "cursor") for cell in line)

    def drawn_from(self, y: int) -> object:
        """The cells of the line, and whether there was a look."""
        return self._host is None, super().drawn_from(y)

    def render_line(self, y: int) -> Strip:
        """One line of the screen; before the first look a calm word."""
        if self._host is None and y == 0:
            return Strip([Segment(" Looking for GPUs …", self.style_of("dim"))]).adjust_cell_length(
                self.size.width, self.style_of("")
            )
        return super().render_line(y)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """As many rows as there are lines, one at least."""
        return max(1, len(self._lines))

    def on_resize(self, event: events.Resize) -> None:
        """Choose the form anew."""
        self.draw()

    def on_focus(self) -> None:
        """Show the cursor."""
        self.draw()

    def on_blur(self) -> None:
        """Hide the cursor."""
        self.draw()

    def action_go(self, step: int, by_line: bool = False) -> None:
        """Move the cursor to another GPU."""
        keys = [gpu_key(view) for view in self._order]
        if self.cursor in keys:
            place = keys.index(self.cursor) + step * (self._per_line if by_line else 1)
            self.cursor = keys[min(max(place, 0), len(keys) - 1)]
            self.draw()
            self.post_message(self.Moved())

    def action_choose(self) -> None:
        """Open the GPU under the cursor."""
        if self.chosen is not None:
            self.post_message(self.Chosen(self.chosen))


def _titles(at: _Columns) -> Line:
    text = fitted(" GPU", at.name) + fitted("UTIL", at.spark + 6, "right") + "  "
    text += fitted("MEMORY GiB", at.bar + 14) + fitted("STATE", at.state + at.ring)
    text += fitted("TEMP", 6, "right") + fitted("POWER", 12 if at.limit else 7, "right")
    return (Cell(text + (fitted(" HELD BY", at.holders + 1) if at.holders else ""), "dim"),)


def _worst_first(view: GpuView) -> tuple[int, int]:
    return (-memory_state(view).severity, view.gpu.index)
