"""What is known at a moment of a recording: the machine as it was, and all that was remembered of the time before.

It is made by taking one event after the other, and by nothing else: so it is the same whether one played to that moment
or went there. Copies that are kept along the way make going back quick.
"""

from __future__ import annotations

import pickle
import zlib
from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, cast

from gpuconsole.gpu.state import MemoryState
from gpuconsole.host.facts import LaunchFacts
from gpuconsole.services.alarmdesk import AlarmDesk
from gpuconsole.services.alarmfile import AlarmFile
from gpuconsole.services.logfollow import LogLine
from gpuconsole.services.memorywatch import MemoryWatch
from gpuconsole.services.pasts import Pasts

if TYPE_CHECKING:
    from gpuconsole.engine.model import EngineInfo
    from gpuconsole.host.model import HostView
    from gpuconsole.services.containers import ContainerView
    from gpuconsole.services.feed import EngineLink
    from gpuconsole.services.images import ImageView
    from gpuconsole.services.replayengine import Played
    from gpuconsole.services.replayfile import Event
    from gpuconsole.services.runs import Run

LOOKS = 120
"""Looks at the GPUs that a console draws its lines of use from."""
_APART = 256
"""Events between two copies."""
_MOST_COPIES = 128


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
    told: set[str] = field(default_factory=set)
    """Kinds of events there were: no list of containers yet is another thing than an empty one."""


class _NoAlarmFile(AlarmFile):
    """Nothing of a recording is remembered beyond it; what somebody dismissed is of the moment he did so at."""

    def __init__(self) -> None:
        super().__init__(kept=False)

    def __reduce__(self) -> tuple[type[_NoAlarmFile], tuple[()]]:
        return (_NoAlarmFile, ())


class Remembered:
    """What a console remembers of what it saw, fed as the console feeds its own. For one thread.

    Args:
        alarms_from: RISK or CRITICAL, from which on a trend rings.
    """

    def __init__(self, alarms_from: MemoryState = MemoryState.RISK) -> None:
        self.pasts = Pasts()
        self.alarms = AlarmDesk(least=alarms_from, file=_NoAlarmFile())
        self.looks: deque[HostView] = deque(maxlen=LOOKS)
        self._containers: tuple[ContainerView, ...] | None = None

    def host_looked(self, view: HostView) -> None:
        """The GPUs were looked at."""
        self.pasts.host_looked(view)
        if self.looks:  # of one look nothing can be said that rings
            self.alarms.host_looked(view, self._containers)
        self.looks.append(view)

    def containers_listed(self, views: tuple[ContainerView, ...], at: float) -> None:
        """The containers are these."""
        self.pasts.containers_listed(views, at=at)
        self._containers = views
        self.alarms.containers_listed(views)

    def runs_changed(self, runs: tuple[Run, ...], at: float) -> None:
        """The runs are these."""
        self.pasts.runs_changed(runs, at=at)

    def explain(self, played: Played, at: float) -> None:
        """Find out why containers ended, at once: what is asked later would be answered by what came later."""
        for container in self.alarms.to_explain():
            from gpuconsole.services.alarmdeaths import explained
            from gpuconsole.services.replayengine import RecordedEngine

            ending = explained(lambda: RecordedEngine(played), container)
            self.alarms.ended(ending, ending.finished_at or at)


class Past:
    """All that is known at a moment. For one thread.

    Args:
        began_at: Second 0 of the recording, in seconds since the epoch.
        alarms_from: From which state on a trend rings.
    """

    def __init__(self, began_at: float, alarms_from: MemoryState = MemoryState.RISK) -> None:
        self.state = State()
        self.remembered = Remembered(alarms_from)
        self.taken = 0
        """Events that were taken."""
        self._memory = MemoryWatch()
        self._began_at = began_at

    def take(self, event: Event) -> Event:
        """Take what happened next; gives it as it is told, with what the forecaster says by then."""
        state, body, kind = self.state, event.body, event.kind
        self.taken += 1
        if kind == "sample":
            self._memory.take(body)
        elif kind == "log":
            state.output.setdefault(body.id, []).append(LogLine(body.channel, body.stamp, body.text))
        elif kind != "container":
            at = self._began_at + event.at
            if kind == "host":
                body = self._memory.shown(body)
            elif kind == "containers" and state.host is not None:
                body = tuple(replace(view, outlooks=state.host.outlooks_of(view.container.id)) for view in body)
            setattr(state, kind, body)
            state.told.add(kind)
            if kind == "host":
                self.remembered.host_looked(body)
            elif kind == "containers":
                self.remembered.containers_listed(body, at)
            elif kind == "runs":
                self.remembered.runs_changed(body, at)
            self.remembered.explain(self, at)
        return replace(event, body=body)


@dataclass(frozen=True, slots=True)
class _Copy:
    """A past as it was after so many events."""

    taken: int
    packed: bytes
    lines: dict[str, int]
    """Container id → lines of output by then."""


class Copies:
    """Copies of pasts along a recording, a bounded number of them. For one thread."""

    def __init__(self) -> None:
        self._copies: list[_Copy] = []
        self._apart = _APART
        self._output: dict[str, list[LogLine]] = {}
        """All output as far as it was met: written once, for all copies."""

    def keep(self, past: Past) -> None:
        """Keep a copy where it is time for one; a past that goes where another one went keeps none."""
        if past.taken % self._apart or (self._copies and past.taken <= self._copies[-1].taken):
            return
        for key, lines in past.state.output.items():
            known = self._output.setdefault(key, [])
            known += lines[len(known) :]
        self._copies.append(self._copy(past))
        if len(self._copies) > _MOST_COPIES:
            self._apart *= 2
            self._copies = [each for each in self._copies if each.taken % self._apart == 0]

    @staticmethod
    def _copy(past: Past) -> _Copy:
        output, past.state.output = past.state.output, {}
        try:
            packed = zlib.compress(pickle.dumps(past, pickle.HIGHEST_PROTOCOL), 1)
        finally:
            past.state.output = output
        return _Copy(past.taken, packed, {key: len(lines) for key, lines in output.items()})

    def nearest(self, taken: int) -> Past | None:
        """The last kept past of no more events than these."""
        place = bisect_right([each.taken for each in self._copies], taken) - 1
        if place < 0:
            return None
        kept = self._copies[place]
        past = cast(Past, pickle.loads(zlib.decompress(kept.packed)))  # noqa: S301  # made here, never of a file
        past.state.output = {key: self._output[key][:count] for key, count in kept.lines.items()}
        return past


def copy_of(remembered: Remembered) -> Remembered:
    """Another one like it, for another thread."""
    return cast(Remembered, pickle.loads(pickle.dumps(remembered)))  # noqa: S301  # made here, never of a file


def count_until(times: Sequence[float], position_s: float) -> int:
    """How many of the events, whose times these are, have happened by then."""
    return bisect_right(times, position_s)
