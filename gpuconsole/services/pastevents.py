"""What happened on the GPUs: containers began and ended, checks ran, clocks were held down, memory peaked.

An event that lasts (a GPU lost, clocks held down) is one entry with its end. Times are of the track's clock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

KEPT = 100
"""Events of each GPU; older ones go."""
MOST_GPUS = 64
QUIET_S = 60.0
"""Clocks held down again within it are held down on; a peak that stands so long is one."""
RISE = 0.01
"""Of the capacity: memory that rises by less makes no new peak."""


class EventKind(StrEnum):
    """What happened."""

    STARTED = "started"
    ENDED = "ended"
    CHECKED = "checked"
    MEASURED = "measured"
    SLOWED = "slowed"
    PEAK = "peak"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class PastEvent:
    """Something that happened."""

    at: float
    """Seconds."""
    kind: EventKind
    about: str
    """A container's name, the slugs of what holds the clocks down, the problem of a GPU."""
    words: str = ""
    """How it ended, in few words."""
    until: float | None = None
    """Of what lasts, its end; None while it goes on, and of what does not last."""
    value: float | None = None
    """Of a peak, the bytes."""


class Events:
    """The newest events, by GPU."""

    def __init__(self) -> None:
        self._by_gpu: dict[str, deque[PastEvent]] = {}
        self.changes = 0
        """Grows with every event that is new or known better."""

    def add(self, event: PastEvent, gpus: Iterable[str]) -> None:
        """It happened on these GPUs."""
        self.changes += 1
        for gpu in gpus:
            found = self._by_gpu.get(gpu)
            if found is None:
                if len(self._by_gpu) >= MOST_GPUS:
                    del self._by_gpu[next(iter(self._by_gpu))]
                found = self._by_gpu[gpu] = deque(maxlen=KEPT)
            found.append(event)

    def change(self, gpu: str, before: PastEvent, after: PastEvent) -> None:
        """One of the newest events of a GPU is known better now; one that is not kept any more stays away."""
        found = self._by_gpu.get(gpu)
        if found is not None and before in found:
            found[found.index(before)] = after
            self.changes += 1

    def of(self, gpu: str) -> list[PastEvent]:
        """Events of a GPU, oldest first."""
        return sorted(self._by_gpu.get(gpu, ()), key=lambda event: event.at)

    @property
    def stored(self) -> int:
        """Events held."""
        return sum(map(len, self._by_gpu.values()))


class Spell:
    """Something that lasts on one GPU, told as one event however often it flickers.

    Args:
        kind: What it is.
        quiet_s: When it is back within so many seconds, it went on.
    """

    def __init__(self, kind: EventKind, quiet_s: float) -> None:
        self._kind = kind
        self._quiet_s = quiet_s
        self._event: PastEvent | None = None
        self._seen_at = 0.0

    def look(self, at: float, about: str | None, gpu: str, events: Events) -> None:
        """It is so now: ``about`` says why; empty when it is not, None when that cannot be told."""
        if self._event is not None and at - self._seen_at > self._quiet_s:
            # It ended long ago, or nobody looked meanwhile.
            if self._event.until is None:
                self._put(events, gpu, replace(self._event, until=self._seen_at))
            self._event = None
        event = self._event
        if about:
            self._seen_at = at
            if event is None:
                self._event = PastEvent(at, self._kind, about)
                events.add(self._event, (gpu,))
                return
            reasons = ", ".join(dict.fromkeys([*event.about.split(", "), *about.split(", ")]))
            if event.until is not None or reasons != event.about:
                self._put(events, gpu, replace(event, about=reasons, until=None))
        elif event is not None and about is not None and event.until is None:
            self._put(events, gpu, replace(event, until=at))

    def _put(self, events: Events, gpu: str, changed: PastEvent) -> None:
        if self._event is not None:
            events.change(gpu, self._event, changed)
        self._event = changed


class PeakWatch:
    """Tells the peaks of one GPU's memory, each once it has stood for a while; with nobody on it they begin anew."""

    def __init__(self) -> None:
        self._top: float | None = None
        self._top_at = 0.0
        self._told = 0.0

    def look(self, at: float, used: float | None, total: float | None, *, free: bool, gpu: str, events: Events) -> None:
        """So much is in use."""
        if used is None or not total:
            return
        if self._top is None:
            self._top = self._told = used  # what was there before is nobody's peak
            self._top_at = at
        if used > self._top:
            self._top, self._top_at = used, at
        over = free or at - self._top_at >= QUIET_S
        if over and self._top >= self._told + RISE * total:
            events.add(PastEvent(self._top_at, EventKind.PEAK, "", value=self._top), (gpu,))
            self._told = self._top
        if free:
            self._top = self._told = used
            self._top_at = at
