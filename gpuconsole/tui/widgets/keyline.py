"""The footer: the keys that matter now, as many as fit."""

from __future__ import annotations

from textual import events
from textual.binding import Binding

from gpuconsole.tui import actions
from gpuconsole.tui.present.cell import Cell
from gpuconsole.tui.present.helping import key_name
from gpuconsole.tui.widgets.lines import Lines

_RANKS = {action.id: action.rank for action in actions.ALL} | {"thing.open": 1}


class KeyLine(Lines):
    """One line of keys and words; what fits less well than the rest is left out, never cut."""

    def on_mount(self) -> None:
        """Follow what can be done now."""
        self.screen.bindings_updated_signal.subscribe(self, lambda _: self.draw())
        self.draw()

    def on_resize(self, event: events.Resize) -> None:
        """Fit anew."""
        self.draw()

    def draw(self) -> None:
        """Choose what fits."""
        width = self.size.width or self.app.size.width
        if not self.is_mounted or width == 0:
            return
        entries = self._entries()
        room, chosen = width - 1, []
        for rank, order, key, label in sorted(entries):
            width = len(key) + 1 + len(label) + 2
            if width <= room + 2:
                chosen.append((order, rank, key, label))
                room -= width
        cells = [Cell(" ")]
        for _, _, key, label in sorted(chosen):
            cells += [Cell(key, "accent"), Cell(f" {label}  ", "dim")]
        self.show([tuple(cells)])

    def _entries(self) -> list[tuple[int, int, str, str]]:
        """(rank, place, key, label) of what can be done now."""
        found: list[tuple[int, int, str, str]] = []
        seen: set[str] = set()
        for order, (_, binding, enabled, _) in enumerate(self.screen.active_bindings.values()):
            if not enabled or not binding.show or not binding.description or binding.description in seen:
                continue
            if self._is_typed(binding.key):
                continue
            seen.add(binding.description)
            found.append((_rank(binding), order, key_name(binding.key), binding.description))
        return found

    def _is_typed(self, key: str) -> bool:
        """Where the focus is, the key is a letter of a text; what else does the same is shown in its place."""
        focused, name = self.screen.focused, key_name(key)
        return focused is not None and len(name) == 1 and focused.check_consume_key(key, name)


def _rank(binding: Binding) -> int:
    return _RANKS.get(binding.id or "", 3)
