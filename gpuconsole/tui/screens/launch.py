"""The launch form: one screen, from defaults to a running container in one key."""

from __future__ import annotations

import os
import textwrap
from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.message import Message
from textual.screen import Screen
from textual.suggester import SuggestFromList
from textual.widgets import Button, Checkbox, Input
from textual.worker import get_current_worker

from gpuconsole.core.errors import ConsoleError
from gpuconsole.engine.model import Container
from gpuconsole.launch.spec import SpecInvalid
from gpuconsole.services.launching import Launched
from gpuconsole.services.launchruns import LaunchRun
from gpuconsole.tui.present import launchform
from gpuconsole.tui.present.cell import Cell
from gpuconsole.tui.present.gpu import bar
from gpuconsole.tui.screens.doing import enter
from gpuconsole.tui.widgets.keyline import KeyLine
from gpuconsole.tui.widgets.lines import Lines

if TYPE_CHECKING:
    from gpuconsole.launch.spec import FieldProblem, LaunchSpec
    from gpuconsole.tui.app import ConsoleApp

_SETTLE_S = 0.3
"""After so much silence what was typed is weighed."""


class Tick(Checkbox):
    """A checkbox whose sign, not its colour alone, says whether it is set."""

    @property
    def BUTTON_INNER(self) -> str:  # type: ignore[override]  # Textual's name for the sign
        """The sign."""
        return "X" if self.value else " "


