"""One value over time in little room: as it was seen for half an hour, then thinned so that no peak is lost.

Numbers stand in arrays, four bytes each; where nothing was seen stays a gap.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

HELD_S = 12.0
"""A value stands until the next look, for so long at most: the slowest pace, and a little."""
PARTS = 4
"""Numbers of a thinned entry."""
_UNKNOWN = float("nan")
_NOTHING = array("f", (_UNKNOWN,) * PARTS)


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
        gap = number - self._first - len(parts) // PARTS + 1
        if not parts or gap > self._tier.entries:
            del parts[:]
            self._first, gap = number, 1
        if gap > 0:
            parts.extend(_NOTHING * gap)
            parts[-PARTS:] = array("f", (value,) * PARTS)
            self._total, self._count = value, 1
            excess = len(parts) // PARTS - self._tier.entries
            if excess > 0:
                del parts[: excess * PARTS]
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
        for place in range(first, len(parts) // PARTS):
            begins = (self._first + place) * each_s
            if begins >= until:
                return
            low, high, mean, last = parts[place * PARTS : place * PARTS + PARTS]
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

    def known(self, first: int, end: int) -> list[float]:
        """The values of the looks ``first`` … ``end``, those that are unknown left out."""
        values = self._full[max(0, first - self.slot) : max(0, end - self.slot)]
        return [value for value in values if value == value]

    def first_of(self, value: float, first: int) -> int:
        """The first look from ``first`` on that had that value; there must be one."""
        return self.slot + self._full.index(value, max(0, first - self.slot))

    @property
    def stored(self) -> int:
        """Numbers held."""
        return len(self._full) + sum(tier.stored for tier in self._tiers)
