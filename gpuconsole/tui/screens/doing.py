"""What can be done with the thing under the cursor: asked where it must be, done in the background, told when done."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from textual import work
from textual.screen import Screen

from gpuconsole.core.errors import ConsoleError
from gpuconsole.host.model import Holder
from gpuconsole.services import ringing, tmux
from gpuconsole.services.kinds import is_container, is_image
from gpuconsole.services.runs import Run
from gpuconsole.tui import actions
from gpuconsole.tui.failures import tell_failure
from gpuconsole.tui.messages import ActionBroke, ActionDone, ActionFailed

if TYPE_CHECKING:
    from gpuconsole.engine.model import Container
    from gpuconsole.tui.app import ConsoleApp
    from gpuconsole.tui.screens.listing import Listing
    from gpuconsole.tui.screens.subjects import Thing

_CHANGING = frozenset(action.method.partition("(")[0] for action in actions.ALL if action.changes)
_FOR_RUNNING = frozenset({"shell", "attach", "stop"})
_FOR_CONTAINERS = frozenset(action.method for action in actions.CONTAINER) - {"check", "copy", "ring"}


class Doing(Screen[None]):
    """Actions of the main screen."""

    app: ConsoleApp

    @property
    def listing(self) -> Listing:
        """The list that is shown."""
        raise AttributeError("a screen that does things has a list")

    @property
    def thing(self) -> Thing | None:
        """What the cursor is on."""
        return self.listing.chosen

    @property
    def copyable(self) -> Thing | None:
        """What can be copied from here."""
        return self.thing

    @property
    def ringable(self) -> ringing.Thing | None:
        """What can be waited for here."""
        thing = self.thing
        if is_container(thing):
            return thing if thing.container.running or ringing.key_of(thing) in self.app.marks else None
        if isinstance(thing, Run):
            return None if thing.ended else thing
        return None if is_image(thing) else thing

    @property
    def is_seen(self) -> bool:
        """No other screen covers it; behind a question it is still seen."""
        return self.is_current and (self.app.screen is self or self.app.screen.styles.background.a < 1)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Hide what does not apply to the thing under the cursor."""
        if self.app.readonly and action in _CHANGING:
            return False
        thing = self.thing
        if action in _FOR_CONTAINERS:
            return is_container(thing) and self._fits(action, thing.container)
        if action == "check":
            return is_image(thing) or (is_container(thing) and thing.container.running)
        if action == "kill":
            return isinstance(thing, Holder)
        if action == "open":
            return thing is not None
        if action == "copy":
            return self.copyable is not None
        if action == "cancel_run":
            return isinstance(thing, Run) and not thing.ended
        if action == "ring":
            return self.ringable is not None
        return True

    @staticmethod
    def _fits(action: str, container: Container) -> bool:
        if action in _FOR_RUNNING:
            return container.running
        if action == "start":
            return not container.running
        return True

    # --- in the background, told when done ---

    def _do(self, act: Callable[..., str], *arguments: Any) -> None:
        """On a daemon thread: an engine that hangs must not keep anybody from leaving, as a worker's thread would."""
        app = self.app

        def carry_out() -> None:
            try:
                app.post_message(ActionDone(act(*arguments)))
            except ConsoleError as error:
                app.post_message(ActionFailed(error))
            except Exception as error:  # noqa: BLE001 (no fault of our own stays silent)
                app.post_message(ActionBroke(error))
            app.desk.refresh()

        threading.Thread(target=carry_out, name="action", daemon=True).start()

    @work(group="questions", description="A question")
    async def _ask(self, verb: str, container: Container, act: Callable[[Container], str]) -> None:
        """Ask, harder when it is someone else's; then do it."""
        from gpuconsole.tui.screens.question import Question, QuestionScreen

        owner = self.app.desk.owner(container)
        question = Question(
            title=f"{verb} {container.name}?",
            body=_consequences(verb, container),
            verb=verb,
            word=container.name if owner else None,
            warning=f"It belongs to {owner}." if owner else "",
        )
        if await self.app.push_screen_wait(QuestionScreen(question)):
            self._do(act, container)

    def _container(self) -> Container | None:
        thing = self.thing
        return thing.container if is_container(thing) else None

    def action_start(self) -> None:
        """Start it."""
        if container := self._container():
            self._do(self.app.desk.start_container, container)

    def action_stop(self) -> None:
        """Stop it, after a question."""
        if container := self._container():
            self._ask("Stop", container, self.app.desk.stop_container)

    def action_restart(self) -> None:
        """Restart it, after a question when it runs."""
        if container := self._container():
            if container.running:
                self._ask("Restart", container, self.app.desk.restart_container)
            else:
                self._do(self.app.desk.start_container, container)

    def action_pause(self) -> None:
        """Freeze it, or let it go on."""
        if container := self._container():
            if self.app.desk.owner(container):
                self._ask("Pause", container, self.app.desk.pause_container)
            else:
                self._do(self.app.desk.pause_container, container)

    def action_remove(self) -> None:
        """Remove it, after a question."""
        if container := self._container():
            self._ask("Remove", container, self.app.desk.remove_container)

    @work(group="questions", description="A question")
    async def action_kill(self) -> None:
        """End a GPU process, after a question."""
        from gpuconsole.tui.screens.question import Question, QuestionScreen

        holder = self.thing
        if not isinstance(holder, Holder):
            return
        what = f"pid {holder.pid} of {holder.user or holder.uid or 'an unknown user'} on GPU {holder.gpu_index}"
        question = Question(f"End process {holder.pid}?", f"{what}:\n{holder.command or '–'}", "End")
        if await self.app.push_screen_wait(QuestionScreen(question)):
            self._do(self.app.desk.end_process, holder)

    def action_check(self) -> None:
        """Check it; the run is shown under Runs."""
        thing = self.thing
        if is_container(thing):
            self.app.desk.check_container(thing.container)
        elif is_image(thing):
            self.app.desk.check_image(thing.image.name, thing.image.id)
        else:
            return
        words = f"Check begun; {self.app.keys.name('tabs.runs')} on the main screen shows it."
        self.app.notify(words, markup=False, timeout=3)

    def action_cancel_run(self) -> None:
        """End the run."""
        if isinstance(self.thing, Run):
            asked = self.app.desk.cancel(self.thing.id)
            words = "It is asked to end." if asked else "It is over, or belongs to another console."
            self.app.notify(words, markup=False, timeout=3)

    # --- other screens ---

    def action_open(self) -> None:
        """All about the thing under the cursor."""
        from gpuconsole.tui.screens.details import open_details

        if self.thing is not None:
            open_details(self.app, self.thing)

    def action_logs(self) -> None:
        """Follow its output."""
        from gpuconsole.tui.screens.logs import LogScreen

        if container := self._container():
            self.app.push_screen(LogScreen(container))

    def action_new(self) -> None:
        """Launch a container."""
        from gpuconsole.tui.screens.launch import LaunchScreen

        thing = self.thing
        image = thing.image.name if is_image(thing) else None
        self.app.push_screen(LaunchScreen(image))

    def action_copy(self) -> None:
        """Choose what of it is copied."""
        from gpuconsole.tui.screens.copying import CopyScreen, copies_of

        if self.copyable is not None:
            server = self.app.desk.server(self.app.link.endpoint if self.app.link else "")
            self.app.push_screen(CopyScreen(copies_of(self.copyable, server=server)))

    def action_ring(self) -> None:
        """Ring when it ends, or when it is free."""
        if self.ringable is not None:
            self.app.ring_for(self.ringable)

    # --- a terminal inside ---

    def action_shell(self) -> None:
        """A shell inside it."""
        if container := self._container():
            enter(self.app, "shell", container)

    def action_attach(self) -> None:
        """Its own terminal."""
        if container := self._container():
            enter(self.app, "attach", container)


