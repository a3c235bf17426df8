"""The console's half that hears what the services found: each handler sets one thing, which screens watch."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, cast

from textual import on
from textual.reactive import reactive

from gpuconsole.services import tmux
from gpuconsole.services.ringing import Ringing
from gpuconsole.tui import messages
from gpuconsole.tui.failures import tell_ends, tell_unread
from gpuconsole.tui.letting_go import let_go
from gpuconsole.tui.room import RoomyApp

if TYPE_CHECKING:
    from gpuconsole.core.config import Config
    from gpuconsole.engine.model import EngineInfo
    from gpuconsole.host.model import HostView
    from gpuconsole.services import ringing
    from gpuconsole.services.containers import ContainerView
    from gpuconsole.services.desk import Desk
    from gpuconsole.services.feed import EngineLink
    from gpuconsole.services.images import ImageView
    from gpuconsole.services.pasts import Pasts
    from gpuconsole.services.runs import Run
    from gpuconsole.services.shelf import Shelf
    from gpuconsole.tui.alarming import Alarming
    from gpuconsole.tui.app import ConsoleApp


class HearingApp(RoomyApp):
    """What is known of the machine, set from the services' news and from nothing else."""

    desk: Desk
    config: Config

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

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.ringing = Ringing()
        self._heard = False
        """Of the GPUs."""
        self._alarming: Alarming | None = None
        self._history: Pasts | None = None

    @property
    def history(self) -> Pasts:
        """What is remembered of the day: nothing of it is needed for the first screen."""
        if self._history is None:
            from gpuconsole.services.pasts import Pasts

            self._history = Pasts()
        return self._history

    @property
    def alarming(self) -> Alarming:
        """Alarms: nothing of them is needed for the first screen."""
        if self._alarming is None:
            from gpuconsole.tui.alarming import Alarming

            self._alarming = Alarming(cast("ConsoleApp", self))
        return self._alarming

    @on(messages.HostLooked)
    def _see_host(self, message: messages.HostLooked) -> None:
        first, self._heard = not self._heard, True
        if first:
            self.call_after_refresh(self.desk.drawn)
        if first and message.at is None:
            self.call_after_refresh(lambda: self.history.host_looked(message.view))
        else:
            self.history.host_looked(message.view)
            let_go(self)
        self.host_view = message.view
        self._ring(self.ringing.host_looked(message.view))
        if not first:  # of one look nothing can be said that rings
            self.alarming.host_looked(message.view)

    @on(messages.ContainersListed)
    def _see_containers(self, message: messages.ContainersListed) -> None:
        self.history.containers_listed(message.views, at=self._when(message))
        self.containers = message.views
        self._ring(self.ringing.containers_listed(message.views))
        self.alarming.containers_listed(message.views)

    def _when(self, news: messages.News) -> float:
        """When it was, in seconds since the epoch: just now, unless it is of a recording."""
        return self.desk.now() if news.at is None else news.at

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
        self.call_after_refresh(lambda: self.history.runs_changed(message.runs, at=self._when(message)))
        before, self.runs = self.runs, message.runs
        tell_ends(self, before, message.runs)
        self._ring(self.ringing.runs_changed(message.runs))

    @on(messages.EndingExplained)
    def _hear_ending(self, message: messages.EndingExplained) -> None:
        self.alarming.ending_explained(message.ending, quietly=message.quietly)

    @on(messages.SignReady)
    def _show_sign(self, message: messages.SignReady) -> None:
        if not self.is_headless and self._driver is not None:
            self._driver.write(message.sign)

    @on(messages.AlarmCommandFailed)
    def _hear_command(self, message: messages.AlarmCommandFailed) -> None:
        self.alarming.command_failed(message.error)

    @on(messages.AlarmSaved)
    def _tell_saved(self, message: messages.AlarmSaved) -> None:
        words = (
            f"Saved, without names: {message.path}\n→ 'gpuconsole forecast FILE' says what the forecast makes of it."
        )
        self.notify(words, title="Marked as wrong", markup=False, timeout=15)

    def ring_for(self, thing: ringing.Thing) -> None:
        """Ring when ``thing`` ends, or is free; asked again, do not."""
        told = self.ringing.toggle(thing)
        self.marks = self.ringing.marked
        self.notify(told, markup=False, timeout=3)
