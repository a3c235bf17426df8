"""The console's app: hears what the services found, and is the only writer of what the screens show."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import SystemCommand
from textual.binding import BindingType
from textual.driver import Driver
from textual.reactive import reactive
from textual.screen import Screen
from textual.widgets import Input
from textual.worker import Worker, WorkerFailed, WorkerState

from gpuconsole.core.config import Config
from gpuconsole.core.errors import ConsoleError, ExitCode
from gpuconsole.tui import actions, messages, sheets, theme
from gpuconsole.tui.asciifilter import AsciiFilter
from gpuconsole.tui.bridge import Bridge
from gpuconsole.tui.commands import commands_of
from gpuconsole.tui.failures import tell_failure, tell_worker_error
from gpuconsole.tui.hearing import HearingApp
from gpuconsole.tui.keymap import Keymap
from gpuconsole.tui.leaving import leave
from gpuconsole.tui.screens.main import MainScreen
from gpuconsole.tui.widgets.tones import CLASSES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gpuconsole.services.desk import Desk

PACES_S = (0.5, 1.0, 2.0, 5.0, 10.0)
"""Seconds between looks that can be chosen."""


_FIRST_LOOK_S = 0.1
"""The first screen waits so long for the GPUs, which were begun to be looked at before; else it is drawn twice."""


class ConsoleApp(HearingApp):
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
        self.host_view = self.desk.first_look(_FIRST_LOOK_S)
        self.desk.start(Bridge(self), self.pace_s)

    @on(Driver.SignalResume)
    def _draw_all(self) -> None:
        """Draw all anew after a stop: a shell has had the terminal meanwhile."""
        self.refresh(layout=True)

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

    # --- what became of what was done ---

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

            question = QuestionScreen(about_leaving(going))
            self.push_screen(question, lambda yes: self.exit() if yes else None)
            # Once nothing goes on any more there is nothing to ask.
            question.watch(self, "runs", lambda: None if self.desk.going else leave(question), init=False)
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
            leave(self.screen)  # as esc: the answer to a question is no
        else:
            self.action_leave()

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

    def action_alarms(self) -> None:
        """What rang, what stands, what was dismissed."""
        from gpuconsole.tui.screens.alarms import AlarmsScreen

        self.alarming.put_away()
        if not isinstance(self.screen, AlarmsScreen):
            self.push_screen(AlarmsScreen())

    def action_help(self) -> None:
        """What can be done on this screen."""
        from gpuconsole.tui.screens.help import HelpScreen

        if not isinstance(self.screen, HelpScreen):
            self.push_screen(HelpScreen(self.screen))

    def now(self) -> float:
        """Seconds since the epoch, of what is shown; one place to freeze in tests."""
        return self.desk.now()
