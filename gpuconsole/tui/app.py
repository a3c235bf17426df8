"""The console's app: hears what the services found, and is the only writer of what the screens show."""

from __future__ import annotations

import asyncio
import signal
import threading
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import SystemCommand
from textual.binding import BindingType
from textual.reactive import reactive
from textual.screen import Screen
from textual.widgets import Input
from textual.worker import Worker, WorkerFailed, WorkerState

from gpuconsole.core.config import Config
from gpuconsole.core.errors import ConsoleError, ExitCode
from gpuconsole.services import tmux
from gpuconsole.services.ringing import Ringing
from gpuconsole.tui import actions, messages, sheets, theme
from gpuconsole.tui.asciifilter import AsciiFilter
from gpuconsole.tui.bridge import Bridge
from gpuconsole.tui.commands import commands_of
from gpuconsole.tui.failures import tell_ends, tell_failure, tell_unread, tell_worker_error
from gpuconsole.tui.history import GpuHistory
from gpuconsole.tui.keymap import Keymap
from gpuconsole.tui.room import RoomyApp
from gpuconsole.tui.screens.main import MainScreen
from gpuconsole.tui.widgets.tones import CLASSES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gpuconsole.engine.model import EngineInfo
    from gpuconsole.host.model import HostView
    from gpuconsole.services import ringing
    from gpuconsole.services.containers import ContainerView
    from gpuconsole.services.desk import Desk
    from gpuconsole.services.feed import EngineLink
    from gpuconsole.services.images import ImageView
    from gpuconsole.services.runs import Run
    from gpuconsole.services.shelf import Shelf

PACES_S = (0.5, 1.0, 2.0, 5.0, 10.0)
"""Seconds between looks that can be chosen."""


