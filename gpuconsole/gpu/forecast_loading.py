"""Where loading ended and growth began, told from the steps of a memory's high-water mark and from what computed.

Growth that breaks off the loading's pace is told by its steps alone. Growth that goes on at about that pace is told by
the GPU: loading waits for a disk or a bus, and copies are no kernels, so hardly anything computes while it lasts;
training computes all the time. Only such a change tells: whoever computes from the first byte on may be loading still.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from gpuconsole.gpu.forecast_model import Settings

_LONG_REST = 1.0
"""Of the times between later steps: a rest so much longer than a sample settles what can settle by resting."""
_RESTED = 1e6
"""A rest that settles counts before everything else, the longest most."""
_BREAK = 3.2
"""So many later steps must have come at once where loading ended."""
_AS_GOOD = 1.6
"""Loading ends at the latest point that breaks off at most so much less sharply than the sharpest."""
_LOADED = 0.1
"""Of the capacity: what has loaded less before it computes may have yet to, as a rank that waits for its weights."""
_QUIET = 0.25
"""Utilisation, as a share, up to which loading is not taken for computing."""
_QUIET_FOR = 1.5
"""Of the time between later steps: so long it must have been quiet, since utilisation is told late and of some time."""
_COMPUTED = 0.8
"""Of the later steps: so many must have come while it computed, half of the time at least."""
_RESTS = 1.5
"""Samples from one step to the next from which on rests between them show."""
_RESTFUL, _RESTLESS = 6, 9
"""Steps that came while it computed, with rests between them, and without: a first slow pass through a model is a
climb without rests, and ends."""
_DIES_AWAY = 0.6
"""The later half of the steps came slower than the first by this: an allocator that finds its working set."""


_AT_WORK = 0.8
"""Of a rest: so much of it must have been computing to tell that loading was over by then."""
_WORKED_FOR = 3.0
"""Of the times between later steps: so long such a rest must be."""
_ALIKE = 3.0
"""Growth before and after a rest, at paces that differ by less, is one thing that paused: a model loaded in halves."""


class Point(NamedTuple):
    """The high-water mark rose to ``level``."""

    t: float
    level: float
    steps: int = 1
    """Steps merged in this one."""
    busy_s: float = 0.0
    """Seconds that it has computed until then, counted from anywhere."""


@dataclass(frozen=True, slots=True)
class Past:
    """How a memory was seen."""

    born: bool
    """From its beginning; else it was there before anything was seen."""
    rest_settles: bool
    """A rest ends loading, however fast growth goes on afterwards."""
    sampling_s: float
    """Seconds between samples: a rise may have been as much shorter than it looked."""
    capacity: float
    """Bytes there are in all."""
    quiet: Point
    """The sample until which it had computed least, beside half of the time: since then it computes, if it does."""


def loading_end(points: Sequence[Point], past: Past, settings: Settings) -> int | None:
    """Index of the point at which loading ended, None while all growth may still be loading.

    What comes after must be far slower than the fastest stretch that brought at least half of the memory there was;
    after a rest twice as long as those between later steps, half as much slower will do. And loading breaks off: the
    last of it came faster than what follows. Where nothing breaks off, it ended when computing began, or at the latest
    when it had computed for long without any growth, or before anybody looked.
    """
    sharpness: dict[int, float] = {}
    for index in range(len(points) - settings.steps):
        sharp = _sharpness(points, index, past, settings)
        if sharp is not None:
            sharpness[index] = sharp
    if not sharpness:
        told = (_computing_began(points, past), _worked(points, past, settings), _at_work_when_found(points, past))
        return next((index for index in told if index is not None), None)
    sharpest = max(sharpness.values())
    end = max(index for index, sharp in sharpness.items() if sharp * _AS_GOOD >= sharpest)
    while end + 1 in sharpness and _is_loaded_next(points, end, past, settings):
        end += 1
    return end


def _is_loaded_next(points: Sequence[Point], index: int, past: Past, settings: Settings) -> bool:
    """Whether the step after a point is loading too: far larger than those after it, and at loading's pace."""
    base, following = points[index], points[index + 1]
    step = _step(points[index : index + 4])
    rise, lasted = following.level - base.level, following.t - base.t - past.sampling_s / 2
    pace = _pace_before(points[: index + 1], _gap(points[index:]), past)
    return rise >= _BREAK * following.steps * step and rise >= settings.settled * pace * lasted


def _sharpness(points: Sequence[Point], index: int, past: Past, settings: Settings) -> float | None:
    """How many of the first later steps came at once before a point; None if loading did not end there."""
    base, end = points[index], points[-1]
    gap = _gap(points[index:])
    if gap <= 0:
        return None
    following = points[index + 1]
    rest = (following.t - base.t) / gap - max(following.steps - 1, 0)
    if past.rest_settles and rest - past.sampling_s / gap >= _LONG_REST:  # a step may be seen a sample late
        return _RESTED * rest
    step = _step(points[index : index + 4])
    if index == 0:
        return _seen_from_its_middle(points, gap, step, past, settings)
    pace = _pace_before(points[: index + 1], gap, past)
    if pace <= 0 or step <= 0 or end.t <= base.t:
        return None  # what fell, or came between two samples, has no pace
    sure = rest - past.sampling_s / gap / 2  # seen between two samples, it looks longer or shorter than it is
    lasted = end.t - base.t
    if _grows_quietly(points[index:]):  # what it computed in between was no loading: a model was tried out, perhaps
        sure -= (following.busy_s - base.busy_s) / gap
        lasted = max(lasted - (end.busy_s - base.busy_s), gap)
    slowness = (end.level - base.level) / lasted / pace / min(max(sure, 1.0), 2.0)
    if slowness >= settings.settled:
        return None
    sharp = (base.level - _level_at(base.t - gap / 2 - past.sampling_s, points, index)) / step
    return sharp if sharp >= _BREAK else None


