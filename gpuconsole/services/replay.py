"""A recording played: who is told what when it is due, and what is known wherever one goes in it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from gpuconsole.gpu.state import MemoryState
from gpuconsole.services.replayclock import SPEEDS
from gpuconsole.services.replayclock import Clock as _Clock
from gpuconsole.services.replaypast import Copies, Past, Remembered, State, copy_of, count_until

if TYPE_CHECKING:
    from gpuconsole.services.desk import DeskListener
    from gpuconsole.services.replayfile import Event, Recording

__all__ = ["SPEEDS", "Clock", "Player", "ReplayListener", "Sight", "State"]


class Clock(_Clock):
    """Where one is in a recording.

    Args:
        recording: What is played.
        speed: Recorded seconds a second; 0 stands still.
    """

    def __init__(self, recording: Recording, *, speed: float = 1.0) -> None:
        super().__init__(recording.length_s, recording.began_at, speed=speed)


@dataclass(frozen=True, slots=True)
class Sight:
    """All that is known at a moment that somebody went to."""

    state: State
    remembered: Remembered
    """The listener's own from now on."""


@runtime_checkable
class ReplayListener(Protocol):
    """What the listener of a recording hears beside the news."""

    def played(self, at: float) -> None:
        """The news that follow are of that moment, in seconds since the epoch."""

    def sought(self, sight: Sight) -> None:
        """Somebody went to another moment: what was known before is not so any more."""

    def broke(self, error: Exception) -> None:
        """It could not go on from here."""


class Player:
    """Tells a listener what was recorded, when it is due, on a thread of its own.

    Args:
        recording: What is played.
        clock: Where one is.
    """

    def __init__(self, recording: Recording, clock: Clock) -> None:
        self.recording = recording
        self.clock = clock
        self.alarms_from = MemoryState.RISK
        """From which state on a trend rings; to be set before it is started."""
        self.changed = threading.Condition()
        """Told when something new is in :attr:`state`."""
        self.moves = 0
        """Grows when somebody went to another moment."""
        self.wanted_s: float | None = None
        """Where somebody wants to go, until that moment is known."""
        self.share = 0.0
        """How much of the way there is gone, from 0 to 1."""
        self._times = recording.times
        self._first_s = recording.first_look_s
        self._past = Past(recording.began_at)
        self._copies = Copies()
        self._playing = threading.RLock()
        self._woken = threading.Event()
        self._closed = threading.Event()

    @property
    def state(self) -> State:
        """How the machine was where one is."""
        return self._past.state

    def now(self) -> float:
        """Seconds since the epoch there and then."""
        return self.clock.now()

    def start(self, listener: DeskListener) -> None:
        """Begin to play."""
        self._past = Past(self.recording.began_at, self.alarms_from)
        threading.Thread(target=self._run, args=(listener,), name="player", daemon=True).start()

    def close(self) -> None:
        """End it; streams of output end too."""
        self._closed.set()
        self._woken.set()
        with self.changed:
            self.changed.notify_all()

    @property
    def closed(self) -> bool:
        """It was ended."""
        return self._closed.is_set()

    @property
    def first_s(self) -> float:
        """The first moment at which the GPUs are known; before it there is nothing to see."""
        return self._first_s

    def seek(self, position_s: float) -> None:
        """Go to that second, forward or back; what is known there is told as soon as it is found out."""
        self.clock.hold()
        self.wanted_s = min(max(self.first_s, position_s), self.recording.length_s)
        self._woken.set()

    def _run(self, listener: DeskListener) -> None:
        while not self._closed.is_set():
            self._woken.wait(self._pause_s())
            self._woken.clear()
            if self._closed.is_set():
                return
            try:
                if self.wanted_s is not None:
                    self._go(self.wanted_s, listener)
                else:
                    self.advance(listener)
            except Exception as error:  # noqa: BLE001 (the last line of the thread: it must not end in silence)
                self._stop(error, listener)

    def _stop(self, error: Exception, listener: DeskListener) -> None:
        """Stand still where it cannot go on, and tell."""
        self.wanted_s = None
        self.clock.hold(held=False)
        self.clock.pause()
        if isinstance(listener, ReplayListener):
            listener.broke(error)

    def _pause_s(self) -> float:
        """Until the next event is due; short enough that a change of the clock is noticed."""
        if self.wanted_s is not None:
            return 0.0
        if self._past.taken >= len(self._times):
            return 0.2
        ahead = (self._times[self._past.taken] - self.clock.position_s) / max(1.0, self.clock.speed)
        return min(0.2, max(0.0, ahead))

    def advance(self, listener: DeskListener) -> None:
        """Tell everything that is due and was not told."""
        with self._playing:
            due = count_until(self._times, self.clock.position_s)
            while self._past.taken < due and self.wanted_s is None:
                event = self._take(self._past)
                if not self._closed.is_set():
                    self._tell(listener, event)
        with self.changed:
            self.changed.notify_all()

    def _take(self, past: Past) -> Event:
        event = past.take(self.recording.events[past.taken])
        self._copies.keep(past)
        return event

    def _go(self, position_s: float, listener: DeskListener) -> None:
        """Find out what is known at a moment, and tell it; given up when somebody wants to go elsewhere by then."""
        with self._playing:
            taken = count_until(self._times, position_s)
            past = self._copies.nearest(taken) or Past(self.recording.began_at, self.alarms_from)
            first = past.taken
            while past.taken < taken:
                if self.wanted_s != position_s or self._closed.is_set():
                    return
                self.share = (past.taken - first) / max(1, taken - first)
                self._take(past)
            self._past = past
            self.moves += 1
            self.clock.go_to(position_s)
            if isinstance(listener, ReplayListener) and not self._closed.is_set():
                listener.sought(Sight(_snapshot(past.state), copy_of(past.remembered)))
            if self.wanted_s == position_s:
                self.wanted_s = None
                self.clock.hold(held=False)
        with self.changed:
            self.changed.notify_all()

    def _tell(self, listener: DeskListener, event: Event) -> None:
        told: dict[str, Callable[[Any], None]] = {
            "host": listener.host_looked,
            "containers": listener.containers_listed,
            "images": listener.images_listed,
            "engine": listener.engine_known,
            "link": listener.engine_linked,
            "runs": listener.runs_changed,
        }
        if event.kind in told:
            if isinstance(listener, ReplayListener):
                listener.played(self.recording.began_at + event.at)
            told[event.kind](event.body)


def _snapshot(state: State) -> State:
    """As it is now; what is played on changes the other one."""
    from dataclasses import replace

    return replace(state, output={}, told=set(state.told))
