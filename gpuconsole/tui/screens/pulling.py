"""A name typed, to be pulled: completed from the catalog, the lock file and the images that are here."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Static

from gpuconsole.core.errors import ConsoleError
from gpuconsole.tui import sheets
from gpuconsole.tui.leaving import leave
from gpuconsole.tui.present import pullable
from gpuconsole.tui.widgets.completer import Choices, CompletingInput
from gpuconsole.tui.widgets.lines import Lines

if TYPE_CHECKING:
    from gpuconsole.tui.app import ConsoleApp


class PullScreen(ModalScreen[str]):
    """Asks for a reference, and gives it."""

    app: ConsoleApp
    CSS_PATH = sheets.of("images")
    HELP = "Type a reference, or words of one; down opens what it can be, tab or enter takes it, enter again pulls it."
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "back", "Cancel")]

    def compose(self) -> ComposeResult:
        """A title, the input, what is known of what stands in it."""
        with Vertical(id="pulling"):
            yield Static("Pull an image", id="title", markup=False)
            yield CompletingInput(
                id="reference",
                name="reference",
                placeholder="pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime; down lists the catalog",
                completes=True,
            )
            yield Lines(id="known")
            with Horizontal(id="buttons"):
                yield Button("Cancel", id="no", compact=True)
                yield Button("Pull", id="yes", compact=True)
        yield Choices(id="choices")

    def on_mount(self) -> None:
        """Type at once; what is judged comes by itself."""
        self.app.desk.judge_images()
        self.query_one("#reference", Input).focus()
        self.watch(self.app, "shelf", self._tell, init=False)
        self._tell()

    @property
    def _typed(self) -> str:
        return self.query_one("#reference", Input).value.strip()

    def _tell(self) -> None:
        app = self.app
        width = max(20, self.query_one("#known").size.width or 70)
        self.query_one("#known", Lines).show(pullable.known(self._typed, app.shelf, app.glyphs, width=width))

    @on(Input.Changed)
    def _hear(self, event: Input.Changed) -> None:
        event.stop()
        self._tell()
        line = event.input
        if isinstance(line, CompletingInput) and line.value != line.settled:
            self._offer(line, line.value)
        else:
            self.query_one(Choices).shut()

    @on(CompletingInput.Wanted)
    def _open(self, event: CompletingInput.Wanted) -> None:
        self._offer(event.field, event.field.value)

    def _offer(self, line: CompletingInput, words: str) -> None:
        app = self.app
        found = pullable.choices(words, app.shelf, app.images or (), app.glyphs)
        if len(found) == 1 and found[0][0] == line.value:
            found = []
        self.query_one(Choices).offer(found, line)

    @on(Input.Submitted)
    def _submit(self, event: Input.Submitted) -> None:
        event.stop()
        self._take()

    @on(Button.Pressed)
    def _press(self, event: Button.Pressed) -> None:
        if event.button.id == "yes":
            self._take()
        else:
            self.action_back()

    def _take(self) -> None:
        """Give it, unless it is no reference."""
        from gpuconsole.services.pullruns import read_reference

        if not self._typed:
            return
        try:
            reference = read_reference(self._typed)
        except ConsoleError as error:
            self.query_one("#known", Lines).show(pullable.refused(error))
            return
        leave(self, str(reference))

    def action_back(self) -> None:
        """Pull nothing."""
        leave(self)
