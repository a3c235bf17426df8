"""Lines that go to the screen as they are drawn."""

from __future__ import annotations

from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from gpuconsole.tui.widgets.tones import Tones


class Bare(Widget):
    """A widget that fills its place with whole lines of its own, without frame.

    Textual dresses every line anew in padding, border, outline, tint and opacity. Of a console that changes twenty
    lines a second that is a tenth of the work, and its lines have nothing of it; where a stylesheet wants some,
    Textual's way is taken.
    """

    _tones: Tones

    def notify_style_update(self) -> None:
        """Forget the styles of the theme before."""
        super().notify_style_update()
        self._tones.forget()

    def render_lines(self, crop: Region) -> list[Strip]:
        """The lines of a part of the widget."""
        width, height = self.size
        if self._is_dressed():
            return super().render_lines(crop)
        strips = [self.render_line(y) if y < height else Strip.blank(width, self.rich_style) for y in crop.line_range]
        filters = self.get_line_filters()
        if filters:
            background = self.background_colors[1]
            for each in filters:
                strips = [strip.apply_filter(each, background) for strip in strips]
        if crop.column_span != (0, width):
            strips = [strip.crop(*crop.column_span) for strip in strips]
        return strips

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
