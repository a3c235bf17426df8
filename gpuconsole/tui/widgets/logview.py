"""Output as it comes: follows its end or stands still, wraps or scrolls sideways, marks what is looked for."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from gpuconsole.services.logfollow import LogLine
from gpuconsole.tui.present import logs
from gpuconsole.tui.theme import Glyphs

_NARROW = 60
"""Below so many cells timestamps leave out the day."""
_ERROR_MARK = "! "


class LogView(ScrollView, can_focus=True, inherit_bindings=False):
    """The newest lines of an output.

    | class | what it styles |
    | --- | --- |
    | ``logview--error`` | standard error |
    | ``logview--stamp`` | timestamps, and the sign that a line goes on |
    | ``logview--match`` | what is looked for |
    | ``logview--found`` | the same in the line it was found in last |
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {"logview--error", "logview--stamp", "logview--match", "logview--found"}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "rows(-1)", "Up", show=False),
        Binding("down,j", "rows(1)", "Down", show=False),
        Binding("pageup,b", "pages(-1)", "Page up", show=False),
        Binding("pagedown,space", "pages(1)", "Page down", show=False),
        Binding("home,g", "first", "Oldest", show=False),
        Binding("end,G", "last", "Newest", show=False),
        Binding("left,h", "sideways(-1)", "Left", show=False),
        Binding("right", "sideways(1)", "Right", show=False),
    ]

    following: reactive[bool] = reactive(True, repaint=False)
    """It stays at the end."""
    wrap: reactive[bool] = reactive(False, init=False)
    """Long lines are broken; else cut."""
    stamps: reactive[bool] = reactive(False, init=False)
    """Each line begins with its time."""

    class Changed(Message):
        """What is shown changed: where it stands, what is found."""

    def __init__(self, glyphs: Glyphs, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.buffer = logs.LogBuffer()
        self.finder = logs.Finder(self.buffer)
        self.seen = 0
        """Lines that had come when the following stopped."""
        self._glyphs = glyphs
        self._partial: tuple[LogLine, ...] = ()
        self._tops: list[int] = []
        """Row at which each kept line begins, counted from the first line that ever came."""
        self._bottom = 0
        self._left = 0
        self._ours = False
        """The view is moved by us, not by the person."""

    # --- what is shown ---

    def add(self, lines: Sequence[LogLine], partial: Sequence[LogLine] = ()) -> None:
        """Show ``lines`` after the others, and the unfinished ones below."""
        if not lines and tuple(partial) == self._partial:
            return
        mixed, before = self.buffer.mixed, self.buffer.end
        self.buffer.add(lines)
        self._partial = tuple(partial)
        if self.buffer.mixed != mixed:
            self._lay_out()
        else:
            self._grow(lines)
        self.finder.grow(before)
        self._resized()
        self.post_message(self.Changed())

    def _grow(self, lines: Sequence[LogLine]) -> None:
        for line in lines:
            self._tops.append(self._bottom)
            self._bottom += self._height(line)
        if (gone := len(self._tops) - len(self.buffer.lines_kept)) > 0:
            rows = self._tops[gone] - self._tops[0]
            del self._tops[:gone]
            if not self.following:
                # What one reads stays where it is, however much goes above it.
                self._move_to(self.scroll_offset.y - rows)

    def _lay_out(self) -> None:
        """Count the rows of every line anew."""
        self._tops, self._bottom = [], 0
        for line in self.buffer.lines_kept:
            self._tops.append(self._bottom)
            self._bottom += self._height(line)

    def _height(self, line: LogLine) -> int:
        return logs.height(logs.shown(line), self._room) if self.wrap else 1

    @property
    def _base(self) -> int:
        return self._tops[0] if self._tops else self._bottom

    @property
    def _room(self) -> int:
        """Cells for text in a row."""
        return max(1, self.size.width - len(self._margin(None)))

    def _margin(self, line: LogLine | None) -> str:
        """What stands before a line's text; of no line, as many spaces."""
        brief = self.size.width < _NARROW
        stamp = logs.stamp_words(line.stamp if line else "", brief=brief) if self.stamps else ""
        mark = (_ERROR_MARK if line and line.channel == "stderr" else "  ") if self.buffer.mixed else ""
        return stamp + mark

    def _resized(self) -> None:
        """Fit the scrolling to the rows, and stay at the end when following."""
        rows = self._bottom - self._base + sum(self._height(line) for line in self._partial)
        self.virtual_size = Size(self.size.width, rows)
        if self.following:
            self._move_to(self.max_scroll_y)
        self.refresh()

    def _move_to(self, row: float) -> None:
        self._ours = True
        self.scroll_to(y=max(0, row), animate=False, force=True)
        self._ours, self.vertical_scrollbar.position = False, self.scroll_y  # also of a bar that comes only now

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Who scrolls up stops the following; who comes to the end goes on with it."""
        super().watch_scroll_y(old_value, new_value)
        if not self._ours:
            self.following = new_value >= self.max_scroll_y

    def watch_following(self, following: bool) -> None:
        """Go to the end, or count what comes from now on."""
        self.seen = self.buffer.end
        if following and self.is_mounted:
            self._move_to(self.max_scroll_y)
        self.post_message(self.Changed())

    def watch_wrap(self) -> None:
        """Keep the line on top."""
        self._left = 0
        self._again()

    def watch_stamps(self) -> None:
        """Keep the line on top."""
        self._again()

    def on_resize(self, event: events.Resize) -> None:
        """Keep the line on top."""
        self._again()

    def _again(self) -> None:
        top = self._line_at(self.scroll_offset.y)[0]
        self._lay_out()
        self._resized()
        if not self.following:
            self._move_to(self._row_of(top))

    def _line_at(self, row: int) -> tuple[int, int]:
        """Number of the line in a row of the view, and which of its rows that is."""
        row += self._base
        if row >= self._bottom:
            number, row = self.buffer.end, row - self._bottom
            for line in self._partial:
                height = self._height(line)
                if row < height:
                    break
                number, row = number + 1, row - height
            return number, row
        place = bisect_right(self._tops, row) - 1
        return self.buffer.first + place, row - self._tops[place]

    def _row_of(self, number: int) -> int:
        place = number - self.buffer.first
        return (self._tops[place] if 0 <= place < len(self._tops) else self._bottom) - self._base

    def on_screen(self) -> tuple[LogLine, ...]:
        """The lines on the screen."""
        top = self.scroll_offset.y
        first, last = self._line_at(top)[0], self._line_at(top + max(0, self.size.height - 1))[0]
        return tuple(self.buffer[number] for number in range(first, min(last + 1, self.buffer.end)))

    # --- drawing ---

    def render_line(self, y: int) -> Strip:
        """One line of the screen."""
        style, width = self.rich_style, self.size.width
        number, part = self._line_at(self.scroll_offset.y + y)
        if number >= self.buffer.end + len(self._partial):
            return Strip.blank(width, style)
        line = self.buffer[number] if number < self.buffer.end else self._partial[number - self.buffer.end]
        text = logs.shown(line)
        if self.wrap:
            start, end = logs.pieces(text, self._room)[part]
        else:
            start, end = logs.cut(text, self._left, self._room)
        margin = self._margin(line if part == 0 else None)
        if line.channel == "stderr" and self.buffer.mixed:
            style += self.get_component_rich_style("logview--error", partial=True)
        segments = [
            Segment(margin, self.rich_style + self._part("stamp")),
            *self._text(text, number, start, end, style),
        ]
        strip = Strip(segments).adjust_cell_length(width, self.rich_style)
        if self.wrap or end >= len(text):
            return strip
        return Strip([*strip.crop(0, width - 1), Segment(self._glyphs.ellipsis, self.rich_style + self._part("stamp"))])

    def _part(self, name: str) -> Style:
        return self.get_component_rich_style(f"logview--{name}", partial=True)

    def _text(self, text: str, number: int, start: int, end: int, style: Style) -> list[Segment]:
        """A piece of a line, with what is looked for marked."""
        if not self.finder.words:
            return [Segment(text[start:end], style)]
        marked = style + self._part("found" if number == self.finder.found else "match")
        segments, position = [], start
        for begin, stop in logs.spans(text, self.finder.words):
            if stop <= start or begin >= end:
                continue
            segments.append(Segment(text[position : max(begin, start)], style))
            segments.append(Segment(text[max(begin, start) : min(stop, end)], marked))
            position = min(stop, end)
        return [*segments, Segment(text[position:end], style)]

    # --- looking for words ---

    def search(self, words: str) -> None:
        """Mark ``words`` everywhere."""
        self.finder.look_for(words)
        self.refresh()
        self.post_message(self.Changed())

    def go_to_match(self, step: int) -> None:
        """Go to the next match, or to the previous one."""
        number = self.finder.step(step, top=self._line_at(self.scroll_offset.y)[0])
        if number is not None:
            self._show_match(number)
            self.post_message(self.Changed())

    def _show_match(self, number: int) -> None:
        text = logs.shown(self.buffer[number])
        begin = next(iter(logs.spans(text, self.finder.words)), (0, 0))[0]
        row = self._row_of(number)
        if self.wrap:
            row += sum(1 for _, end in logs.pieces(text, self._room) if end <= begin)
        else:
            start, end = logs.cut(text, self._left, self._room)
            if not start <= begin < end - len(self.finder.words):
                self._left = 0 if begin < self._room // 2 else begin - self._room // 3
        top, height = self.scroll_offset.y, self.size.height
        if not top <= row < top + height:
            self.scroll_to(y=max(0, row - height // 2), animate=False)
        if self.following and row < self.max_scroll_y + height - 1:
            self.following = False
        self.refresh()

    # --- keys ---

    def action_rows(self, step: int) -> None:
        """Scroll by rows."""
        self.scroll_to(y=self.scroll_offset.y + step, animate=False)

    def action_pages(self, step: int) -> None:
        """Scroll by pages."""
        self.action_rows(step * max(1, self.size.height - 1))

    def action_first(self) -> None:
        """Go to the oldest line that is kept."""
        self.scroll_to(y=0, animate=False)

    def action_last(self) -> None:
        """Go to the end and follow."""
        self.following = True
        self._move_to(self.max_scroll_y)

    def action_sideways(self, step: int) -> None:
        """Scroll sideways by half a screen."""
        if not self.wrap:
            longest = max((len(logs.shown(line)) for line in self.on_screen()), default=0)
            left = self._left + step * max(1, self._room // 2)
            self._left = max(0, min(left, longest - 1))
            self.refresh()
