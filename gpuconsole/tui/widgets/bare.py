"""Lines that go to the screen as they are drawn."""

from __future__ import annotations

from collections.abc import Sequence

from textual.color import Color
from textual.filter import LineFilter
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from gpuconsole.tui.widgets.tones import Tones


class Bare(Widget):
    """A widget that fills its place with whole lines of its own, without frame.

    Textual dresses every line anew in padding, border, outline, tint and opacity. Of a console that changes twenty
    lines a second that is a tenth of the work, and its lines have nothing of it; where a stylesheet wants some,
    Textual's way is taken.

    Textual asks for every line of every widget as soon as anything between the first and the last of them changed; a
    line is drawn anew only when what it is drawn from did.
    """

    _tones: Tones
    _kept: dict[int, tuple[object, Strip]]
    """Row → what its line was drawn from, and the line."""
    _kept_for: tuple[int, Sequence[LineFilter]] = (-1, ())
    """The width and the filters that all of these lines were drawn for."""
    _ground: Color
    """The background beneath them."""

    def drawn_from(self, y: int) -> object:
        """All that the line in row ``y`` depends on beside the widget's width and styles."""
        raise NotImplementedError

    def notify_style_update(self) -> None:
        """Forget the styles of the theme before."""
        super().notify_style_update()
        self._tones.forget()
        self._kept_for = (-1, ())

    def render_lines(self, crop: Region) -> list[Strip]:
        """The lines of a part of the widget."""
        if self._is_dressed():
            return super().render_lines(crop)
        width, height = self.size
        filters = self.get_line_filters()
        if self._kept_for != (width, filters):
            self._kept_for, self._kept, self._ground = (width, filters), {}, self.background_colors[1]
        strips = [self._kept_line(y, height) for y in crop.line_range]
        if crop.column_span != (0, width):
            strips = [strip.crop(*crop.column_span) for strip in strips]
        return strips

    def _kept_line(self, y: int, height: int) -> Strip:
        drawn_from = self.drawn_from(y) if y < height else None
        before = self._kept.get(y)
        if before is not None and before[0] == drawn_from:
            return before[1]
        strip = self.render_line(y) if y < height else Strip.blank(self.size.width, self.rich_style)
        for each in self._kept_for[1]:
            strip = strip.apply_filter(each, self._ground)
        self._kept[y] = drawn_from, strip
        return strip

    def _is_dressed(self) -> bool:
        styles = self.styles
        return bool(
            self.region.size != self.size  # padding, border, a scrollbar
            or styles.tint.a
            or styles.text_opacity != 1.0
            or styles.has_rule("hatch")
            or any(kind for kind, _ in styles.outline)
            or self.opacity != 1.0
        )
