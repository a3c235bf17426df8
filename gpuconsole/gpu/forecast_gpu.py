"""The forecast of one GPU: what grows in it, whose it is, and how long the room they share will last."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from gpuconsole.gpu.forecast_alarm import Alarm, Outlook
from gpuconsole.gpu.forecast_curve import Curve
from gpuconsole.gpu.forecast_model import Assessment, GpuMemory, Settings, Subject, Trend
from gpuconsole.gpu.forecast_trend import TrendReader
from gpuconsole.gpu.forecast_words import flat, levels_off, outlook
from gpuconsole.gpu.state import MemoryState

_ALL, _REST = "all", "rest"
"""Holders that are no process: the whole GPU where processes are not told, and what no process explains."""
_PATIENCE = 3
"""Samples without a reading in which what was said last still stands."""
_FULL = 0.05
"""Of the capacity: with less free, a process that asked for more and goes while an alarm stands has failed for memory,
most likely."""
_DUE = 4.0
"""Of the time between samples: who fills it with a step that was due within so much has failed too. Others that go have
ended, or were stopped by somebody who heard the alarm."""
_JUST = 2
"""Looks for which an alarm that fell tells of an end: at last an allocator gives its cache back, and asks again."""
_EARLY, _LARGER = 0.7, 1.3
"""A step may come when so much of the usual time has passed, and be larger than foreseen by so much."""
_BESIDE = 0.05
"""Of the capacity: while others hold less than this together, as a desktop does, what the GPU computes is the one's."""


@dataclass(slots=True)
class Holder:
    """Somebody's memory on the GPU."""

    curve: Curve
    reader: TrendReader
    pid: int | None
    name: str = ""
    loading: bool = False
    """It may be loading, as of the last reading."""
    calm: tuple[MemoryState, float, Assessment] | None = None
    """State, bytes and what was last said of it while it did not grow."""

    def wants(self, free: float) -> bool:
        """Whether it takes more than ``free`` without growing: it has held so much more, or is loading it."""
        return self.curve.unused() > free or (self.loading and self.curve.value > free)


