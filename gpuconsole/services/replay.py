"""A recording played: where one is in it, how the machine was there, and who is told when it is due."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from gpuconsole.host.facts import LaunchFacts
from gpuconsole.services.logfollow import LogLine
from gpuconsole.services.memorywatch import MemoryWatch

if TYPE_CHECKING:
    from gpuconsole.engine.model import EngineInfo
    from gpuconsole.host.model import HostView
    from gpuconsole.services.containers import ContainerView
    from gpuconsole.services.desk import DeskListener
    from gpuconsole.services.feed import EngineLink
    from gpuconsole.services.images import ImageView
    from gpuconsole.services.replayfile import Event, Recording
    from gpuconsole.services.runs import Run


class Clock:
    """Where one is in a recording; it goes on by itself, and stops at the end.

    Args:
        recording: What is played.
        speed: Recorded seconds a second; 0 stands still.
    """

    def __init__(self, recording: Recording, *, speed: float = 1.0) -> None:
        self._recording = recording
        self._speed = speed
        self._from = (time.monotonic(), 0.0)

    @property
    def position_s(self) -> float:
        """Seconds since the start of the recording."""
        since, at = self._from
        return min(self._recording.length_s, at + (time.monotonic() - since) * self._speed)

    def go_to(self, position_s: float) -> None:
        """Go on from there."""
        self._from = (time.monotonic(), position_s)

    def now(self) -> float:
        """Seconds since the epoch there and then."""
        return self._recording.began_at + self.position_s


@dataclass(slots=True)
class State:
    """How the machine was where one is."""

    host: HostView | None = None
    containers: tuple[ContainerView, ...] = ()
    images: tuple[ImageView, ...] = ()
    engine: EngineInfo | None = None
    link: EngineLink | None = None
    runs: tuple[Run, ...] = ()
    facts: LaunchFacts = field(default_factory=LaunchFacts)
    output: dict[str, list[LogLine]] = field(default_factory=dict)
    """By container id."""


class Player:
    """Tells a listener what was recorded, when it is due, on a thread of its own.

    Args:
        recording: What is played.
        clock: Where one is.
    """

    def __init__(self, recording: Recording, clock: Clock) -> None:
        self.recording = recording
        self.clock = clock
        self.state = State()
        self.changed = threading.Condition()
        """Told when something new is in :attr:`state`."""
        self._memory = MemoryWatch()
        self._next = 0
        self._playing = threading.Lock()
        self._closed = threading.Event()

    def start(self, listener: DeskListener) -> None:
        """Begin to play."""
        threading.Thread(target=self._run, args=(listener,), name="player", daemon=True).start()

    def close(self) -> None:
        """End it; streams of output end too."""
        self._closed.set()
        with self.changed:
            self.changed.notify_all()

    @property
    def closed(self) -> bool:
        """It was ended."""
        return self._closed.is_set()

    def _run(self, listener: DeskListener) -> None:
        while not self._closed.wait(self._pause_s()):
            self.advance(listener)

    def _pause_s(self) -> float:
        """Until the next event is due; short enough that a change of the clock is noticed."""
        events = self.recording.events
        if self._next >= len(events):
            return 0.2
        return min(0.2, max(0.0, events[self._next].at - self.clock.position_s))

    def advance(self, listener: DeskListener) -> None:
        """Tell everything that is due and was not told."""
        with self._playing:
            position = self.clock.position_s
            while self._next < len(self.recording.events) and self.recording.events[self._next].at <= position:
                event = self.recording.events[self._next]
                self._next += 1
                event = self._take(event)
                if not self._closed.is_set():
                    _tell(listener, event)
        with self.changed:
            self.changed.notify_all()

    def _take(self, event: Event) -> Event:
        """Keep what happened; gives it as it is told, with what the forecaster says by then."""
        state, body = self.state, event.body
        if event.kind == "sample":
            self._memory.take(body)
        elif event.kind == "log":
            state.output.setdefault(body.id, []).append(LogLine(body.channel, body.stamp, body.text))
        elif event.kind != "container":
            if event.kind == "host":
                body = self._memory.shown(body)
            elif event.kind == "containers" and state.host is not None:
                body = tuple(replace(view, outlooks=state.host.outlooks_of(view.container.id)) for view in body)
            setattr(state, event.kind, body)
        return replace(event, body=body)


def _tell(listener: DeskListener, event: Event) -> None:
    told: dict[str, Callable[[Any], None]] = {
        "host": listener.host_looked,
        "containers": listener.containers_listed,
        "images": listener.images_listed,
        "engine": listener.engine_known,
        "link": listener.engine_linked,
        "runs": listener.runs_changed,
    }
    if event.kind in told:
        told[event.kind](event.body)
