"""Values over time in little room: each as it was seen for half an hour, then thinned so that no peak is lost.

A track holds many series that are looked at together, and so share their moments. Numbers stand in arrays, four bytes
each. How many there can be is bounded, whatever is fed and however long; where nothing was seen stays a gap.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

FULL_S = 1800.0
"""So long every value is kept."""
MOST_FULL = 3_700
"""Looks of which every value is kept at most: half an hour of the quickest pace, two a second."""
HELD_S = 12.0
"""A value stands until the next look, for so long at most: the slowest pace, and a little."""
_SLACK = 64
"""The oldest go when so many are due, not one by one."""
_PARTS = 4
_UNKNOWN = float("nan")
_NOTHING = array("f", (_UNKNOWN,) * _PARTS)


class Point(NamedTuple):
    """What a value was from ``since`` until ``until``, both in seconds of the track's clock."""

    since: float
    until: float
    low: float
    high: float
    mean: float
    last: float


class Tier(NamedTuple):
    """How far the past is thinned: one entry of lowest, highest, mean and last for so many seconds."""

    each_s: float
    entries: int
    """Kept at most."""


@dataclass(slots=True)
class Peak:
    """The highest value there was."""

    value: float
    at: float


class _Thinned:
    """One tier of one series: entries in a row, those in which nothing was seen too."""

    __slots__ = ("_count", "_first", "_parts", "_tier", "_total")

    def __init__(self, tier: Tier) -> None:
        self._tier = tier
        self._parts = array("f")
        self._first = 0
        """Number of the oldest entry, in entries since second 0."""
        self._total, self._count = 0.0, 0

    def add(self, at: float, value: float) -> None:
        """Take in a value, not older than the one before."""
        number = int(at // self._tier.each_s)
        parts = self._parts
        gap = number - self._first - len(parts) // _PARTS + 1
        if not parts or gap > self._tier.entries:
            del parts[:]
            self._first, gap = number, 1
        if gap > 0:
            parts.extend(_NOTHING * gap)
            parts[-_PARTS:] = array("f", (value,) * _PARTS)
            self._total, self._count = value, 1
            excess = len(parts) // _PARTS - self._tier.entries
            if excess > 0:
                del parts[: excess * _PARTS]
                self._first += excess
            return
        self._total += value
        self._count += 1
        parts[-4] = min(parts[-4], value)
        parts[-3] = max(parts[-3], value)
        parts[-2] = self._total / self._count
        parts[-1] = value

    def points(self, since: float, until: float) -> Iterator[Point]:
        """Entries that reach into ``since`` … ``until`` and begin before its end."""
        each_s, parts = self._tier.each_s, self._parts
        first = max(0, int(max(since, 0.0) // each_s) - self._first)
        for place in range(first, len(parts) // _PARTS):
            begins = (self._first + place) * each_s
            if begins >= until:
                return
            low, high, mean, last = parts[place * _PARTS : place * _PARTS + _PARTS]
            if low == low:
                yield Point(begins, begins + each_s, low, high, mean, last)

    def begins_at(self, otherwise: float) -> float:
        """The oldest of it; ``otherwise`` when there is nothing."""
        return self._first * self._tier.each_s if self._parts else otherwise

    @property
    def stored(self) -> int:
        """Numbers held."""
        return len(self._parts)


class Series:
    """One value over time; a track makes it."""

    __slots__ = ("_full", "_tiers", "last_at", "peak", "slot")

    def __init__(self, tiers: tuple[Tier, ...], slot: int) -> None:
        self._full = array("f")
        self.slot = slot
        """Number of the look that its oldest full value is of."""
        self._tiers = tuple(_Thinned(tier) for tier in tiers)
        self.peak: Peak | None = None
        """Of all the time, also of what is not kept any more."""
        self.last_at = 0.0
        """When it was known last."""

    def add(self, slot: int, at: float, value: float) -> None:
        """Take in the value of a look, later than the one before."""
        missed = slot - self.slot - len(self._full)
        if missed > 0:
            self._full.extend(array("f", (_UNKNOWN,)) * missed)
        self._full.append(value)
        for tier in self._tiers:
            tier.add(at, value)
        self.last_at = at
        if self.peak is None:
            self.peak = Peak(value, at)
        elif value > self.peak.value:
            self.peak.value, self.peak.at = value, at

    def forget_before(self, slot: int) -> None:
        """Of looks before that one, keep only what is thinned."""
        if slot > self.slot:
            del self._full[: slot - self.slot]
            self.slot = slot

    def full(self, base: int, times: array[float], since: float, until: float) -> Iterator[Point]:
        """Every value that reaches into ``since`` … ``until``; ``times`` are of the looks from ``base`` on."""
        begin = max(bisect_left(times, since - HELD_S), self.slot - base, 0)
        end = min(bisect_right(times, until), self.slot + len(self._full) - base)
        for place in range(begin, end):
            value = self._full[place + base - self.slot]
            if value != value:
                continue
            at = times[place]
            until_at = min(at + HELD_S, times[place + 1]) if place + 1 < len(times) else at + HELD_S
            if until_at > since:
                yield Point(at, until_at, value, value, value, value)

    def thinned(self, since: float, until: float) -> Iterator[Point]:
        """What is left of the time before every value is kept: the finest that reaches back so far.

        An entry that reaches into the time of finer ones counts up to there: the highest in it may be older.
        """
        ends = [tier.begins_at(until) for tier in self._tiers]
        for number in range(len(self._tiers) - 1, -1, -1):
            end = min(until, *ends[:number]) if number else until
            for point in self._tiers[number].points(since, end):
                yield point._replace(until=end) if point.until > end else point

    @property
    def stored(self) -> int:
        """Numbers held."""
        return len(self._full) + sum(tier.stored for tier in self._tiers)


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
        full = list(series.full(self._base, self._times, since, until))
        begins = self._times[0] if self._times else until
        return [*series.thinned(since, min(until, begins)), *full] if since < begins else full

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
        return full + self._most * (full + _PARTS * sum(tier.entries for tier in self._tiers))
