"""A build asked for: four fields, none of which must be filled, and what they come to on this machine."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Static

from gpuconsole.core.errors import ConsoleError
from gpuconsole.tui import sheets
from gpuconsole.tui.leaving import leave
from gpuconsole.tui.present import buildform
from gpuconsole.tui.present.cell import Cell
from gpuconsole.tui.widgets.completer import Choices, CompletingInput
from gpuconsole.tui.widgets.lines import Lines

if TYPE_CHECKING:
    from gpuconsole.services.buildorders import BuildOrder, Chosen
    from gpuconsole.tui.app import ConsoleApp


class BuildScreen(ModalScreen["tuple[BuildOrder, Chosen]"]):
    """Asks what to build, and gives the order with what it comes to."""

    app: ConsoleApp
    CSS_PATH = sheets.of("images")
    HELP = (
        "What is left empty is chosen so that it runs on this machine. Down opens what a field can be, tab or enter "
        "takes it; enter goes on to the next field. The image gets JupyterLab and TensorBoard, and is checked."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "Cancel"),
        Binding("f5,ctrl+s", "build", "Build"),
        Binding("down", "app.focus_next", "Next field", show=False),
        Binding("up", "app.focus_previous", "Field before", show=False),
    ]

    class Weighed(Message):
        """What was typed comes to this."""

        def __init__(self, number: int, order: BuildOrder | None, outcome: Chosen | ConsoleError) -> None:
            super().__init__()
            self.number = number
            self.order = order
            self.outcome = outcome

    def __init__(self) -> None:
        super().__init__()
        self._number = 0
        self._ready: tuple[BuildOrder, Chosen] | None = None

    def compose(self) -> ComposeResult:
        """A title, the fields, what they come to, buttons."""
        with Vertical(id="building"):
            yield Static("Build an image with PyTorch", id="title", markup=False)
            for key, _, hint in buildform.FIELDS:
                with Horizontal(classes="row"):
                    yield Lines(id=f"label-{key}", classes="label")
                    yield CompletingInput(id=key, name=key, placeholder=hint, completes=key in ("torch", "cuda"))
            yield Lines(id="outcome")
            with Horizontal(id="buttons"):
                yield Button("Cancel", id="no", compact=True)
                yield Button("Build", id="yes", compact=True, disabled=True)
        yield Choices(id="choices")

    def on_mount(self) -> None:
        """Weigh what is chosen when nothing is typed."""
        for key, label, _ in buildform.FIELDS:
            self.query_one(f"#label-{key}", Lines).show([(Cell(label, "dim"),)])
        self.query_one("#torch", Input).focus()
        self._weigh()

    def _typed(self) -> dict[str, str]:
        return {key: self.query_one(f"#{key}", Input).value for key, _, _ in buildform.FIELDS}

    def _weigh(self) -> None:
        """Find out what it comes to, in the background: the engine is asked for its machine."""
        self._number += 1
        self._ready = None
        self.query_one("#yes", Button).disabled = True
        number, typed, desk = self._number, self._typed(), self.app.desk.images

        def work() -> None:
            from gpuconsole.services.imagebuilds import ordered

            try:
                order = ordered(typed)
                self.post_message(self.Weighed(number, order, desk.builds.chosen(order)))
            except ConsoleError as error:
                self.post_message(self.Weighed(number, None, error))

        threading.Thread(target=work, name="build-weighing", daemon=True).start()

    @on(Weighed)
    def _show(self, news: Weighed) -> None:
        if news.number != self._number:
            return  # something else stands there by now
        lines, width = self.query_one("#outcome", Lines), max(20, self.query_one("#outcome").size.width or 70)
        if isinstance(news.outcome, ConsoleError) or news.order is None:
            failure = news.outcome if isinstance(news.outcome, ConsoleError) else ConsoleError("It cannot be built.")
            lines.show(buildform.problem(failure, width))
            return
        self._ready = (news.order, news.outcome)
        lines.show(buildform.outcome(news.outcome, self.app.glyphs, width))
        self.query_one("#yes", Button).disabled = False

    # --- typing ---

    @on(Input.Changed)
    def _hear(self, event: Input.Changed) -> None:
        event.stop()
        self._weigh()
        line = event.input
        if isinstance(line, CompletingInput) and line.completes and line.has_focus and line.value != line.settled:
            self._offer(line, everything=False)
        else:
            self.query_one(Choices).shut()

    @on(CompletingInput.Wanted)
    def _open(self, event: CompletingInput.Wanted) -> None:
        self._offer(event.field, everything=event.everything)

    def _offer(self, line: CompletingInput, *, everything: bool) -> None:
        torch = self.query_one("#torch", Input).value
        found = buildform.choices(line.name or "", line.value, torch, everything=everything)
        if len(found) == 1 and found[0][0] == line.value:
            found = []
        self.query_one(Choices).offer(found, line)

    @on(Input.Submitted)
    def _go_on(self, event: Input.Submitted) -> None:
        event.stop()
        self.focus_next()

    # --- the answer ---

    @on(Button.Pressed)
    def _press(self, event: Button.Pressed) -> None:
        if event.button.id == "yes":
            self.action_build()
        else:
            self.action_back()

    def action_build(self) -> None:
        """Build it, once it is known what it comes to."""
        if self._ready is not None:
            leave(self, self._ready)

    def action_back(self) -> None:
        """Build nothing."""
        leave(self)
