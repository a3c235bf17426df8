"""Whether a memory's growth is a trend, and which: pure arithmetic on points.

Nothing here knows seconds or bytes: growth is measured against the growth time seen so far, so that a leak of minutes
and one of days look alike.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import correlation, median
from typing import NamedTuple

from gpuconsole.gpu.forecast_curve import Curve
from gpuconsole.gpu.forecast_loading import Point
from gpuconsole.gpu.forecast_model import Settings, Trend
from gpuconsole.gpu.forecast_pauses import AGAIN, without_pauses

_STRAIGHT, _PER_STEP, _PER_SAMPLE = 0.03, 0.04, 0.1
"""Root mean square distance from a straight line, in parts of the growth, below which growth is steady: as such, more
with few steps, and more where samples are far between, since a step is seen up to one sample late."""
_BENDS = [value / 4 for value in range(-20, 21) if value]
_ON_LINE = 0.05
"""The same for three peaks."""
_ALONG = 0.93
"""Correlation of peaks with their number from which on they run along a rising line."""
_TAIL = 0.6
"""Of what loading died away by: growth that follows without a rest must be more."""
_REST = 0.4
"""Of the growth time: a rest before growth counts so much at most."""
_WALL = 0.95
"""Of the capacity: above it an allocator that frees and takes again goes on growing, though its mark cannot rise."""
_LENGTHENING = 0.75
"""Concordance of the times between peaks from which on they are said to lengthen."""


class _Stretch(NamedTuple):
    """The growth that tells of the future."""

    points: list[Point]
    bend: float
    """How much it bends over its length; 0 is steady."""
    start: float
    """Since when growth has been seen."""
    pause_s: float
    """The longest usual time between steps."""
    paused_s: float
    """Time of pauses that is cut out of the points."""
    longest_s: float
    """The longest of these pauses."""
    rest_s: float
    """Time before the first step."""
    tail_bytes: float
    """What loading died away by before it."""


class TrendReader:
    """Reads the trend of one curve; what only new points change is worked out once for them.

    Args:
        curve: Fed by somebody else.
        settings: The forecast's numbers.
    """

    def __init__(self, curve: Curve, settings: Settings) -> None:
        self._curve = curve
        self._settings = settings
        self._known: tuple[int, int | None, Point] | None = None
        self._stretch: _Stretch | None = None

    def trend(self, now: float) -> Trend | None:
        """The growth that goes on at ``now``; None when there is none, or too little to tell."""
        curve, settings = self._curve, self._settings
        if curve.cyclic:
            return _of_peaks(curve, curve.growth(), now, settings)
        known = len(curve.points), curve.base, curve.points[-1]
        if known != self._known:
            self._known, self._stretch = known, _stretch_of(curve, settings)
        stretch = self._stretch
        trend = _stated(stretch, now, curve, settings) if stretch is not None else None
        if stretch is None or trend is None:
            return None
        rest = max(0.0, stretch.rest_s - trend.interval_s)
        if rest < trend.interval_s and trend.gained_bytes < _TAIL * stretch.tail_bytes:
            return None
        seen = now - stretch.start  # pauses are cut out of the points after them, not of where growth began
        return replace(trend, seen_s=seen + min(rest, _REST * seen))

    def loading(self, now: float) -> bool:
        """Memory grows, and it may be loading."""
        curve = self._curve
        if curve.base is not None or curve.cyclic or len(curve.points) < 2:
            return False
        rests = [b.t - a.t for a, b in pairwise(curve.points[-4:])]
        return now - curve.points[-1].t <= self._settings.stopped * max(*rests, curve.sampling_s)


def _of_peaks(curve: Curve, points: Sequence[Point], now: float, settings: Settings) -> Trend | None:
    peaks = list(curve.peaks)
    if len(peaks) < settings.steps or not _peaks_grow(peaks, settings):
        return None
    between = [b.t - a.t for a, b in pairwise(peaks)]
    if now - peaks[-1].t > settings.stopped * max(between) + curve.sampling_s:
        return None
    start = Point(peaks[0].t, peaks[0].level, 0)
    rising = [start, *(point for point in points if point.t > start.t)]
    gained = rising[-1].level - start.level
    rounds = len(peaks) - 1
    return Trend(
        gained_bytes=gained,
        lasted_s=now - start.t,
        steps=rounds,
        step_bytes=gained / rounds,
        interval_s=between[-1] + _drift(between) if _drift(between) else (peaks[-1].t - start.t) / rounds,
        seen_s=now - start.t,
        since_s=now - peaks[-1].t,
        drift_s=_drift(between),
        steady_step_bytes=gained / rounds,
        cyclic=True,
    )


def _peaks_grow(peaks: Sequence[Point], settings: Settings) -> bool:
    """Whether peaks rise by more than chance: few of them on one line, or nearly every later one the higher."""
    levels = [peak.level for peak in peaks]
    if len(peaks) == settings.steps:
        return levels == sorted(levels) and levels[0] < levels[-1] and _off_line(peaks) <= _ON_LINE
    return concordance(levels) >= settings.concordant or (len(peaks) > settings.steps + 1 and _runs_along(levels))


def _runs_along(levels: Sequence[float]) -> bool:
    """Whether the levels keep to a rising line, if not one by one."""
    rounds = range(len(levels))
    spread = max(levels) - min(levels)
    return spread > 0 and correlation(rounds, levels) >= _ALONG and max(levels[-2:]) == max(levels)


def _drift(between: Sequence[float]) -> float:
    """By how many seconds each round is longer than the one before; 0 where there is no telling."""
    if len(between) < 3 or concordance(between) < _LENGTHENING:
        return 0.0
    return (between[-1] - between[0]) / (len(between) - 1)


def concordance(levels: Sequence[float]) -> float:
    """Share of pairs in which the later is the higher; equal ones count half."""
    pairs = [(a, b) for index, a in enumerate(levels) for b in levels[index + 1 :]]
    return sum(1.0 if b > a else 0.5 if b == a else 0.0 for a, b in pairs) / len(pairs)


def _gaps(points: Sequence[Point]) -> list[float]:
    """Times between steps; the rest before the first is none."""
    return [(b.t - a.t) / b.steps for a, b in pairwise(points[1:])]


def _pause(points: Sequence[Point]) -> float:
    """The longest usual time between steps: with many steps, one outlier does not count."""
    gaps = sorted(_gaps(points[-12:]))
    return gaps[-1] if len(gaps) < 6 else gaps[-2]


def _timed(points: Sequence[Point]) -> list[Point]:
    """The points, the first moved to one usual gap before the first step: a rest before growth is no growth."""
    first = points[1]
    start = max(points[0].t, first.t - first.steps * median(_gaps(points)))
    return [points[0]._replace(t=start), *points[1:]]


def _stretch_of(curve: Curve, settings: Settings) -> _Stretch | None:
    """None where there are too few steps to tell."""
    points = curve.growth()
    if sum(point.steps for point in points[1:]) < settings.steps:
        return None
    rest = points[1].t - points[0].t
    points, paused, longest = without_pauses(points, curve.sampling_s)
    segment, bend, start = _stretch(points, curve.sampling_s, settings)
    return _Stretch(segment, bend, start, _pause(segment), paused, longest, rest, curve.tail())


def _stretch(points: Sequence[Point], sampling_s: float, settings: Settings) -> tuple[list[Point], float, float]:
    """The stretch of growth that tells of the future, how much it bends over its length (0: steady), and since when
    growth has been seen.
    """
    whole = _timed(points)
    straight = _off_line(whole)
    span = max(whole[-1].t - whole[0].t, 1e-9)
    if straight <= _STRAIGHT + _PER_STEP / (len(whole) - 1) + _PER_SAMPLE * sampling_s / span:
        return whole, 0.0, whole[0].t
    bend, bent = _best_bend(whole)
    later_bend, later_bent = _best_bend(whole[1:])
    if len(whole) > settings.steps + 1 and later_bend < 0 and later_bent < bent / 2:
        # its first step was seen half done, and hides that growth slows down
        return whole[1:], later_bend, whole[0].t
    broken, knot = _best_knot(whole, settings)
    if knot is not None and broken < 0.7 * bent and _changes_pace(whole, knot):
        later = _timed(whole[knot:])
        slower = _pace(later) < 0.67 * _pace(whole[: knot + 1])
        if not slower or later[-1].level - later[0].level >= 0.3 * (whole[-1].level - whole[0].level):
            return later, 0.0, later[0].t - (0.0 if slower else _worth(whole[: knot + 1], later))
    coarse = _is_coarse(whole, sampling_s)
    few = sum(point.steps for point in whole[1:]) <= settings.steps + 4 * coarse
    if bend > 0 and (few or (coarse and bend < 1.0)):
        return whole, 0.0, whole[0].t  # so few steps, or so little, may be chance
    return whole, bend * (1 - (bent / straight) ** 2), whole[0].t


def _is_coarse(points: Sequence[Point], sampling_s: float) -> bool:
    """Whether nearly every sample shows a step: then a step is some of the real ones, now more and now fewer."""
    return median(_gaps(points)) < 1.5 * sampling_s


def _best_bend(points: Sequence[Point]) -> tuple[float, float]:
    """The bend that fits best, and the distance that is left."""
    return min(((bend, _off_curve(points, bend)) for bend in _BENDS), key=lambda pair: pair[1])


def _pace(points: Sequence[Point]) -> float:
    return (points[-1].level - points[0].level) / max(points[-1].t - points[0].t, 1e-9)


def _worth(slow: Sequence[Point], fast: Sequence[Point]) -> float:
    """Seconds in which ``fast`` would have brought what ``slow`` did: slow growth tells so much of fast growth."""
    return (slow[-1].level - slow[0].level) / max(_pace(fast), 1e-9)


def _changes_pace(points: Sequence[Point], knot: int) -> bool:
    before, after = _pace(points[: knot + 1]), _pace(points[knot:])
    return max(before, after) > 1.5 * min(before, after)


def _off_line(points: Sequence[Point]) -> float:
    """Root mean square distance of the points from the line between their ends, in parts of the growth."""
    return _off_curve(points, 0.0)


def _off_curve(points: Sequence[Point], bend: float) -> float:
    begin, end = points[0], points[-1]
    span, gained = max(end.t - begin.t, 1e-9), max(end.level - begin.level, 1e-9)
    inner = points[1:-1]
    square = sum(
        ((point.level - begin.level) / gained - _shape(bend, (point.t - begin.t) / span)) ** 2 for point in inner
    )
    return math.sqrt(square / max(len(inner), 1))


def _shape(bend: float, share: float) -> float:
    """Growth after ``share`` of the time, when the pace changes by the factor e^bend over all of it."""
    return share if bend == 0.0 else math.expm1(bend * share) / math.expm1(bend)


def _best_knot(points: Sequence[Point], settings: Settings) -> tuple[float, int | None]:
    """Where two straight pieces fit best: their distance from the points, and the index of the knot."""
    best, found = math.inf, None
    gained = points[-1].level - points[0].level
    for knot in range(2, len(points) - settings.steps):
        parts = (points[: knot + 1], points[knot:])
        square = sum(
            (_off_line(part) * (part[-1].level - part[0].level) / gained) ** 2 * (len(part) - 2) for part in parts
        )
        off = math.sqrt(square / (len(points) - 2))
        if off < best:
            best, found = off, knot
    return best, found


def _stated(stretch: _Stretch, now: float, curve: Curve, settings: Settings) -> Trend | None:
    points, bend = stretch.points, stretch.bend
    steps = sum(point.steps for point in points[1:])
    begin, end = points[0], points[-1]._replace(t=points[-1].t + stretch.paused_s)
    gained, span = end.level - begin.level, end.t - begin.t
    moved = curve.moved_t if curve.high >= _WALL * curve.capacity else end.t
    still = max(settings.stopped * stretch.pause_s, AGAIN * stretch.longest_s)
    if steps < settings.steps or now - max(moved, end.t) > still + curve.sampling_s / 2:
        return None
    largest = max((b.level - a.level) / b.steps for a, b in pairwise(points))
    if span <= 0 or largest > settings.biggest * gained:
        return None
    mean, by_step = gained / steps, bend / steps
    pace = 1.0 if bend == 0.0 else bend * math.exp(bend) / math.expm1(bend)
    step = mean * pace * (1.0 if by_step == 0.0 else math.expm1(by_step) / by_step)
    return Trend(
        gained_bytes=gained,
        lasted_s=now - begin.t,
        steps=steps,
        step_bytes=step,
        interval_s=span / steps,
        seen_s=now - begin.t,
        since_s=now - end.t,
        overdue=now - end.t > 1.1 * span / steps + curve.sampling_s / 4,
        bend=by_step,
        steady_step_bytes=mean,
    )
