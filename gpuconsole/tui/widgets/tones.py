"""The terminal styles of tones, for widgets that draw their own cells.

The stylesheet gives each tone once, to the app. Were they component classes of the widgets, Textual would look for
their rules anew for every widget and tone at each change of a class: half of the time to the first screen.
"""

from __future__ import annotations

from rich.style import Style
from textual.widget import Widget

CLASSES = {
    f"tone--{tone}"
    for tone in ("dim", "strong", "ok", "info", "watch", "risk", "critical", "accent", "cursor", "blurred")
}
"""Component classes of the app: a tone each, the cursor, and the cursor of what does not have the focus."""


class Tones:
    """Styles of one widget by tone, kept until the theme changes.

    Args:
        widget: Whose; its own style lies beneath.
    """

    def __init__(self, widget: Widget) -> None:
        self._widget = widget
        self._whole: dict[str, Style] = {}
        self._partial: dict[str, Style] = {"": Style()}
        self._marked: dict[tuple[str, str], Style] = {}

    def forget(self) -> None:
        """The theme changed."""
        self._whole.clear()
        self._partial = {"": Style()}
        self._marked.clear()

    def marked(self, tone: str, mark: str) -> Style:
        """The tone with what a mark changes laid over it; of the empty mark the tone alone."""
        style = self._marked.get((tone, mark))
        if style is None:
            style = self._marked[tone, mark] = self[tone] + self.partial(mark)
        return style

    def partial(self, tone: str) -> Style:
        """What the tone changes, to be laid over another style."""
        style = self._partial.get(tone)
        if style is None:
            style = self._partial[tone] = self._widget.app.get_component_styles(f"tone--{tone}").partial_rich_style
        return style

    def __getitem__(self, tone: str) -> Style:
        """The tone on the widget's own style; of the empty tone that alone."""
        style = self._whole.get(tone)
        if style is None:
            style = self._whole[tone] = self._widget.rich_style + self.partial(tone)
        return style
