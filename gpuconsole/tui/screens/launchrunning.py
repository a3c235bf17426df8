"""The launch form's launch: what must be allowed is asked, its steps are shown, and its end leads on or is told."""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING

from textual import on
from textual.message import Message
from textual.widgets import Button

from gpuconsole.core.errors import ConsoleError
from gpuconsole.launch.spec import SpecInvalid
from gpuconsole.services.launching import Launched
from gpuconsole.services.launchruns import LaunchNews, LaunchRun
from gpuconsole.tui.leaving import leave, withdraw
from gpuconsole.tui.messages import ActionDone, ActionFailed
from gpuconsole.tui.present import launchform, launchtext
from gpuconsole.tui.screens.asking import about_launch, about_reach
from gpuconsole.tui.screens.launchprofile import Profiled
from gpuconsole.tui.screens.lending import enter
from gpuconsole.tui.widgets.lines import Lines
from gpuconsole.tui.widgets.tick import Tick

if TYPE_CHECKING:
    from gpuconsole.engine.model import Container
    from gpuconsole.launch.options import LaunchOptions
    from gpuconsole.services.profilefilling import Filling
    from gpuconsole.services.profilereach import Reach
    from gpuconsole.tui.app import ConsoleApp

WHOLE = "whole"
"""Among the ticks that are remembered: the fields said what the profile says, which then fills them anew."""


