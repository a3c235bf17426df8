"""Values that are looked at together, over a day: every one for half an hour, then thinned.

How many numbers are held is bounded, whatever is fed and however long.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from gpuconsole.services.series import HELD_S, PARTS, Peak, Point, Series, Tier

FULL_S = 1800.0
"""So long every value is kept."""
MOST_FULL = 3_700
"""Looks of which every value is kept at most: half an hour of the quickest pace, two a second."""
_SLACK = 64
"""The oldest go when so many are due, not one by one."""


class Column(NamedTuple):
    """What a value was in one of many equal parts of a time."""

    low: float
    high: float
    mean: float


class Track:
    """Series that are looked at together.

    Args:
        tiers: How their past is thinned, the finest first.
        most: Series at most; while so many are known, new ones are not taken in.
        gone_s: One of which nothing was known for so long is dropped.
    """

    def __init__(self, tiers: tuple[Tier, ...], *, most: int, gone_s: float) -> None:
        self._tiers = tiers
        self._most = most
        self._gone_s = gone_s
        self._times = array("d")
        self._base = 0
        """Number of the look that the first of the moments is of."""
        self._series: dict[str, Series] = {}
        self._crowded_at: float | None = None
        """The newest look at which there was no room for another."""

    @property
    def last_at(self) -> float | None:
        """The newest look; None before the first."""
        return self._times[-1] if self._times else None

    def look(self, at: float, values: Mapping[str, float | None]) -> bool:
        """Take in one look; one that is not later than the last is none, and False is returned.

        Args:
            at: When, in seconds of one clock that never goes back.
            values: By name of the series; what is unknown or left out becomes a gap.
        """
        if self._times and at <= self._times[-1]:
            return False
        slot = self._base + len(self._times)
        self._times.append(at)
        for key, value in values.items():
            if value is None or value != value:
                continue
            series = self._series.get(key) or self._new(key, slot, at)
            if series is not None:
                series.add(slot, at, value)
        self._forget(at)
        return True

    def _new(self, key: str, slot: int, at: float) -> Series | None:
        if len(self._series) >= self._most:
            if self._crowded_at == at:
                return None
            # What was known longest ago makes room, unless that was at the look before, or at this one.
            oldest = min(self._series, key=lambda each: self._series[each].last_at)
            if self._series[oldest].last_at >= self._times[-2 if len(self._times) > 1 else -1]:
                self._crowded_at = at
                return None
            del self._series[oldest]
        series = self._series[key] = Series(self._tiers, slot)
        return series

    def _forget(self, at: float) -> None:
        due = bisect_left(self._times, at - FULL_S)
        due = max(due, len(self._times) - MOST_FULL)
        if due < _SLACK:
            return
        del self._times[:due]
        self._base += due
        gone = [key for key, series in self._series.items() if at - series.last_at > self._gone_s]
        for key in gone:
            del self._series[key]
        for series in self._series.values():
            series.forget_before(self._base)

    def points(self, key: str, since: float, until: float) -> list[Point]:
        """What is known of a series in a time, oldest first; thinned where it is long ago, and gaps left out."""
        series = self._series.get(key)
        if series is None:
            return []
        return [*self._thinned(series, since, until), *series.full(self._base, self._times, since, until)]

    def columns(self, key: str, begins: float, each_s: float, count: int) -> list[Column | None]:
        """What a series was in each of ``count`` parts of a time; None where nothing is known.

        A value belongs to the part it was seen in. Parts in which nobody looked have the value before, while it stands.
        """
        series = self._series.get(key)
        if series is None or not self._times:
            return [None] * count
        times, base = self._times, self._base
        found = _gathered(self._thinned(series, begins, begins + count * each_s), begins, each_s, count)
        place = bisect_left(times, begins)
        for number in range(count):
            since = begins + number * each_s
            end = bisect_left(times, begins + (number + 1) * each_s, place)
            if known := series.known(base + place, base + end):
                column, before = Column(min(known), max(known), sum(known) / len(known)), found[number]
                if before is not None:
                    column = Column(min(column.low, before.low), max(column.high, before.high), column.mean)
                found[number] = column
            elif end == place > 0 and since - times[place - 1] < HELD_S and found[number] is None:
                held = series.known(base + place - 1, base + place)
                found[number] = Column(held[0], held[0], held[0]) if held else None
            place = end
        return found

    def highest(self, key: str, since: float, until: float) -> Peak | None:
        """The highest a series was in a time, and when; of what is thinned, when that part began."""
        series = self._series.get(key)
        if series is None or not self._times:
            return None
        found = [Peak(point.high, point.since) for point in self._thinned(series, since, until)]
        first, end = bisect_left(self._times, since), bisect_right(self._times, until)
        if known := series.known(self._base + first, self._base + end):
            top = max(known)
            found.append(Peak(top, self._times[series.first_of(top, self._base + first) - self._base]))
        return max(found, key=lambda peak: peak.value, default=None)

    def _thinned(self, series: Series, since: float, until: float) -> Iterable[Point]:
        """What is thinned of a time; nothing while every value of the series is still kept."""
        if self._base == 0 or series.slot > self._base or since >= self._times[0]:
            return ()
        return series.thinned(since, min(until, self._times[0]))

    def full_since(self, key: str) -> float | None:
        """From when on every value of a series is kept; None for one that is not known."""
        series = self._series.get(key)
        return None if series is None else self._times[max(0, series.slot - self._base)]

    def peak(self, key: str) -> Peak | None:
        """The highest value of a series since it is known."""
        series = self._series.get(key)
        return series.peak if series is not None else None

    def __contains__(self, key: object) -> bool:
        return key in self._series

    def __len__(self) -> int:
        return len(self._series)

    @property
    def stored(self) -> int:
        """Numbers held, of all series together."""
        return len(self._times) + sum(series.stored for series in self._series.values())

    @property
    def stored_at_most(self) -> int:
        """What :attr:`stored` never exceeds."""
        full = MOST_FULL + _SLACK
        return full + self._most * (full + PARTS * sum(tier.entries for tier in self._tiers))


def _gathered(points: Iterable[Point], begins: float, each_s: float, count: int) -> list[Column | None]:
    """Points in equal parts of a time: each in the part it begins in, and up to its end where nothing else begins."""
    begun: list[list[Point]] = [[] for _ in range(count)]
    held: list[Point | None] = [None] * count
    for point in points:
        place = int((point.since - begins) // each_s)
        if 0 <= place < count:
            begun[place].append(point)
        for other in range(max(0, place + 1), min(count, int((point.until - begins) / each_s - 1e-6) + 1)):
            held[other] = point
    return [_column(begun[place] or [one for one in (held[place],) if one]) for place in range(count)]


def _column(points: Sequence[Point]) -> Column | None:
    if not points:
        return None
    mean = sum(point.mean for point in points) / len(points)
    return Column(min(point.low for point in points), max(point.high for point in points), mean)
