"""Whether growth of RAM or of a ``/dev/shm`` may be a load that ends by itself, as a data set that is read into memory.

Seen while it lasts, an even load and an even leak are the same line. What tells is what was there before: a container's
leak is slower than what was loaded before it, and soon has lasted longer than the calm between; and no load lasts for
ever. Until that holds growth is worth watching and no alarm, unless next to nothing is left.
"""

from __future__ import annotations

from gpuconsole.gpu.forecast_curve import Curve
from gpuconsole.gpu.forecast_loading import Point
from gpuconsole.gpu.forecast_model import Settings, Subject, Trend

_LOADED = 0.15
"""Of the capacity: so much was loaded, or nothing."""
_LITTLE = 0.1
"""Of the growth: as much as this before the rest of it, or after, may be chance."""


def may_be_load(
    curve: Curve, trend: Trend, subject: Subject, left_bytes: float, sampling_s: float, settings: Settings
) -> bool:
    """Whether growth so new, and so fast beside what went before, is a load as likely as a leak.

    Args:
        curve: The memory.
        trend: Its growth.
        subject: Whose it is. A host has many programs: whatever it loaded before says nothing of the next.
        left_bytes: What is not in use.
        sampling_s: Seconds from one sample to the next.
        settings: The forecast's numbers.
    """
    growth = curve.growth()
    if trend.cyclic or len(growth) < 2 or left_bytes <= settings.scarce * curve.capacity:
        return False
    base, gained = growth[0], growth[-1].level - growth[0].level
    grown_s = min(gained / trend.rate_bytes_s, _lasted(growth, trend))  # what came slower counts at the pace of now
    if grown_s >= settings.load_samples * sampling_s:
        return False
    if subject is Subject.HOST:
        return True
    before = curve.points[: (curve.base or 0) + 1]
    if base.level - before[0].level >= _LOADED * curve.capacity:
        slower = trend.rate_bytes_s < settings.settled * _loaded_at(before, sampling_s)
    else:  # nothing was seen to be loaded; a /dev/shm needs no load before it fills
        slower = subject is Subject.SHM
    if not slower:
        return True
    calm_since = next(point.t for point in before if point.level >= base.level - _LITTLE * gained)
    return curve.last_t - calm_since - grown_s > grown_s


def _lasted(growth: list[Point], trend: Trend) -> float:
    """Seconds that growth took, by all but the first and the last of it."""
    base, gained = growth[0], growth[-1].level - growth[0].level
    begun = [point.t for point in growth[1:] if point.level <= base.level + _LITTLE * gained]
    began = begun[-1] if begun else max(base.t, growth[1].t - trend.interval_s)
    done = next(point.t for point in growth if point.level >= growth[-1].level - _LITTLE * gained)
    return (done - began) / (1 - 2 * _LITTLE if begun else 1 - _LITTLE)


def _loaded_at(points: list[Point], sampling_s: float) -> float:
    """Bytes a second of the fastest stretch that brought half of what was loaded.

    Seen between samples, it may have been a sample shorter than it looked.
    """
    end, rise = points[-1], points[-1].level - points[0].level
    spans = [(end.level - each.level, end.t - each.t) for each in points[:-1] if end.level - each.level >= rise / 2]
    return max((gain / max(span - sampling_s, sampling_s / 2) for gain, span in spans if gain > 0), default=0.0)