class Running(Profiled):
    """A form that launches what its fields say."""

    app: ConsoleApp

    class WentOn(Message):
        """A launch is at another step."""

        def __init__(self, news: LaunchNews) -> None:
            super().__init__()
            self.news = news

        def can_replace(self, message: Message) -> bool:
            """Only the newest step matters."""
            return isinstance(message, Running.WentOn)

    class Ended(Message):
        """A launch is over."""

        def __init__(self, outcome: Launched | ConsoleError) -> None:
            super().__init__()
            self.outcome = outcome

    class Reached(Message):
        """What the profile takes from outside of its folder is known; or that it is refused."""

        def __init__(self, options: LaunchOptions, found: tuple[Reach, ...] | ConsoleError) -> None:
            super().__init__()
            self.options = options
            self.found = found

    def __init__(self) -> None:
        super().__init__()
        self._left = False
        self._asking = False
        """What the profile takes is being looked at; nothing is launched twice meanwhile."""

    # --- it begins ---

    @on(Button.Pressed, "#launch")
    def action_launch(self) -> None:
        """Start the container."""
        if self._run is not None or self._asking or self.app.readonly:
            return
        if not self._began or self.reads_profile():
            self._launch_soon = True
            return
        if self.waits_for_image():
            return
        options, problems = self._options()
        if problems:
            self._refuse(problems)
        elif self._filling is None:
            self._launch(options)
        else:
            self._look_at_reach(self._filling, options)

    def _look_at_reach(self, filling: Filling, options: LaunchOptions) -> None:
        """Find out, on a thread of its own, what the profile takes that the caller must allow."""
        self._asking, session = True, self.app.desk.session

        def work() -> None:
            from gpuconsole.services.profilefilling import to_be_asked

            try:
                self.post_message(self.Reached(options, to_be_asked(session, filling, options)))
            except ConsoleError as error:
                self.post_message(self.Reached(options, error))

        threading.Thread(target=work, name="profile-reach", daemon=True).start()

    @on(Reached)
    def _ask_reach(self, news: Reached) -> None:
        self._asking = False
        if self._run is not None:
            return
        if isinstance(news.found, ConsoleError):
            self._stay(launchtext.failure_lines(news.found, self.size.width))
        elif news.found and self._filling is not None:
            self.ask(about_reach(self._filling, news.found), partial(self._allow, self._filling, news))
        else:
            self._launch(news.options)

    def _allow(self, filling: Filling, news: Reached) -> None:
        """At yes."""
        from gpuconsole.services.profilefilling import allowed

        if not isinstance(news.found, ConsoleError):
            session, found = self.app.desk.session, news.found
            threading.Thread(target=lambda: allowed(session, filling, found), name="profile-grant", daemon=True).start()
        self._launch(news.options)

    def _launch(self, options: LaunchOptions) -> None:
        app, typed, taken = self.app, self.remembered(), self.taken
        self._failure = []
        self._run = LaunchRun(
            app.desk,
            self._named(options),
            on_news=self._went_on,
            on_end=lambda outcome: self._ended(app, outcome, typed, taken),
            profile=self.profile_name,
            taken=taken,
            when_free=self.query_one("#free", Tick).value,
        )
        self.add_class("-launching")
        self.fields.show_remarks((), more=self.has_class("-more"))
        self._show_step(self.WentOn(LaunchNews("begins")))
        self._run.start()
        self.refresh_bindings()

    # --- what is remembered of it ---

    def everything(self) -> dict[str, str]:
        """What stands in the form, ticks as words of one more field."""
        words = [tick for tick in ("remove", "free") if self.query_one(f"#{tick}", Tick).value]
        for name in ("terminal", "join"):
            tick = self.query_one(f"#{name}", Tick)
            words += [name if tick.value else f"no-{name}"] if tick.touched else []
        return self.fields.typed() | ({"ticks": " ".join(words)} if words else {})

    def remembered(self) -> dict[str, str]:
        """What the folder begins with the next time; a profile that was taken as it is then fills the fields anew."""
        typed = self.everything()
        if self.is_whole():
            typed["ticks"] = f"{typed.get('ticks', '')} {WHOLE}".strip()
        return typed

    def tick_as(self, remembered: str) -> None:
        """Tick what was ticked."""
        words = remembered.split()
        for name in ("remove", "free"):
            if name in words:
                self.query_one(f"#{name}", Tick).decide(True)
        for name in ("terminal", "join"):
            if name in words or f"no-{name}" in words:
                self.query_one(f"#{name}", Tick).decide(name in words)

    # --- it goes on ---

    def _went_on(self, news: LaunchNews) -> None:
        self.post_message(self.WentOn(news))  # on the launch's thread

    def _ended(
        self, app: ConsoleApp, outcome: Launched | ConsoleError, typed: dict[str, str], taken: frozenset[str]
    ) -> None:
        """On the launch's thread, where a screen that was left knows no app any more."""
        folder = launchform.current_folder()
        if isinstance(outcome, Launched) and folder:
            from gpuconsole.services.drafts import harmless
            from gpuconsole.services.shownsecrets import references_of_shell

            hidden = references_of_shell(app.desk.session.surroundings().environment, taken)
            app.desk.drafts.remember(folder, harmless(typed, hidden))
        if not self._left:
            self.post_message(self.Ended(outcome))
        elif isinstance(outcome, ConsoleError):
            app.post_message(ActionFailed(outcome))
        else:
            app.post_message(ActionDone(_words(outcome)))
            app.desk.refresh()

    @on(WentOn)
    def _show_step(self, news: WentOn) -> None:
        if self._run is None:
            return
        rows = max(3, self.query_one("#room").size.height)
        self.query_one("#below", Lines).show(
            launchtext.progress_lines(news.news, self.app.glyphs, width=self.size.width, rows=rows)
        )

    # --- it is over ---

    @on(Ended)
    def _finish(self, news: Ended) -> None:
        self._run = None
        withdraw(self)  # there is nothing to stop any more
        self._made_name = None
        self.remove_class("-launching")
        self.refresh_bindings()
        outcome = news.outcome
        if isinstance(outcome, SpecInvalid):
            self._refuse(outcome.problems)
        elif isinstance(outcome, ConsoleError):
            self._fail(outcome)
        elif outcome.ending is not None and (outcome.ending.exit_code != 0 or outcome.ending.restarts is not None):
            self.app.desk.refresh()
            self._stay(launchtext.ended_lines(outcome, self.size.width, self.app.keys))
        else:
            self._go_to(outcome)

    def _go_to(self, outcome: Launched) -> None:
        app, join = self.app, self.query_one("#join", Tick).value
        covered = app.screen is not self
        app.desk.drafts.unsent = None
        app.desk.refresh()
        app.launched(outcome.id)
        leave(self)
        if outcome.ending is not None:
            app.notify(f"{outcome.name} has ended already, and well.", markup=False)
            return
        if covered:
            app.notify(_words(outcome), markup=False)
        # What somebody reads or is asked meanwhile keeps the keys: they are not to reach the container.
        container = outcome.container if join and not covered else None
        # Its terminal when it has one; else a shell beside its work.
        verb = "attach" if container is not None and container.tty else "shell"
        if outcome.access is not None:
            from gpuconsole.tui.screens.launchaccess import AccessScreen

            app.push_screen(
                AccessScreen(outcome.access, outcome.name),
                lambda _: self._enter(app, verb, container),
            )
        else:
            self._enter(app, verb, container)

    def _enter(self, app: ConsoleApp, verb: str, container: Container | None) -> None:
        """Go into a container, if that was ticked."""
        if container is not None:
            app.call_after_refresh(enter, app, verb, container)

    # --- it is stopped, or left to go on ---

    def action_behind(self) -> None:
        """Leave the launch to go on."""
        if self._run is not None:
            self._left = True
            self.app.desk.drafts.unsent = None
            leave(self)

    def _ask_to_stop(self, run: LaunchRun) -> None:
        self.ask(about_launch(self.app.keys.name("launch.behind")), partial(self._stop, run))

    def _stop(self, run: LaunchRun) -> None:
        if self._run is run:
            run.cancel()
            self._show_step(self.WentOn(LaunchNews("stopping, and taking back what was made")))


def _words(launched: Launched) -> str:
    """What became of a launch that was left to go on."""
    if launched.ending is not None:
        return f"{launched.name} {launched.ending.words}."
    from gpuconsole.tui.present.launchaccess import access_words

    return f"{launched.name} runs.{f' {access_words(launched.access)}' if launched.access else ''}"
