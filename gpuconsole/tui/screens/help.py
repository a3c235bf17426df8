"""Help of a screen: what it is for, and every key that does something on it now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.binding import Binding
from textual.screen import Screen

from gpuconsole.tui import actions
from gpuconsole.tui.present.helping import key_table
from gpuconsole.tui.screens.reading import ReadingScreen

if TYPE_CHECKING:
    from typing import Any

_PLACES = {action.id: place for place, action in enumerate(actions.ALL)}
_MOVES = {"app.focus_next": "Next part", "app.focus_previous": "Part before"}
"""What Textual has of its own and is worth telling."""


class HelpScreen(ReadingScreen):
    """Help of another screen: what its keys do, those that work everywhere, those that only go somewhere."""

    def __init__(self, screen: Screen[Any]) -> None:
        enabled = [
            (binding, tip) for _, binding, enabled, tip in screen.active_bindings.values()
            if enabled and binding.description
        ]  # fmt: skip
        enabled.sort(key=lambda each: _PLACES.get(each[0].id or "", -1))
        here = [each for each in enabled if each[0].id and not each[0].id.startswith("app.")]
        everywhere = [each for each in enabled if each[0].id and each[0].id.startswith("app.")]
        told: str = getattr(screen, "help_words", screen.HELP) or ""
        words = screen.app.keys.fill(told)  # type: ignore[attr-defined]
        tables = [_table(each) for each in (here, everywhere, [each for each in enabled if _goes(each[0])])]
        super().__init__("Help", "\n\n".join(filter(None, (words, *tables))))


def _goes(binding: Binding) -> bool:
    textuals = binding.action == "quit" or binding.action.startswith(("app.", "screen."))
    return not binding.id and (binding.action in _MOVES or not textuals)


def _table(bindings: list[tuple[Binding, str]]) -> str:
    return key_table((each.key, _MOVES.get(each.action, each.description), tip) for each, tip in bindings)
