"""Where loading ended and growth began, told from the steps of a memory's high-water mark."""

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


class Point(NamedTuple):
    """The high-water mark rose to ``level``."""

    t: float
    level: float
    steps: int = 1
    """Steps merged in this one."""


@dataclass(frozen=True, slots=True)
class Past:
    """How a memory was seen."""

    born: bool
    """From its beginning; else it was there before anything was seen."""
    rest_settles: bool
    """A rest ends loading, however fast growth goes on afterwards."""
    sampling_s: float
    """Seconds between samples: a rise may have been as much shorter than it looked."""


def loading_end(points: Sequence[Point], past: Past, settings: Settings) -> int | None:
    """Index of the point at which loading ended, None while all growth may still be loading.

    What comes after must be far slower than the fastest stretch that brought at least half of the memory there was;
    after a rest twice as long as those between later steps, half as much slower will do. And loading breaks off: the
    last of it came faster than what follows.
    """
    sharpness: dict[int, float] = {}
    for index in range(len(points) - settings.steps):
        sharp = _sharpness(points, index, past, settings)
        if sharp is not None:
            sharpness[index] = sharp
    if not sharpness:
        return None
    sharpest = max(sharpness.values())
    return max(index for index, sharp in sharpness.items() if sharp * _AS_GOOD >= sharpest)


def _sharpness(points: Sequence[Point], index: int, past: Past, settings: Settings) -> float | None:
    """How many of the first later steps came at once before a point; None if loading did not end there."""
    base, end = points[index], points[-1]
    gap = median((b.t - a.t) / b.steps for a, b in pairwise(points[index:]))
    if gap <= 0:
        return None
    rest = (points[index + 1].t - base.t) / gap
    if past.rest_settles and rest - past.sampling_s / gap >= _LONG_REST:  # a step may be seen a sample late
        return _RESTED * rest
    step = median((b.level - a.level) / max(b.steps, 1) for a, b in pairwise(points[index : index + 4]))
    if index == 0:
        return _seen_from_its_middle(points, gap, step, past, settings)
    pace = _pace_before(points[: index + 1], gap, past)
    if pace <= 0 or step <= 0 or end.t <= base.t:
        return None  # what fell, or came between two samples, has no pace
    slowness = (end.level - base.level) / (end.t - base.t) / pace / min(max(rest, 1.0), 2.0)
    if slowness >= settings.settled:
        return None
    before = next(
        (p.level for p in reversed(points[:index]) if base.t - p.t >= gap / 2 + past.sampling_s), points[0].level
    )
    sharp = (base.level - before) / step
    return sharp if sharp >= _BREAK else None


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