def _consequences(verb: str, container: Container) -> str:
    if verb == "Remove":
        running = "It runs: it will be killed. " if container.running else ""
        return f"{running}What was written inside it goes; mounted folders and named volumes stay.\n{container.image}"
    if verb in ("Stop", "Restart"):
        return f"SIGTERM now, SIGKILL after 10 s.\n{container.image}"
    return container.image


def enter(app: ConsoleApp, verb: str, container: Container) -> None:
    """Open a shell or the container's own terminal: in a tmux window inside tmux, else here, the console waiting."""
    arguments = [verb, "--here", container.name]
    try:
        arguments = ["--host", app.desk.address(), *arguments]
        if tmux.inside():
            tmux.show_window(container.name, tmux.our_command([*arguments, "--hold"]), mark=f"{verb}:{container.id}")
            return
    except ConsoleError as error:
        tell_failure(app, error)
        return
    app.desk.pause()
    with app.suspend():
        os.write(1, b"\x1b[2J\x1b[H")
        subprocess.run([sys.executable, "-P", "-m", "gpuconsole", *arguments], check=False)
        # A message that stays only as long as the console takes to draw over it is none.
        if sys.stdin.isatty():
            os.write(1, b"\r\n[enter goes back to the console]")
            sys.stdin.readline()
    app.desk.resume()
    app.refresh(layout=True)
