"""The launch form: one screen, from defaults to a running container in one key."""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.message import Message
from textual.widgets import Button

from gpuconsole.core.errors import ConsoleError
from gpuconsole.core.text import plain_line
from gpuconsole.launch.spec import SpecInvalid
from gpuconsole.services.launching import Launched
from gpuconsole.services.launchruns import LaunchNews, LaunchRun
from gpuconsole.tui import actions, sheets
from gpuconsole.tui.messages import ActionDone, ActionFailed
from gpuconsole.tui.present import launchform, launchtext
from gpuconsole.tui.present.cell import Cell
from gpuconsole.tui.screens.asking import about_launch
from gpuconsole.tui.screens.launchfields import LaunchFields
from gpuconsole.tui.screens.launchweighing import Weighing
from gpuconsole.tui.screens.lending import enter
from gpuconsole.tui.widgets.completer import Choices
from gpuconsole.tui.widgets.keyline import KeyLine
from gpuconsole.tui.widgets.lines import Lines
from gpuconsole.tui.widgets.tick import Tick

if TYPE_CHECKING:
    from gpuconsole.tui.app import ConsoleApp


class LaunchScreen(Weighing):
    """Asks what to launch, launches it, and joins it.

    Args:
        image: The image to begin with; None proposes one.
    """

    CSS_PATH = sheets.of("launch")
    app: ConsoleApp
    HELP = (
        "{launch.start}, or enter on Launch, starts the container. Tab and the arrows go through the fields; down "
        "opens what a field can be, tab or enter takes it. Space ticks a GPU. Below is the docker command it makes.\n"
        "What was launched from a folder is what the form starts with there the next time."
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        *actions.bindings((*actions.LAUNCH, actions.BACK)),
        Binding("down", "app.focus_next", "Next field", show=False),
        Binding("up", "app.focus_previous", "Field before", show=False),
    ]

    class Began(Message):
        """What was launched from here before is known."""

        def __init__(self, values: dict[str, str]) -> None:
            super().__init__()
            self.values = values

    class WentOn(Message):
        """A launch is at another step."""

        def __init__(self, news: LaunchNews) -> None:
            super().__init__()
            self.news = news

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
        self._left = False
        self._launch_soon = False
        self._begun_with: dict[str, str] = {}

    def compose(self) -> ComposeResult:
        """Fields, ticks and button, what it amounts to, keys."""
        yield Lines(id="top")
        yield LaunchFields(id="fields")
        with Horizontal(id="ticks"):
            yield Button("Launch", id="launch", compact=True)
            yield Tick("attach", id="join", value=True)
            yield Tick("terminal", id="terminal", value=True)
            yield Tick("remove it when it ends", id="remove")
        yield VerticalScroll(Lines(id="below"), id="room", can_focus=False)
        yield KeyLine(id="keys")
        yield Choices(id="choices")

    def on_mount(self) -> None:
        """Ask what was launched from here before."""
        if self.app.readonly:
            self.app.notify("Nothing is launched with --readonly.", severity="error", markup=False)
            self.dismiss(None)
            return
        folder = launchform.current_folder()
        words = f" in {plain_line(folder)}" if folder else ""
        self.query_one("#top", Lines).show([(Cell(" Launch a container", "strong"), Cell(words, "dim"))])
        self.query_one("#launch", Button).focus()
        self._show_gpus()
        self.watch(self.app, "host_view", self._show_gpus, init=False)
        self.watch(self.app, "images", self._propose_image, init=False)
        self.watch(self.app, "link", self._settle, init=False)
        self.app.desk.judge_images()  # its field completes what could be pulled, with the verdict
        drafts = self.app.desk.drafts

        def recall() -> None:
            self.post_message(self.Began(drafts.last(folder) if folder else {}))

        threading.Thread(target=recall, name="draft", daemon=True).start()

    def on_resize(self, event: events.Resize) -> None:
        """Fit what is below."""
        if self._began:
            self._show_gpus()
            self.call_after_refresh(self._show_weight)

    # --- what it starts with ---

    @on(Began)
    def _begin(self, news: Began) -> None:
        app = self.app
        local = app.engine_info is None or app.engine_info.local
        unsent = app.desk.drafts.unsent
        values = dict(unsent or news.values)
        ticked = values.pop("ticks", "")
        if not values:
            none = app.host_view is not None and not app.host_view.gpus
            values = launchform.proposed(launchform.current_folder(), engine_is_local=local, without_gpus=none)
        if self._image is not None:
            values["image"] = self._image
        elif not values.get("image"):
            values["image"] = launchform.proposed_image(app.images or ())
        if "remove" in ticked.split():
            self.query_one("#remove", Tick).decide(True)
        self.fields.fill(values)
        self._begun_with = self._everything()
        self._began = True
        if launchform.MORE_KEYS & values.keys():
            self.add_class("-more")
        if not values.get("image"):
            self.fields.go_to("image")
        self._weigh()
        if self._launch_soon:
            self._launch_soon = False
            self.action_launch()

    def _propose_image(self) -> None:
        if self._began and not self.fields.value("image"):
            image = launchform.proposed_image(self.app.images or ())
            if image:
                self.fields.set("image", image)
                self._begun_with["image"] = image
                if self.focused is not None and self.focused.id == "field-image":
                    self.query_one("#launch", Button).focus()

    def _everything(self) -> dict[str, str]:
        ticks = ["remove"] if self.query_one("#remove", Tick).value else []
        return self.fields.typed() | ({"ticks": " ".join(ticks)} if ticks else {})

    # --- the launch itself ---

    @on(Button.Pressed, "#launch")
    def action_launch(self) -> None:
        """Start the container."""
        if self._run is not None or self.app.readonly:
            return
        if not self._began:
            self._launch_soon = True
            return
        options, problems = self._options()
        if problems:
            self._refuse(problems)
            return
        app, typed = self.app, self._everything()
        self._failure = []
        self._run = LaunchRun(
            self.app.desk,
            self._named(options),
            on_news=self._went_on,
            on_end=lambda outcome: self._ended(app, outcome, typed),
        )
        self.add_class("-launching")
        self.fields.show_problems(())
        self._show_step(self.WentOn(LaunchNews("begins")))
        self._run.start()
        self.refresh_bindings()

    def _went_on(self, news: LaunchNews) -> None:
        self.post_message(self.WentOn(news))  # on the launch's thread

    def _ended(self, app: ConsoleApp, outcome: Launched | ConsoleError, typed: dict[str, str]) -> None:
        """On the launch's thread, where a screen that was left knows no app any more."""
        folder = launchform.current_folder()
        if isinstance(outcome, Launched) and folder:
            app.desk.drafts.remember(folder, typed)
        if not self._left:
            self.post_message(self.Ended(outcome))
        elif isinstance(outcome, ConsoleError):
            app.post_message(ActionFailed(outcome))
        else:
            words = "runs" if outcome.ending is None else outcome.ending.words
            app.post_message(ActionDone(f"{outcome.name} {words}."))
            app.desk.refresh()

    @on(WentOn)
    def _show_step(self, news: WentOn) -> None:
        if self._run is None:
            return
        rows = max(3, self.query_one("#room").size.height)
        self.query_one("#below", Lines).show(
            launchtext.progress_lines(news.news, self.app.glyphs, width=self.size.width, rows=rows)
        )

    @on(Ended)
    def _finish(self, news: Ended) -> None:
        self._run = None
        self._made_name = None
        self.remove_class("-launching")
        self.refresh_bindings()
        outcome = news.outcome
        if isinstance(outcome, SpecInvalid):
            self._refuse(outcome.problems)
        elif isinstance(outcome, ConsoleError):
            self._stay(launchtext.failure_lines(outcome, self.size.width))
        elif outcome.ending is not None and (outcome.ending.exit_code != 0 or outcome.ending.restarts is not None):
            self.app.desk.refresh()
            self._stay(launchtext.ended_lines(outcome, self.size.width, self.app.keys))
        else:
            self._go_to(outcome)

    def _go_to(self, outcome: Launched) -> None:
        app, join = self.app, self.query_one("#join", Tick).value
        app.desk.drafts.unsent = None
        app.desk.refresh()
        app.launched(outcome.id)
        self.dismiss(None)
        if outcome.ending is not None:
            app.notify(f"{outcome.name} has ended already, and well.", markup=False)
        elif join and outcome.container is not None:
            # Its terminal when it has one; else a shell beside its work.
            verb = "attach" if outcome.container.tty else "shell"
            app.call_after_refresh(enter, app, verb, outcome.container)

    # --- away from it ---

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """What can be done depends on whether a launch is under way."""
        if action in ("launch", "more"):
            return self._run is None
        if action == "behind":
            return self._run is not None
        return True

    def action_more(self) -> None:
        """Show or hide what is rarely needed."""
        self.toggle_class("-more")
        if self.has_class("-more"):
            self.fields.go_to("memory")
        elif self.focused is not None and not self.focused.display:
            self.query_one("#launch", Button).focus()

    def action_behind(self) -> None:
        """Leave the launch to go on."""
        if self._run is not None:
            self._left = True
            self.app.desk.drafts.unsent = None
            self.dismiss(None)

    def action_back(self) -> None:
        """Ask to stop the launch under way; else go back, and keep what was typed for the next time."""
        if self._run is not None:
            self._ask_to_stop(self._run)
            return
        if self._began:
            now = self._everything()
            self.app.desk.drafts.unsent = now if now != self._begun_with or self.app.desk.drafts.unsent else None
        self.dismiss(None)

    def _ask_to_stop(self, run: LaunchRun) -> None:
        self.ask(about_launch(self.app.keys.name("launch.behind")), partial(self._stop, run))

    def _stop(self, run: LaunchRun) -> None:
        if self._run is run:
            run.cancel()
            self._show_step(self.WentOn(LaunchNews("stopping, and taking back what was made")))
