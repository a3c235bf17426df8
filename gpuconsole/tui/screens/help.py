"""Help of a screen: what it is for, and every key that does something on it now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.screen import Screen

from gpuconsole.tui.present.helping import key_table
from gpuconsole.tui.screens.reading import ReadingScreen

if TYPE_CHECKING:
    from typing import Any


class HelpScreen(ReadingScreen):
    """Help of another screen."""

    def __init__(self, screen: Screen[Any]) -> None:
        rows = [
            (binding.key, binding.description, tooltip)
            for _, binding, enabled, tooltip in screen.active_bindings.values()
            if enabled and binding.description
        ]
        words = screen.app.keys.fill(screen.HELP or "")  # type: ignore[attr-defined]
        super().__init__("Help", f"{words}\n\n{key_table(rows)}")