class GpuWatch:
    """Follows one GPU.

    Args:
        index: NVML's index.
        settings: The forecast's numbers.
    """

    def __init__(self, index: int, settings: Settings) -> None:
        self._index = index
        self._settings = settings
        self._holders: dict[str, Holder] = {}
        self._alarm = Alarm(settings)
        self._busy: deque[float] = deque(maxlen=settings.idle_samples)
        self._idle = False
        """It computes nothing, as of the last reading."""
        self._culprits: tuple[str, ...] = ()
        self._grown: set[str] = set()
        """Who grew so that an alarm rose."""
        self._asked: frozenset[str] = frozenset()
        """Who may have asked for more than was left, as of the last reading, and before it since an alarm stood."""
        self._fallen = _JUST + 1
        """Looks since an alarm stood."""
        self._last_free: float = 0.0
        self._due = False
        """At the last reading the step was due that may fill it."""
        self._missing = 0
        self._told = False
        self._said_last: list[Assessment] = []

    def feed(self, t: float, gpu: GpuMemory, born: float | None, pace_s: float) -> list[Assessment]:
        """Take the next reading.

        Args:
            t: Its time.
            gpu: The reading.
            born: When holders that are new were not there yet; None if nobody knows.
            pace_s: Seconds to the next reading, most likely.
        """
        told = gpu.processes is not None and all(process.memory_bytes is not None for process in gpu.processes)
        if gpu.used_bytes is None or (self._told and not told):
            self._missing += 1
            if self._missing <= _PATIENCE and self._said_last:
                return [each for each in self._said_last if each.state not in (MemoryState.FAILED, MemoryState.FREE)]
        else:
            self._missing = 0
        self._told = told
        self._said_last = self._read(t, gpu, born, pace_s)
        return self._said_last

    def _read(self, t: float, gpu: GpuMemory, born: float | None, pace_s: float) -> list[Assessment]:
        total, free = gpu.total_bytes, gpu.free_bytes
        if free is None and total is not None and gpu.used_bytes is not None:
            free = total - gpu.used_bytes
        if gpu.used_bytes is None or free is None or not total:
            self._alarm.standing = None
            return [self._said(None, MemoryState.UNKNOWN, None, gpu.problem)]
        if gpu.utilization_pct is not None:
            self._busy.append(gpu.utilization_pct)
        few = len(self._busy) < self._settings.idle_samples
        self._idle = not few and max(self._busy) < self._settings.idle_pct
        gone = self._update(t, gpu, total, born)
        trends = {name: trend for name, each in self._holders.items() if (trend := each.reader.trend(t))}
        room = free - sum(each.curve.unused() for each in self._holders.values())
        caution = self._settings.idle_caution if self._idle else 1.0
        ahead = self._alarm.decide(trends, room, pace_s, caution=caution)
        self._fallen += 1
        if self._alarm.standing is not None:
            self._fallen = 0
            self._grown.update(ahead.culprits)
        said = [*gone, *self._processes(t, gpu, trends, ahead, room), self._whole(t, gpu, trends, ahead, room)]
        self._culprits = ahead.culprits
        asked = frozenset(name for name, each in self._holders.items() if name in trends or each.wants(free))
        just = 0 < self._fallen <= _JUST and not gone
        self._asked = asked | self._asked if just else asked
        self._last_free = min(free, self._last_free) if just else free
        self._due = any(_fills(trends[name], room, pace_s) for name in ahead.culprits)
        return said

    def _update(self, t: float, gpu: GpuMemory, total: int, born: float | None) -> list[Assessment]:
        """Give every holder its sample; says what became of those that have gone."""
        held = _holdings(gpu)
        # Where shares are told no more, nobody knows who has gone.
        gone = [self._ended(name) for name in self._holders if name not in held] if _ALL not in held else []
        for name in [name for name in self._holders if name not in held]:
            del self._holders[name]
            self._grown.discard(name)
            if not self._grown:
                self._alarm.forget()
                self._fallen = _JUST + 1
        called = {process.pid: process.name for process in gpu.processes or ()}
        computes, busy = _who_computes(gpu, total, held), (gpu.utilization_pct or 0.0) / 100
        for name, (pid, value) in held.items():
            holder = self._holders.get(name)
            if holder is None:
                since = born if pid is not None or value > 2 * self._settings.free * total else t - 1e-9
                curve = Curve(total, self._settings, born=since)
                holder = self._holders[name] = Holder(curve, TrendReader(curve, self._settings), pid)
            holder.name = called.get(pid, "") if pid is not None else ""
            holder.curve.capacity = total
            holder.curve.feed(t, value, busy if name == computes else 0.0)
            holder.loading = holder.reader.loading(t)
        return [each for each in gone if each is not None]

    def _ended(self, name: str) -> Assessment | None:
        holder = self._holders[name]
        if holder.pid is None:
            return None
        full = self._last_free < _FULL * holder.curve.capacity
        if self._fallen > _JUST or not (full or (self._due and name in self._culprits)):
            return self._said(holder.pid, MemoryState.FREE, None, "it has ended")
        if name in self._asked:
            why = "it ended as the memory was nearly full: out of memory, most likely; its log says what it asked for"
            return self._said(holder.pid, MemoryState.FAILED, None, why)
        why = "it ended while the memory was nearly full, and had asked for no more: its log and exit code say why"
        return self._said(holder.pid, MemoryState.FREE, None, why)

    def _processes(
        self, t: float, gpu: GpuMemory, trends: dict[str, Trend], ahead: Outlook, room: float
    ) -> list[Assessment]:
        said = []
        for name, holder in self._holders.items():
            if holder.pid is None:
                continue
            trend = trends.get(name)
            if trend is not None and name in ahead.culprits and ahead.state is not None and ahead.eta_s is not None:
                why = outlook("", trend, ahead.state, ahead.eta_s, room, Subject.GPU)
                said.append(self._said(holder.pid, ahead.state, ahead.eta_s, why, trend))
                continue
            state = self._flat_state(holder.loading, gpu, holder.curve.value)
            if trend is not None and ahead.state is None:
                said.append(self._said(holder.pid, state, ahead.eta_s, levels_off("", trend), trend))
                continue
            said.append(self._calm(holder, holder.pid, state))
        return said

    def _calm(self, holder: Holder, pid: int, state: MemoryState) -> Assessment:
        """What is said of a process that does not grow: the same as before, most of the time."""
        value = holder.curve.value
        if holder.calm is None or holder.calm[:2] != (state, value):
            said = self._said(pid, state, None, flat(state, value, holder.curve.capacity, what="it"))
            holder.calm = state, value, said
        return holder.calm[2]

    def _whole(self, t: float, gpu: GpuMemory, trends: dict[str, Trend], ahead: Outlook, room: float) -> Assessment:
        used, total = float(gpu.used_bytes or 0), float(gpu.total_bytes or 0)
        if ahead.state is not None and ahead.eta_s is not None:
            first = ahead.culprits[0]
            who = f"{self._name(first)} "
            if len(ahead.culprits) > 1:
                who = f"{' and '.join(self._name(each) for each in ahead.culprits)} grow; {self._name(first)} "
            why = outlook(who, trends[first], ahead.state, ahead.eta_s, room, Subject.GPU)
            return self._said(None, ahead.state, ahead.eta_s, why, trends[first])
        if gpu.processes == () and used < self._settings.free * total:
            return self._said(None, MemoryState.FREE, None, flat(MemoryState.FREE, used, total, what=""))
        state = self._flat_state(any(holder.loading for holder in self._holders.values()), gpu, used)
        return self._said(None, state, None, flat(state, used, total, what="somebody"))

    def _flat_state(self, loading: bool, gpu: GpuMemory, held: float) -> MemoryState:
        settings, total = self._settings, float(gpu.total_bytes or 0)
        if loading:
            return MemoryState.LOADING
        if self._idle:
            return MemoryState.IDLE
        full = float(gpu.used_bytes or 0) >= settings.packed * total and held >= total / 2
        rises = any(_rises(holder.curve, settings) for holder in self._holders.values())
        return MemoryState.PACKED if full and not rises else MemoryState.STEADY

    def _name(self, holder: str) -> str:
        known = self._holders.get(holder)
        if known is not None and known.pid is not None:
            return f"{known.name} (process {known.pid})" if known.name else f"process {known.pid}"
        return "memory in use" if holder == _ALL else "memory of no process"

    def _said(
        self, pid: int | None, state: MemoryState, eta_s: float | None, why: str, trend: Trend | None = None
    ) -> Assessment:
        rate = trend.rate_bytes_s if trend else None
        if pid is None:
            return Assessment(Subject.GPU, str(self._index), self._index, None, state, eta_s, why, rate)
        return Assessment(Subject.PROCESS, f"{self._index}:{pid}", self._index, pid, state, eta_s, why, rate)


