"""Windows too small to read are covered, and no key but those that leave is heard in them."""

from __future__ import annotations

from textual import events
from textual.app import App

from gpuconsole.tui.keymap import Keymap
from gpuconsole.tui.present import notice
from gpuconsole.tui.widgets.lines import Lines

SMALLEST = (40, 10)
"""Columns and rows from which the console can be used."""


class TooSmall(Lines):
    """Stands over a screen and says which size is needed."""


class RoomyApp(App[None]):
    """An app that needs room: nobody can act on what cannot be seen, nor answer a question unread."""

    keys: Keymap

    @property
    def too_small(self) -> bool:
        """Whether the window is below what can be read."""
        return self.size.width < SMALLEST[0] or self.size.height < SMALLEST[1]

    async def on_event(self, event: events.Event) -> None:
        """Hear an event, but in a window that is too small only the keys that leave."""
        if isinstance(event, events.Key | events.Paste | events.MouseEvent) and self.too_small:
            if isinstance(event, events.Key) and event.key in (*self.keys.of("app.quit"), "ctrl+c"):
                self.exit()
            self._cover()
            return
        await super().on_event(event)
        if isinstance(event, events.Resize):
            self._cover()

    def _cover(self) -> None:
        """Say on the screen that the window is too small, or let it be seen again."""
        if not self._screen_stack:
            return
        self.screen.set_class(self.too_small, "-too-small")
        covers = self.screen.query(TooSmall)
        if not self.too_small:
            covers.remove()
            return
        if not covers:
            self.screen.mount(TooSmall())
        told = notice.too_small(*self.size, SMALLEST, quits=self.keys.name("app.quit"))
        self.screen.query_one(TooSmall).show(told)
