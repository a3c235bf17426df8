"""Told once after a launch: where to point a browser, with the token, and how to get there from another machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Button

from gpuconsole.tui import sheets
from gpuconsole.tui.leaving import leave
from gpuconsole.tui.present.launchaccess import access_lines
from gpuconsole.tui.widgets.lines import Lines

if TYPE_CHECKING:
    from gpuconsole.services.access import Access
    from gpuconsole.tui.app import ConsoleApp


class AccessScreen(ModalScreen[None]):
    """Shows it until it is closed.

    Args:
        access: How it is used.
        name: The container's.
    """

    app: ConsoleApp
    CSS_PATH = sheets.of("launch")
    HELP = "y copies the address with its token, t the line for another machine; enter goes on."
    AUTO_FOCUS = "#on"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "on", "Go on"),
        Binding("y", "copy_url", "Copy"),
        Binding("t", "copy_tunnel", "Copy the tunnel"),
    ]

    def __init__(self, access: Access, name: str) -> None:
        super().__init__()
        self._access = access
        self._of = name

    def compose(self) -> ComposeResult:
        """What there is to know, and buttons."""
        with VerticalScroll(id="access", can_focus=False):
            yield Lines(id="told")
            with Horizontal(id="buttons"):
                yield Button("y Copy the address", id="url", compact=True)
                if self._access.tunnel:
                    yield Button("t Copy the ssh line", id="tunnel", compact=True)
                yield Button("Go on", id="on", compact=True)

    def on_mount(self) -> None:
        """Write it."""
        self._draw()

    def on_resize(self, event: events.Resize) -> None:
        """Fit anew."""
        self.call_after_refresh(self._draw)

    def _draw(self) -> None:
        told = self.query_one("#told", Lines)
        told.show(access_lines(self._access, self._of, told.size.width or self.app.size.width - 6))

    @on(Button.Pressed)
    def _press(self, event: Button.Pressed) -> None:
        event.stop()
        {"url": self.action_copy_url, "tunnel": self.action_copy_tunnel}.get(event.button.id or "", self.action_on)()

    def _copy(self, text: str, what: str) -> None:
        from gpuconsole.tui.screens.copying import copy

        copy(self.app, text)
        self.app.notify(f"Copied {what}.", markup=False)

    def action_copy_url(self) -> None:
        """Put the address into the clipboard."""
        self._copy(self._access.url, "the address with its token" if "?" in self._access.url else "the address")

    def action_copy_tunnel(self) -> None:
        """Put the line for another machine into the clipboard."""
        if self._access.tunnel:
            self._copy(self._access.tunnel, "the line for another machine")

    def action_on(self) -> None:
        """Close it."""
        leave(self)