class ConsoleApp(RoomyApp):
    """The console.

    Args:
        desk: What it shows and what can be done: the live services, or a stand-in.
        readonly: Take away everything that changes something.
        config: What the user wants otherwise.
    """

    TITLE = "gpuconsole"
    ENABLE_COMMAND_PALETTE = True
    COMMAND_PALETTE_BINDING = "f12"  # ours is in actions.py; this one only satisfies the base class
    HORIZONTAL_BREAKPOINTS = [(0, "-tiny"), (60, "-narrow"), (100, "-wide"), (160, "-huge")]
    COMPONENT_CLASSES = CLASSES
    VERTICAL_BREAKPOINTS = [(0, "-flat"), (16, "-low"), (32, "-tall")]
    BINDINGS: ClassVar[list[BindingType]] = [*actions.bindings(actions.APP)]

    host_view: reactive[HostView | None] = reactive(None, init=False, repaint=False)
    """The GPUs and their holders, as last seen."""
    containers: reactive[tuple[ContainerView, ...] | None] = reactive(None, init=False, repaint=False)
    """The containers, None before the first list."""
    link: reactive[EngineLink | None] = reactive(None, init=False, repaint=False)
    """How the connection to the engine is."""
    engine_info: reactive[EngineInfo | None] = reactive(None, init=False, repaint=False)
    images: reactive[tuple[ImageView, ...] | None] = reactive(None, init=False, repaint=False)
    shelf: reactive[Shelf | None] = reactive(None, init=False, repaint=False)
    """What stands beside the images, None until somebody looks at them."""
    runs: reactive[tuple[Run, ...]] = reactive((), init=False, repaint=False)
    marks: reactive[frozenset[str]] = reactive(frozenset(), init=False, repaint=False)
    """Keys of what rings when it ends, or when it is free."""
    pace_s: reactive[float] = reactive(1.0, init=False, repaint=False)
    """Seconds between looks."""

    def __init__(self, desk: Desk, *, readonly: bool = False, config: Config | None = None) -> None:
        super().__init__(css_path=sheets.at_start())
        self.desk = desk
        self.readonly = readonly
        self.config = config = config or Config()
        self.keys = Keymap.written(config.keys)
        self.glyphs = theme.glyphs(ascii_only=config.ascii)
        if self.glyphs is theme.ASCII:
            self._filters.append(AsciiFilter())
        self.history = GpuHistory()
        self.ringing = Ringing()
        for each in theme.THEMES:
            self.register_theme(each)
        self.theme = theme.full_name(config.theme) if config.theme else theme.default_theme()
        self.stylesheet.set_variables(self.get_css_variables())
        self._parsed_for: str | None = self.theme
        self.leave_at: tuple[signal.Signals, ...] = ()
        """Signals at which it leaves; who runs it in its main thread sets them."""
        self.leaving: Callable[[int], None] = lambda number: None
        """Told when it begins to leave at a signal."""
        self.set_reactive(ConsoleApp.pace_s, config.refresh_s or 1.0)
        self.set_keymap(self.keys.textual())

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Our own variables, for themes that do not know them."""
        return theme.tokens(self.current_theme)

    def refresh_css(self, animate: bool = True) -> None:
        """Read the styles anew, unless it is for the theme they were read for: Textual asks for it at every start."""
        before, self._parsed_for = self._parsed_for, None
        if before != self.theme:
            super().refresh_css(animate=animate)

    def _handle_exception(self, error: Exception) -> None:
        """A fault of our own ends the console, and is told by who opened it, in the terminal as it was.

        Textual itself would print the traceback over all, with the values of the variables in it: secrets perhaps.
        """
        self._return_code = int(ExitCode.INTERNAL)
        if self._exception is None:
            self._exception = error
            self._exception_event.set()
        self._close_messages_no_wait()

    @property
    def failure(self) -> BaseException | None:
        """What ended it, when that was a fault."""
        return self._exception.error if isinstance(self._exception, WorkerFailed) else self._exception

    def get_default_screen(self) -> Screen[None]:
        """The main screen."""
        return MainScreen()

    def on_mount(self) -> None:
        """Hear what was and will be seen; the GPUs stand in the first screen when the driver was quick."""
        for number in self.leave_at:
            asyncio.get_running_loop().add_signal_handler(number, self.leave_by_signal, number)
        self.desk.start(Bridge(self), self.pace_s)

    def on_unmount(self) -> None:
        """Let go of everything, waiting for nobody."""
        for number in self.leave_at:
            asyncio.get_running_loop().remove_signal_handler(number)
            signal.signal(number, signal.SIG_IGN)  # we are leaving; the terminal is still to be given back
        self.desk.close()

    def leave_by_signal(self, number: int) -> None:
        """Leave, with the exit code that shells give to a signal."""
        self.leaving(number)
        self.exit(return_code=128 + number)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Every action of the screen, and the app's own."""
        return commands_of(self, screen)

    # --- the world's news: each handler sets one thing ---

    @on(messages.HostLooked)
    def _see_host(self, message: messages.HostLooked) -> None:
        if self.host_view is None:
            self.call_after_refresh(self.desk.drawn)
        self.history.add(message.view)
        self.host_view = message.view
        self._ring(self.ringing.host_looked(message.view))

    @on(messages.ContainersListed)
    def _see_containers(self, message: messages.ContainersListed) -> None:
        self.containers = message.views
        self._ring(self.ringing.containers_listed(message.views))

    def _ring(self, sentences: tuple[str, ...]) -> None:
        """Tell what was waited for: by the bell, here, and where tmux shows another window."""
        if not sentences:
            return
        self.marks = self.ringing.marked
        if self.config.bell:
            self.bell()  # the bare sign: tmux hands it on, and marks the window
        for sentence in sentences:
            self.notify(sentence, title="Ring", markup=False, timeout=30)
        text = "gpuconsole: " + " ".join(sentences)
        threading.Thread(target=tmux.tell, args=(text,), name="tmux-teller", daemon=True).start()

    @on(messages.EngineLinked)
    def _see_link(self, message: messages.EngineLinked) -> None:
        self.link = message.link

    @on(messages.EngineKnown)
    def _see_engine(self, message: messages.EngineKnown) -> None:
        self.engine_info = message.info

    @on(messages.ImagesListed)
    def _see_images(self, message: messages.ImagesListed) -> None:
        self.images = message.views

    @on(messages.ImagesJudged)
    def _see_shelf(self, message: messages.ImagesJudged) -> None:
        before, self.shelf = self.shelf, message.shelf
        tell_unread(self, before, message.shelf)

    @on(messages.RunsChanged)
    def _see_runs(self, message: messages.RunsChanged) -> None:
        before, self.runs = self.runs, message.runs
        tell_ends(self, before, message.runs)
        self._ring(self.ringing.runs_changed(message.runs))

    @on(messages.ActionFailed)
    def _tell_failure(self, message: messages.ActionFailed) -> None:
        tell_failure(self, message.error)

    @on(messages.ActionBroke)
    def _tell_fault(self, message: messages.ActionBroke) -> None:
        tell_worker_error(self, message.error, what="An action")

    @on(messages.ActionDone)
    def _tell_done(self, message: messages.ActionDone) -> None:
        self.notify(message.text, markup=False, timeout=4)

    @on(Worker.StateChanged)
    def hear_worker(self, event: Worker.StateChanged) -> None:
        """No worker fails in silence."""
        if event.state is WorkerState.ERROR and event.worker.error is not None:
            error = event.worker.error
            if isinstance(error, ConsoleError):
                tell_failure(self, error)
            else:
                tell_worker_error(self, error, what=event.worker.description or event.worker.name)

    def watch_pace_s(self, pace_s: float) -> None:
        """Look at the new pace."""
        self.desk.set_interval(pace_s)

    # --- what keys do everywhere ---

    def action_leave(self) -> None:
        """Leave the console; a question first where leaving ends a pull or build."""
        going = self.desk.going
        if going:
            from gpuconsole.tui.screens.asking import about_leaving
            from gpuconsole.tui.screens.question import QuestionScreen

            self.push_screen(QuestionScreen(about_leaving(going)), lambda yes: self.exit() if yes else None)
        else:
            self.exit()

    def action_copy_or_quit(self) -> None:
        """Copy the selected text; with none, leave: a question first, else the console."""
        from gpuconsole.tui.screens.copying import copy

        focused = self.focused
        selected = focused.selected_text if isinstance(focused, Input) else ""
        selected = selected or self.screen.get_selected_text() or ""
        if selected:
            copy(self, selected)
            self.screen.clear_selection()
            self.notify("Copied.", markup=False, timeout=2)
        elif self.screen.is_modal:
            self.screen.dismiss(None)  # as esc: the answer to a question is no
        else:
            self.action_leave()

    def ring_for(self, thing: ringing.Thing) -> None:
        """Ring when ``thing`` ends, or is free; asked again, do not."""
        told = self.ringing.toggle(thing)
        self.marks = self.ringing.marked
        self.notify(told, markup=False, timeout=3)

    def launched(self, container_id: str) -> None:
        """A container was launched from here: the list shows it under the cursor."""
        for screen in self.screen_stack:
            if isinstance(screen, MainScreen):
                screen.show_container(container_id)

    def action_redraw(self) -> None:
        """Draw everything again, as after another program wrote over the screen."""
        self.refresh(layout=True)
        self.screen.refresh(layout=True)
        for widget in self.screen.walk_children():
            widget.refresh()

    def action_next_theme(self) -> None:
        """The next of our themes."""
        names = [each.name for each in theme.THEMES]
        place = names.index(self.theme) if self.theme in names else -1
        self.theme = names[(place + 1) % len(names)]
        self.notify(f"Theme: {self.theme.removeprefix('gpuconsole-')}", markup=False, timeout=2)

    def action_help(self) -> None:
        """What can be done on this screen."""
        from gpuconsole.tui.screens.help import HelpScreen

        if not isinstance(self.screen, HelpScreen):
            self.push_screen(HelpScreen(self.screen))

    def now(self) -> float:
        """Seconds since the epoch, of what is shown; one place to freeze in tests."""
        return self.desk.now()
