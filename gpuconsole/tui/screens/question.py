"""A question before something is changed: it names the object, and Cancel has the focus."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen, Screen
from textual.widgets import Button, Input, Static

from gpuconsole.tui import sheets
from gpuconsole.tui.leaving import leave


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked."""

    title: str
    """``Remove train?``."""
    body: str
    """What will be, in a sentence or two."""
    verb: str
    """The button's word."""
    word: str | None = None
    """What must be typed to go on, when it is someone else's."""
    word_is: str = "its name"
    """What that word is of the object."""
    warning: str = ""


class QuestionScreen(ModalScreen[bool]):
    """Asks, and gives the answer."""

    CSS_PATH = sheets.of("question")
    HELP = "Enter presses the button in focus; tab goes to the other; esc means no."
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,n", "no", "No"),
        Binding("left,right", "app.focus_next", "Other button", show=False),
        Binding("y", "yes", "Yes", show=False),
    ]

    def __init__(self, question: Question, *, asked_by: Screen[Any] | None = None) -> None:
        super().__init__()
        self._question = question
        self.asked_by = asked_by
        """The screen that waits for the answer; when that is left, nobody is asked any more."""

    def compose(self) -> ComposeResult:
        """Title, body, buttons."""
        question = self._question
        with Vertical(id="question"):
            yield Static(question.title, id="title", markup=False)
            yield Static(question.body, id="body", markup=False)
            if question.warning:
                yield Static(question.warning, id="warning", markup=False)
            if question.word is not None:
                yield Static(f"Type {question.word_is} to go on:", markup=False)
                yield Input(id="word", compact=True)
            with Horizontal(id="buttons"):
                yield Button("Cancel", id="no", compact=True)
                yield Button(question.verb, id="yes", compact=True, disabled=question.word is not None)

    def on_mount(self) -> None:
        """The safe answer has the focus."""
        self.query_one("#no", Button).focus()

    @on(Input.Changed, "#word")
    def _compare(self, event: Input.Changed) -> None:
        self.query_one("#yes", Button).disabled = event.value.strip() != self._question.word

    @on(Button.Pressed)
    def _answer(self, event: Button.Pressed) -> None:
        leave(self, event.button.id == "yes")

    def action_no(self) -> None:
        """Nothing is done."""
        leave(self, False)

    def action_yes(self) -> None:
        """Do it, unless more must be typed."""
        if self._question.word is None:
            leave(self, True)