class LaunchScreen(Screen[None]):
    """Asks what to launch, launches it, and joins it.

    Args:
        image: The image to begin with; None proposes one.
    """

    app: ConsoleApp
    HELP = (
        "Tab goes through the fields. F5, or Enter on Launch, starts the container and joins its terminal.\n"
        "The line below is the docker command it amounts to. Esc stops a launch under way, else goes back."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f5", "launch", "Launch", tooltip="Start the container"),
        Binding("escape", "back", "Back", tooltip="Stop the launch under way, else go back"),
        Binding("down", "app.focus_next", "Next field", show=False),
        Binding("up", "app.focus_previous", "Field before", show=False),
    ]

    class Weighed(Message):
        """What was typed amounts to this."""

        def __init__(self, number: int, line: str, notes: tuple[str, ...], failure: ConsoleError | None) -> None:
            super().__init__()
            self.number = number
            self.line = line
            self.notes = notes
            self.failure = failure

    class WentOn(Message):
        """A launch is at another step."""

        def __init__(self, words: str, share: float | None) -> None:
            super().__init__()
            self.words = words
            self.share = share

        def can_replace(self, message: Message) -> bool:
            """Only the newest step matters."""
            return isinstance(message, LaunchScreen.WentOn)

    class Ended(Message):
        """A launch is over."""

        def __init__(self, outcome: Launched | ConsoleError) -> None:
            super().__init__()
            self.outcome = outcome

    def __init__(self, image: str | None = None) -> None:
        super().__init__()
        self._image = image
        self._run: LaunchRun | None = None
        self._number = 0

    def compose(self) -> ComposeResult:
        """Fields, GPUs, the docker line, buttons."""
        images = self.app.images or ()
        start = launchform.defaults(images, self._image, folder=os.getcwd())
        yield Lines(id="top")
        with VerticalScroll(id="fields"):
            for field in launchform.FIELDS:
                with Horizontal(classes="field"):
                    yield Lines(id=f"label-{field.key}", classes="label")
                    suggester = None
                    if field.key == "image":
                        suggester = SuggestFromList([tag for view in images for tag in view.image.tags])
                    yield Input(
                        start.get(field.key, ""),
                        id=f"field-{field.key}",
                        placeholder=field.hint,
                        compact=True,
                        suggester=suggester,
                    )
                    yield Lines(id=f"problem-{field.key}", classes="problem")
            with Horizontal(classes="field"):
                yield Tick("remove it when it ends", id="remove", compact=True)
                yield Tick("join its terminal", True, id="join", compact=True)
                yield Button("Launch", id="launch", compact=True)
        yield Lines(id="gpus")
        yield Lines(id="line")
        yield Lines(id="progress")
        yield KeyLine(id="keys")

    def on_mount(self) -> None:
        """Label the fields; the button has the focus, so that defaults need one key."""
        self.query_one("#top", Lines).show([(Cell(" Launch a container", "strong"),)])
        for field in launchform.FIELDS:
            self.query_one(f"#label-{field.key}", Lines).show([(Cell(f" {field.label}", "dim"),)])
        self.watch(self.app, "host_view", self._show_gpus)
        image = self.query_one("#field-image", Input)
        (self.query_one("#launch", Button) if image.value else image).focus()
        self._weigh()

    def _show_gpus(self) -> None:
        rows = 2 if self.size.height < 30 else 8
        self.query_one("#gpus", Lines).show(launchform.gpu_lines(self.app.host_view, at_most=rows))

    @on(Input.Changed)
    @on(Checkbox.Changed)
    def _typed(self) -> None:
        self.set_timer(_SETTLE_S, self._weigh)

    @on(Input.Submitted)
    def _next_field(self) -> None:
        self.focus_next()

    def _read(self) -> tuple[LaunchSpec | None, list[FieldProblem]]:
        from gpuconsole.launch.fields import Surroundings
        from gpuconsole.launch.options import read_options

        typed = {field.key: self.query_one(f"#field-{field.key}", Input).value for field in launchform.FIELDS}
        options, problems = launchform.options_of(typed, auto_remove=self.query_one("#remove", Checkbox).value)
        try:
            local = self.app.engine_info is None or self.app.engine_info.local
            spec = read_options(options, Surroundings.current(engine_is_local=local))
        except SpecInvalid as error:
            return None, [*problems, *error.problems]
        return (None if problems else spec), problems

    def _weigh(self) -> None:
        """Say what is wrong beside each field, and below what it all amounts to."""
        if not self.is_mounted:
            return
        spec, problems = self._read()
        for field in launchform.FIELDS:
            text = launchform.problem_of(field, problems)
            self.query_one(f"#problem-{field.key}", Lines).show([(Cell(f" {text}" if text else "", "critical"),)])
        self.query_one("#launch", Button).disabled = spec is None
        self._number += 1
        if spec is None:
            self.query_one("#line", Lines).show([(Cell(" Correct what is marked.", "dim"),)])
        else:
            self._plan(spec, self._number)

    @work(thread=True, exclusive=True, exit_on_error=False, group="plan", description="Planning a launch")
    def _plan(self, spec: LaunchSpec, number: int) -> None:
        from gpuconsole.services.planning import plan_launch

        try:
            plan = plan_launch(self.app.desk.session, spec)
            news = self.Weighed(number, str(plan.docker_run(hide_values=True)), (*plan.reasons, *plan.notes), None)
        except ConsoleError as error:
            news = self.Weighed(number, "", (), error)
        if not get_current_worker().is_cancelled:
            self.post_message(news)

    @on(Weighed)
    def _show_plan(self, news: Weighed) -> None:
        if news.number != self._number:
            return
        width = max(20, self.size.width - 2)
        if news.failure is not None:
            texts = [(part, "critical") for part in textwrap.wrap(news.failure.message, width)]
            texts += [(part, "dim") for part in textwrap.wrap(f"→ {news.failure.hint}", width)]
        else:
            texts = [(part, "info") for part in textwrap.wrap(news.line, width, break_on_hyphens=False)]
            texts += [(part, "dim") for note in news.notes for part in textwrap.wrap(note, width)]
        room = max(3, self.size.height - 18)
        self.query_one("#line", Lines).show([(Cell(f" {text}", tone),) for text, tone in texts[:room]])  # type: ignore[arg-type]

    # --- the launch itself ---

    @on(Button.Pressed, "#launch")
    def _pressed(self) -> None:
        self.action_launch()

    def action_launch(self) -> None:
        """Start the container."""
        if self._run is not None or self.app.readonly:
            return
        spec, problems = self._read()
        if spec is None:
            self._weigh()
            self.app.notify(f"{len(problems)} fields must be corrected.", severity="error", markup=False)
            return
        self._say("begins", None)
        self._run = LaunchRun(
            self.app.desk,
            spec,
            on_words=self._went_on,
            on_end=self._ended,
        )
        self._run.start()

    def _went_on(self, words: str, share: float | None) -> None:
        self.post_message(self.WentOn(words, share))  # on the launch's thread

    def _ended(self, outcome: Launched | ConsoleError) -> None:
        self.post_message(self.Ended(outcome))  # on the launch's thread

    def _say(self, words: str, share: float | None) -> None:
        part = "" if share is None else f"{bar(share, 20, self.app.glyphs)} {share:.0%}  "
        self.query_one("#progress", Lines).show([(Cell(f" {part}{words} …", "accent"),)])

    @on(WentOn)
    def _show_step(self, news: WentOn) -> None:
        if self._run is not None:
            self._say(news.words, news.share)

    @on(Ended)
    def _finish(self, news: Ended) -> None:
        self._run = None
        outcome = news.outcome
        if isinstance(outcome, ConsoleError):
            width = max(20, self.size.width - 2)
            texts = [(part, "critical") for part in textwrap.wrap(outcome.message, width)]
            texts += [(part, "dim") for part in textwrap.wrap(f"→ {outcome.hint}", width) if outcome.hint]
            self.query_one("#progress", Lines).show([(Cell(f" {text}", tone),) for text, tone in texts])  # type: ignore[arg-type]
            return
        self.app.desk.refresh()
        self.app.launched(outcome.id)
        join = self.query_one("#join", Checkbox).value
        self.dismiss(None)
        if outcome.ending is not None:
            self.app.notify(f"{outcome.name} has ended at once; l shows its output.", severity="warning", markup=False)
        elif join and outcome.container is not None:
            self.app.call_after_refresh(_join, self.app, outcome.container)

    def action_back(self) -> None:
        """Stop the launch under way, else go back."""
        if self._run is not None:
            self._run.cancel()
            self._say("stops, and takes back what was made", None)
        else:
            self.dismiss(None)


def _join(app: ConsoleApp, container: Container) -> None:
    """Its terminal when it has one; else a shell beside its work."""
    enter(app, "attach" if container.tty else "shell", container)
