"""The shape of one memory over time, in bounded space: its high-water mark by steps, its cycles, its loading.

PyTorch keeps what it once took, so memory seen from outside rises in steps and rests between them; a cache that is
given back makes it fall and come again. Both are kept as points of the high-water mark: while memory only rises, each
rise is a point; once it comes and goes, only the highest point of each climb is.
"""

from __future__ import annotations

from collections import deque
from itertools import pairwise

from gpuconsole.gpu.forecast_loading import Past, Point, loading_end
from gpuconsole.gpu.forecast_model import Settings

_POINTS = 48
"""Most points kept; older ones are merged."""
_PEAKS = 12


class Curve:
    """One memory, sample by sample.

    Args:
        capacity: Bytes it is measured against.
        settings: The forecast's numbers.
        born: Time of the sample before the first, when the memory was not there yet; None if it was there before
            anything was seen.
        rest_settles: A rest ends loading, however fast growth goes on afterwards: true of RAM and shm, which are not
            filled on purpose as GPUs are.
    """

    def __init__(self, capacity: float, settings: Settings, *, born: float | None, rest_settles: bool = False) -> None:
        self._settings = settings
        self.capacity = capacity
        self.born = born is not None
        self._rest_settles = rest_settles
        self.points: list[Point] = [] if born is None else [Point(born, 0.0, 0)]
        self.peaks: deque[Point] = deque(maxlen=_PEAKS)
        self.climbs: deque[float] = deque(maxlen=_PEAKS)
        self.value = 0.0
        self.high = 0.0
        self.last_t = 0.0 if born is None else born
        self.sampling_s = 0.0
        self.base: int | None = None
        """Index of the point where loading ended; None while it may go on."""
        self.moved_t = self.last_t
        """When it last rose, to whatever height."""
        self._busy_s = 0.0
        self._quiet: Point | None = None
        """The sample since which it has computed more than half of the time; None while that is the last one."""
        self._low = 0.0
        self._crest = Point(self.last_t, 0.0)
        self._trough: Point | None = None
        self._counted = False
        self._climb_from = self.last_t
        self._climbing: list[Point] = []

    @property
    def cyclic(self) -> bool:
        """It comes and goes."""
        return bool(self.peaks)

    def feed(self, t: float, value: float, busy: float = 0.0) -> None:
        """Take the next sample; times rise.

        Args:
            t: Its time.
            value: Bytes.
            busy: Share of the time since the last sample in which whoever holds it computed; 0 where nobody knows.
        """
        if self.points and (busy or self._quiet is not None):
            self._compute(t, busy)
        if value == self.value and self._trough is None and self.points:  # most samples of most memories
            if value >= self._crest.level:
                self._crest = Point(t, value)
            self.sampling_s, self.last_t = t - self.last_t, t
            return
        if not self.points:
            self.points.append(Point(t, value, 0, self._busy_s))
            self._crest = Point(t, value)
            self.high = value
            self._climb_from = t
        elif self._has_begun_anew(value):
            self._begin(t, value)
        else:
            self.sampling_s = t - self.last_t
        self.value, self.last_t = value, t
        self._follow(t, value)
        self._raise(t, value)

    def _compute(self, t: float, busy: float) -> None:
        """Find the sample at which twice the time computed less the time was least: there computing began, if it did.

        Called before the sample is taken.
        """
        now = self._busy_s + busy * (t - self.last_t)
        quiet = self._quiet or Point(self.last_t, self.value, 0, self._busy_s)
        self._quiet = quiet if 2 * now - t > 2 * quiet.busy_s - quiet.t else None
        self._busy_s = now

    def _has_begun_anew(self, value: float) -> bool:
        """Less than half of what it rested at is another use of the memory, as after a model was unloaded."""
        if value >= self.high / 2:
            return False
        level = self.points[self._floor()].level
        return value < level / 2 and level > 10 * self._settings.step * self.capacity

    def _floor(self) -> int:
        """Index of the point growth starts from: where loading ended, else where it rested longest."""
        if self.base is not None:
            return self.base
        rests = [b.t - a.t for a, b in pairwise(self.points)]
        return max(range(len(rests)), key=lambda i: rests[i]) if rests else 0

    def _begin(self, t: float, value: float) -> None:
        self._quiet = None
        self.points = [Point(t, value, 0, self._busy_s)]
        self.peaks.clear()
        self.climbs.clear()
        self._climbing.clear()
        self.high, self.base, self.born = value, None, True
        self._crest, self._trough, self._counted, self._climb_from = Point(t, value), None, False, t

    def _follow(self, t: float, value: float) -> None:
        """Find falls, and climbs after them."""
        least = self._settings.fall * self.capacity
        if self._trough is None:
            if value >= self._crest.level:
                self._crest = Point(t, value)
            elif self._crest.level - value > least:
                self._trough, self._counted = Point(t, value), False
        elif value <= self._trough.level:
            self._trough = Point(t, value)
        elif value - self._trough.level > least:
            self._climb_from = self._trough.t
            self._trough, self._crest = None, Point(t, value)
            return
        if self._trough is not None and not self._counted and self._is_deep(self._crest.level - value):
            self._counted = True
            self._end_climb()

    def _is_deep(self, fall: float) -> bool:
        base = self.points[self._floor()].level
        grown = self._crest.level - base
        usual = min((peak.level for peak in self.peaks), default=0.0) - base
        return fall >= self._settings.deep * (min(grown, usual) if self.peaks and usual > 0 else grown)

    def _end_climb(self) -> None:
        """The climb that just ended becomes one point, if it went higher than any before."""
        crest = self._crest
        if not self.peaks:
            del self.points[self._floor() + 1 :]
            self._climb_from = max(self._climb_from, self.points[-1].t)
            self.points.append(crest)
        elif self._climbing:
            self._add(crest)
        self._climbing.clear()
        self.climbs.append(crest.t - self._climb_from)
        self.peaks.append(crest)

    def _raise(self, t: float, value: float) -> None:
        """Note a rise, and a new high-water mark."""
        self._low = min(self._low, value)
        if value > self._low + self._settings.step * self.capacity:
            self._low, self.moved_t = value, t
        if value <= self.high + self._settings.step * self.capacity:
            return
        self.high = value
        if not self.cyclic:
            self._add(Point(t, value, busy_s=self._busy_s))
            return
        self._climbing.append(Point(t, value, busy_s=self._busy_s))
        if len(self._climbing) > 2 and t - self._climbing[0].t > 2 * max(self.climbs):
            self._leave_cycles()

    def _leave_cycles(self) -> None:
        """This climb has lasted longer than cycles did: it is growth of its own."""
        rising, self._climbing = self._climbing, []
        self.peaks.clear()
        for point in rising:
            self._add(point)

    def _add(self, point: Point) -> None:
        self.points.append(point)
        if len(self.points) > _POINTS:
            self._merge()
        if not self.cyclic:
            quiet = self._quiet or Point(self.last_t, self.value, 0, self._busy_s)
            past = Past(self.born, self._rest_settles, self.sampling_s, self.capacity, quiet)
            self.base = loading_end(self.points, past, self._settings)

    def _merge(self) -> None:
        """Make one of two neighbours: of loading's points while there are many, else of the older ones after it."""
        base = self.base or 0
        first, last = (1, base - 1) if base > _POINTS // 4 else (base + 1, base + (len(self.points) - base) // 2)
        index = min(range(first, last), key=lambda i: (self.points[i].steps, i))
        older, newer = self.points[index], self.points[index + 1]
        self.points[index : index + 2] = [newer._replace(steps=older.steps + newer.steps)]
        if index < base:
            self.base = base - 1

    def tail(self) -> float:
        """Bytes by which loading died away before the base: rises far smaller than its largest, yet no growth.

        Growth that is small beside it is the rest of it, as while an allocator finds its working set.
        """
        if self.base is None:
            return 0.0
        rises = [b.level - a.level for a, b in pairwise(self.points[: self.base + 1])]
        end = self.points[self.base].level
        for index, rise in enumerate(rises):
            if all(later <= rise / 3 for later in rises[index + 1 :]):
                return end - self.points[index + 1].level
        return 0.0

    def unused(self) -> float:
        """Bytes it does not hold now but will again: up to its mark, or to its highest peak so far.

        Negative in a climb above all peaks: that one's end is still to be foretold.
        """
        return (max(peak.level for peak in self.peaks) if self.cyclic else self.high) - self.value

    def growth(self) -> list[Point]:
        """Points of the growth that may be a trend, the one it starts from first; empty while loading."""
        if self.cyclic:
            first = self.peaks[0].t
            return [point for point in self.points if point.t >= first]
        return [] if self.base is None else self.points[self.base :]