def _grows_quietly(points: Sequence[Point]) -> bool:
    """Whether most steps came while it did not compute."""
    quiet = sum(b.steps for a, b in pairwise(points) if b.busy_s - a.busy_s <= _QUIET * (b.t - a.t))
    return 2 * quiet >= sum(point.steps for point in points[1:])


def _level_at(t: float, points: Sequence[Point], last: int) -> float:
    """The mark at ``t``, no later than the point of index ``last``; merged steps are taken to have come evenly."""
    for index in range(last - 1, -1, -1):
        older, newer = points[index], points[index + 1]
        if older.t <= t:
            share = min((t - older.t) / max(newer.t - older.t, 1e-9), 1.0) if newer.steps > 1 else 0.0
            return older.level + share * (newer.level - older.level)
    return points[0].level


def _seen_from_its_middle(
    points: Sequence[Point], gap: float, step: float, past: Past, settings: Settings
) -> float | None:
    """As if what was there at first had been loaded in a dozen of the later steps' time."""
    start, end = points[0], points[-1]
    if past.born or start.level <= 0 or step <= 0 or end.t <= start.t:
        return None
    slowness = (end.level - start.level) / (end.t - start.t) * 12 * gap / start.level
    return start.level / step / 12 if slowness < settings.settled else None


def _pace_before(points: Sequence[Point], gap: float, past: Past) -> float:
    """Bytes a second of the fastest stretch that ends at the last point and brought half of it; 0 when none tells.

    Half of ``gap``, the time between later steps, is added to each stretch: its first step was under way for some time.
    """
    end = points[-1]
    least = (end.level - points[0].level) / 2
    spans = (
        (end.level - point.level, end.t - point.t - past.sampling_s / 2 + gap / 2)
        for point in points[:-1]
        if end.level - point.level >= least
    )
    return max((rise / span for rise, span in spans if span > 0), default=0.0)


def _computing_began(points: Sequence[Point], past: Past) -> int | None:
    """Index of the last point before it computed, after it had loaded without; None where no such change shows."""
    first, quiet = points[0], past.quiet
    index = sum(point.t <= quiet.t for point in points) - 1
    later = [quiet, *points[index + 1 :]]
    steps = sum(point.steps for point in later[1:])
    if index < 0 or steps < _RESTFUL or quiet.level < _LOADED * past.capacity:
        return None
    gap = _gap(later)
    if steps < _RESTLESS and gap < _RESTS * past.sampling_s:
        return None
    lasted = quiet.t - first.t
    if lasted < _QUIET_FOR * max(gap, past.sampling_s) or quiet.busy_s - first.busy_s > _QUIET * lasted:
        return None
    computed = sum(b.steps for a, b in pairwise(later) if b.busy_s - a.busy_s >= (b.t - a.t) / 2)
    if computed < _COMPUTED * steps:
        return None
    middle = later[len(later) // 2]
    return index if _pace(middle, later[-1]) >= _DIES_AWAY * _pace(quiet, middle) else None


def _worked(points: Sequence[Point], past: Past, settings: Settings) -> int | None:
    """Index of the last point at which it rested long, and computed meanwhile and from then on; None without such.

    So it is with what was loaded between two samples, or before anybody looked: its pace tells nothing.
    """
    for index in range(len(points) - 1 - settings.steps, -1, -1):
        base, following, *later = points[index:]
        gap = max(_gap([following, *later]), past.sampling_s)
        rest = following.t - base.t - past.sampling_s
        if rest < _WORKED_FOR * gap or following.steps > 1 or base.level < _LOADED * past.capacity:
            continue
        spans = [(b.t - a.t, b.busy_s - a.busy_s) for a, b in pairwise([base, following, *later])]
        if all(busy >= _AT_WORK * lasted for lasted, busy in spans):
            before, after = _pace(points[0], base) if index > 1 else 0.0, _pace(following, points[-1])
            return None if after / _ALIKE < before < after * _ALIKE else index
    return None


def _at_work_when_found(points: Sequence[Point], past: Past) -> int | None:
    """0 where it computed from the first look on, and rested between many steps: it was loaded before; else None."""
    first, last = points[0], points[-1]
    steps = sum(point.steps for point in points[1:])
    if past.born or steps < _RESTLESS or first.level < _LOADED * past.capacity:
        return None
    if last.busy_s - first.busy_s < _AT_WORK * (last.t - first.t):
        return None
    gap = _gap(points)
    return 0 if gap >= _RESTS * past.sampling_s else None


def _gap(points: Sequence[Point]) -> float:
    """Seconds from one step to the next."""
    return median((b.t - a.t) / b.steps for a, b in pairwise(points))


def _step(points: Sequence[Point]) -> float:
    """Bytes that one step brings."""
    return median((b.level - a.level) / max(b.steps, 1) for a, b in pairwise(points))


def _pace(a: Point, b: Point) -> float:
    return (b.level - a.level) / max(b.t - a.t, 1e-9)
