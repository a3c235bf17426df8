"""The console on a recording: a line that says where one is, keys that go elsewhere, and everything anew there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakKeyDictionary

from textual import on
from textual.binding import BindingType
from textual.screen import Screen
from textual.widgets import Input

from gpuconsole.gpu.state import MemoryState
from gpuconsole.services.ringing import Ringing
from gpuconsole.tui import actions, messages
from gpuconsole.tui.app import ConsoleApp
from gpuconsole.tui.present.replay import Playing, span
from gpuconsole.tui.screens.logs import LogScreen
from gpuconsole.tui.widgets.replayline import ReplayLine
from gpuconsole.tui.widgets.strip import GpuStrip

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpuconsole.core.config import Config
    from gpuconsole.services.replaydesk import ReplayDesk

_TICKS = ("turn",)
"""What a key that pauses does in the widgets that need it for themselves."""


class ReplayApp(ConsoleApp):
    """The console, playing a recording.

    Args:
        desk: Plays it.
        readonly: Take away everything that changes something.
        config: What the user wants otherwise.
    """

    desk: ReplayDesk
    BINDINGS: ClassVar[list[BindingType]] = [*actions.bindings(actions.REPLAY)]

    def __init__(self, desk: ReplayDesk, *, readonly: bool = False, config: Config | None = None) -> None:
        super().__init__(desk, readonly=readonly, config=config)
        desk.player.alarms_from = MemoryState(self.config.alarms_from)
        self._opened: WeakKeyDictionary[Screen[Any], int] = WeakKeyDictionary()
        """Screen of output → how often somebody had gone elsewhere when it was opened."""

    @property
    def playing(self) -> Playing:
        """How the playing is now."""
        clock, player = self.desk.clock, self.desk.player
        return Playing(
            clock.position_s, self.desk.length_s, clock.speed, clock.paused, clock.ended, player.wanted_s, player.share
        )

    def on_mount(self) -> None:
        """Show the line on the first screen too."""
        super().on_mount()
        self._show_line(self.screen)

    def push_screen(self, screen: Any, *arguments: Any, **options: Any) -> Any:
        """Open a screen, with the line unless it is a question over another one."""
        pushed = super().push_screen(screen, *arguments, **options)
        self._show_line(self.screen)
        return pushed

    def switch_screen(self, screen: Any) -> Any:
        """Open a screen in the place of another one."""
        switched = super().switch_screen(screen)
        self._show_line(self.screen)
        return switched

    def _show_line(self, screen: Screen[Any]) -> None:
        if isinstance(screen, LogScreen):
            self._opened[screen] = self.desk.player.moves
        if not screen.is_modal and not screen.query(ReplayLine):
            screen.mount(ReplayLine())

    def _draw_line(self) -> None:
        for each in self.screen.query(ReplayLine):
            each.draw()

    @on(messages.HostLooked)
    def _see_look(self, message: messages.HostLooked) -> None:
        """Many looks may come between two drawings: the lines of use are to have them all."""
        for strip in self._strips():
            strip.look(message.view, draw=False)

    def _strips(self) -> Iterator[GpuStrip]:
        for screen in self.screen_stack:
            yield from screen.query(GpuStrip)

    # --- somebody went elsewhere ---

    @on(messages.Sought)
    def _see_sought(self, message: messages.Sought) -> None:
        """All that was known is not so any more: not what was remembered, nor what was waited for."""
        state, remembered = message.sight.state, message.sight.remembered
        self._history = remembered.pasts
        self.alarming.take_over(remembered.alarms)
        self.ringing = Ringing()
        self.marks = frozenset()
        for strip in self._strips():
            strip.forget()
            for view in remembered.looks:
                strip.look(view, draw=False)
        self.link, self.engine_info = state.link, state.engine
        self.containers = state.containers if "containers" in state.told else None
        self.images = state.images if "images" in state.told else None
        self.shelf = None
        self.runs = state.runs
        self.host_view = state.host
        self._keep_output()

    def _keep_output(self) -> None:
        """Output that is shown is of the moment before: follow it from the beginning."""
        screen = self.screen
        if isinstance(screen, LogScreen) and self._opened.get(screen) != self.desk.player.moves:
            self.switch_screen(LogScreen(screen.container))

    def pop_screen(self) -> Any:
        """Close a screen; output under it may be of another moment."""
        popped = super().pop_screen()
        self.call_after_refresh(self._keep_output)
        return popped

    # --- what keys do ---

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """A key that pauses is left to what it is typed into, and to what it ticks."""
        if action == "replay_pause" and (focused := self.focused) is not None:
            if isinstance(focused, Input):
                return False
            bindings = focused._bindings.key_to_bindings
            if any(each.action in _TICKS for key in self.keys.of("replay.pause") for each in bindings.get(key, ())):
                return False
        return super().check_action(action, parameters)

    def action_replay_pause(self) -> None:
        """Stand still, or go on; at the end, from the start."""
        clock = self.desk.clock
        if clock.ended and self.desk.player.wanted_s is None:
            clock.pause(paused=False)
            self.desk.seek(0.0)
        else:
            clock.pause(paused=not clock.paused)
        self._draw_line()

    def action_replay_by(self, seconds: float) -> None:
        """So many seconds ahead, or back."""
        self._seek(self._here + seconds)

    def action_replay_to(self, share: float) -> None:
        """To the start, or to the end."""
        self._seek(self.desk.length_s * share)

    def action_replay_speed(self, step: int) -> None:
        """Faster, or slower."""
        self.desk.clock.change_speed(step)
        self._draw_line()

    def action_replay_event(self, step: int) -> None:
        """To the next thing that happened, or to the one before."""
        here = self._here
        moments = self.desk.moments
        if step > 0:
            found = next((each for each in moments if each.at > here), None)
        else:  # the one that was just gone to is left behind although time went on a little
            margin = 0.0 if self.desk.clock.paused else 1.5 * max(1.0, self.desk.clock.speed)
            found = next((each for each in reversed(moments) if each.at < here - margin), None)
        if found is None:
            words = "Nothing happens after this." if step > 0 else "Nothing happened before this."
            for said in [each for each in self._notifications if each.message == words]:
                self._unnotify(said)  # whoever presses again is told once
            self.notify(words, markup=False, timeout=3)
            return
        self._seek(found.at)
        self.notify(f"{span(found.at)}  {found.words}", markup=False, timeout=4)

    @property
    def _here(self) -> float:
        """Where one is, or will be in a moment."""
        wanted = self.desk.player.wanted_s
        return self.desk.clock.position_s if wanted is None else wanted

    def _seek(self, position_s: float) -> None:
        self.desk.seek(position_s)
        self._draw_line()
