"""The main screen's line that its lists are filtered by: typed, kept, taken away."""

from __future__ import annotations

from textual import on
from textual.reactive import reactive
from textual.widgets import Input

from gpuconsole.tui.screens.imagetab import ImageTab
from gpuconsole.tui.widgets.grid import Grid


class Filtering(ImageTab):
    """The part of the main screen that is about the words to look for."""

    words: reactive[str] = reactive("", init=False, repaint=False)
    """What the lists are filtered by."""

    @property
    def grid(self) -> Grid:
        """The grid of the list that is shown."""
        raise NotImplementedError

    def watch_words(self) -> None:
        """Other rows."""
        self._draw()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """While something is typed, its keys are letters."""
        if action == "filter" and self.is_mounted and self.focused is self.query_one("#filter", Input):
            return False
        return super().check_action(action, parameters)

    def action_filter(self) -> None:
        """Type what to look for."""
        line = self.query_one("#filter", Input)
        line.display = True
        line.value = self.words
        line.cursor_position = len(line.value)
        self.set_focus(line)
        self.refresh_bindings()

    @on(Input.Changed, "#filter")
    def _filter_as_typed(self, event: Input.Changed) -> None:
        if self.query_one("#filter", Input).display:
            self.words = event.value

    @on(Input.Submitted, "#filter")
    def _keep_filter(self, event: Input.Submitted) -> None:
        self.words = event.value  # it can come before the change it follows
        self.query_one("#filter", Input).display = False
        self.grid.focus()

    def action_unfilter(self) -> None:
        """Show every row again."""
        self.words = ""
        self.fits = False
        self.query_one("#filter", Input).display = False
        self.grid.focus()
