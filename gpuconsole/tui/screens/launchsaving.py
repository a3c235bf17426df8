"""What the launch form says is saved as a profile: its name and its file asked, and once more where it is there."""

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

from gpuconsole.core.errors import Conflict, ConsoleError
from gpuconsole.core.text import plain_line
from gpuconsole.launch.spec import SpecInvalid
from gpuconsole.services.profilesaving import Saved
from gpuconsole.tui import sheets
from gpuconsole.tui.leaving import leave
from gpuconsole.tui.present import launchtext
from gpuconsole.tui.widgets.lines import Lines
from gpuconsole.tui.widgets.tick import Tick

if TYPE_CHECKING:
    from gpuconsole.launch.options import LaunchOptions
    from gpuconsole.tui.app import ConsoleApp

Outcome = Saved | SpecInvalid


class SaveProfile(ModalScreen[Outcome]):
    """Asks for a name, writes the profile, and gives what was written; None when nothing is to be saved.

    Args:
        proposed: The name to begin with.
        options: What the profile is to say.
        taken: Variables of the shell whose values are in it.
    """

    app: ConsoleApp
    CSS_PATH = sheets.of("launch")
    HELP = (
        "Enter saves; a name that is there already is told, and enter once more replaces it. "
        "Secrets are left to the shell that launches it."
    )
    AUTO_FOCUS = "#profile"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "Cancel"),
        Binding("down", "app.focus_next", "Next", show=False),
        Binding("up", "app.focus_previous", "Before", show=False),
    ]

    class Wrote(Message):
        """It was written, or could not be."""

        def __init__(self, outcome: Saved | ConsoleError) -> None:
            super().__init__()
            self.outcome = outcome

    def __init__(self, proposed: str, options: LaunchOptions, taken: frozenset[str] = frozenset()) -> None:
        super().__init__()
        self._proposed = proposed
        self._options = options
        self._taken_from_shell = taken
        self._taken = ""
        """The name and file that were found taken: saving once more replaces what is there."""

    def compose(self) -> ComposeResult:
        """Name, file, what stands in the way, buttons."""
        with Vertical(id="saving"):
            yield Static("Save as a profile", id="title", markup=False)
            with Horizontal(classes="row"):
                yield Static("Name", classes="word", markup=False)
                yield Input(self._proposed, id="profile", compact=True, placeholder="train")
            yield Tick("mine, in every folder; else this project's gpuconsole.toml", id="own")
            yield Lines(id="wrong")
            with Horizontal(id="buttons"):
                yield Button("Cancel", id="no", compact=True)
                yield Button("Save", id="yes", compact=True)

    @property
    def _place(self) -> str:
        return f"{self.query_one('#profile', Input).value.strip()} {self.query_one('#own', Tick).value}"

    @on(Input.Changed)
    @on(Tick.Turned)
    def _hear(self) -> None:
        if self._taken and self._taken != self._place:
            self._taken = ""
            self._tell("")

    def _tell(self, words: str) -> None:
        lines = self.query_one("#wrong", Lines)
        lines.show(launchtext.wrapped(words, max(20, lines.size.width), "critical") if words else [])
        self.query_one("#yes", Button).label = "Replace" if self._taken else "Save"

    @on(Input.Submitted)
    def _submit(self, event: Input.Submitted) -> None:
        event.stop()
        self._write()

    @on(Button.Pressed)
    def _press(self, event: Button.Pressed) -> None:
        if event.button.id == "yes":
            self._write()
        else:
            self.action_back()

    def _write(self) -> None:
        """Write it, on a thread of its own: the file may be on the network."""
        name, own = self.query_one("#profile", Input).value.strip(), self.query_one("#own", Tick).value
        replace, session, options = self._taken == self._place, self.app.desk.session, self._options
        taken = self._taken_from_shell

        def work() -> None:
            from gpuconsole.services.profilesaving import save_options

            try:
                done = save_options(session, name, options, to_user=own, replace=replace, taken=taken)
                self.post_message(self.Wrote(done))
            except ConsoleError as error:
                self.post_message(self.Wrote(error))

        threading.Thread(target=work, name="profile-saver", daemon=True).start()

    @on(Wrote)
    def _end(self, news: Wrote) -> None:
        outcome = news.outcome
        if isinstance(outcome, Saved | SpecInvalid):
            leave(self, outcome)
        elif isinstance(outcome, Conflict):
            self._taken = self._place
            self._tell(plain_line(f"{outcome.message} Save once more (enter) to replace it, or choose another name."))
            self.query_one("#yes", Button).focus()
        else:
            self._tell(plain_line(f"{outcome.message} {outcome.hint or ''}"))
            self.query_one("#profile", Input).focus()

    def action_back(self) -> None:
        """Save nothing."""
        leave(self)