def _rises(curve: Curve, settings: Settings) -> bool:
    """Whether it rose again and again since it had loaded, and may go on to: too little for a trend, yet no rest."""
    if curve.base is None or curve.cyclic or len(curve.points) < curve.base + 3:
        return False
    before, last = curve.points[-2:]
    return curve.last_t - last.t <= settings.stopped * (last.t - before.t) + curve.sampling_s


def _fills(trend: Trend, room: float, pace_s: float) -> bool:
    """Whether its next step is due before the next readings, and may need more than ``room``."""
    due = trend.since_s >= _EARLY * trend.interval_s or trend.interval_s - trend.since_s <= _DUE * pace_s
    steps = max(1.0, _DUE * pace_s / trend.interval_s)
    return due and _LARGER * steps * trend.step_bytes > room


def _holdings(gpu: GpuMemory) -> dict[str, tuple[int | None, float]]:
    """Name → pid and bytes of everybody who holds memory."""
    used = float(gpu.used_bytes or 0)
    processes = gpu.processes
    if processes is None or any(process.memory_bytes is None for process in processes):
        return {_ALL: (None, used)}
    held: dict[str, tuple[int | None, float]] = {}
    for process in processes:
        before = held.get(str(process.pid), (process.pid, 0.0))[1]
        held[str(process.pid)] = process.pid, before + float(process.memory_bytes or 0)
    held[_REST] = None, max(0.0, used - sum(value for _, value in held.values()))
    return held


def _who_computes(gpu: GpuMemory, total: int, held: dict[str, tuple[int | None, float]]) -> str | None:
    """Whose the utilisation is; None where it may be anybody's."""
    if gpu.processes is None:
        return None
    if _ALL in held:
        return _ALL if len({process.pid for process in gpu.processes}) == 1 else None
    most, largest, together = None, -1.0, 0.0
    for name, (pid, value) in held.items():
        if pid is not None:
            together += value
            if value > largest:
                most, largest = name, value
    return most if together - largest < _BESIDE * total else None
