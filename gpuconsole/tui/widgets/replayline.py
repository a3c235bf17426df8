"""The line above every screen of a recording: it is drawn as time goes on there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuconsole.tui.present import replay as present
from gpuconsole.tui.widgets.lines import Lines

if TYPE_CHECKING:
    from gpuconsole.tui.replaying import ReplayApp

_LOOK_S = 0.2


class ReplayLine(Lines):
    """Where one is in the recording, how fast it goes, and the keys that go elsewhere."""

    app: ReplayApp
    DEFAULT_CSS = "ReplayLine { dock: top; height: 1; background: $bar-background; }"

    def on_mount(self) -> None:
        """Follow the clock."""
        self.set_interval(_LOOK_S, self.draw)
        self.draw()

    def draw(self) -> None:
        """Say how the playing is now."""
        app = self.app
        width = self.size.width or app.size.width
        self.show([present.line(app.playing, app.keys, width, app.glyphs)])
