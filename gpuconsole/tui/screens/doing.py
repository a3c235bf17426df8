"""What can be done with the thing under the cursor: asked where it must be, done in the background, told when done."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from gpuconsole.host.model import Holder
from gpuconsole.services import ringing
from gpuconsole.services.kinds import is_catalog_image, is_container, is_image
from gpuconsole.services.runs import Run
from gpuconsole.tui import actions
from gpuconsole.tui.screens.benchdoing import BenchDoing
from gpuconsole.tui.screens.imagedoing import IMAGE_ACTIONS, named
from gpuconsole.tui.screens.lending import enter

if TYPE_CHECKING:
    from gpuconsole.engine.model import Container
    from gpuconsole.tui.app import ConsoleApp
    from gpuconsole.tui.screens.listing import Listing
    from gpuconsole.tui.screens.subject import Thing

_CHANGING = frozenset(action.method.partition("(")[0] for action in actions.ALL if action.changes)
_FOR_RUNNING = frozenset({"shell", "attach", "stop"})
_FOR_CONTAINERS = frozenset(action.method for action in actions.CONTAINER) - {"check", "bench", "copy", "ring"}


class Doing(BenchDoing):
    """Actions of the main screen."""

    app: ConsoleApp
    _stage: object = None
    """What decides about what can be done with the thing under the cursor, as it was drawn."""

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
        return None if is_image(thing) or is_catalog_image(thing) else thing

    def follow_stage(self) -> None:
        """Show other keys once the thing under the cursor has begun or ended."""
        thing, before = self.thing, self._stage
        if is_container(thing):
            self._stage = thing.container.state
        else:
            self._stage = thing.state if isinstance(thing, Run) else None
        if self._stage != before:
            self.call_after_refresh(self.refresh_bindings)

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
        if action in ("check", "bench"):
            return self.can_bench() if action == "bench" else self.can_check()
        if action in IMAGE_ACTIONS:
            return self.can_do_image(action, thing)
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

    def _ask_about(self, verb: str, container: Container, then: Callable[[], object]) -> None:
        """Ask, harder when it is someone else's; at yes go on."""
        from gpuconsole.tui.screens.asking import about_container

        self.ask(about_container(verb, container, self.app.desk.owner(container)), then)

    def _ask_if_others(self, verb: str, container: Container, then: Callable[[], object]) -> None:
        """Go on, after a question when it is someone else's."""
        if self.app.desk.owner(container):
            self._ask_about(verb, container, then)
        else:
            then()

    def _container(self) -> Container | None:
        thing = self.thing
        return thing.container if is_container(thing) else None

    def action_start(self) -> None:
        """Start it."""
        if container := self._container():
            self._ask_if_others("Start", container, partial(self.do, self.app.desk.start_container, container))

    def action_stop(self) -> None:
        """Stop it, after a question."""
        if container := self._container():
            self._ask_about("Stop", container, partial(self.do, self.app.desk.stop_container, container))

    def action_restart(self) -> None:
        """Restart it, after a question when it runs."""
        if container := self._container():
            if container.running:
                self._ask_about("Restart", container, partial(self.do, self.app.desk.restart_container, container))
            else:
                self.action_start()

    def action_pause(self) -> None:
        """Freeze it, or let it go on."""
        if container := self._container():
            verb = "Resume" if container.state.value == "paused" else "Pause"
            self._ask_if_others(verb, container, partial(self.do, self.app.desk.pause_container, container))

    def action_remove(self) -> None:
        """Remove it, after a question."""
        if container := self._container():
            self._ask_about("Remove", container, partial(self.do, self.app.desk.remove_container, container))

    def action_kill(self) -> None:
        """End a GPU process, after a question; someone else's after a harder one."""
        from gpuconsole.tui.screens.asking import about_process

        holder = self.thing
        if not isinstance(holder, Holder):
            return
        inside = (view.container for view in self.app.containers or () if view.container.id == holder.container_id)
        owner = self.app.desk.process_owner(holder, next(inside, None))
        end = partial(self.app.desk.end_process, holder, others=owner is not None)
        self.ask(about_process(holder, owner), partial(self.do, end))

    def action_check(self) -> None:
        """Check it; the run is shown under Runs."""
        thing, desk = self.thing, self.app.desk
        if is_container(thing):
            begin = partial(self._begin_check, desk.check_container, thing.container)
            self._ask_if_others("Check", thing.container, begin)
        elif is_image(thing):
            self._begin_check(desk.check_image, thing.image.name, thing.image.id)

    def _begin_check(self, begin: Callable[..., str], *arguments: Any) -> None:
        begin(*arguments)
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
        image = named(thing) if is_image(thing) or is_catalog_image(thing) else None
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
