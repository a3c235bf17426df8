"""When memory is full if growth goes on as it does: steps of all that grow, one after the other."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence

from gpuconsole.gpu.forecast_model import Trend

_FAR = 4000
"""Steps looked ahead."""


def full_in(trends: Sequence[Trend], room: float, *, straight: bool = False) -> float | None:
    """Seconds until the steps of all ``trends`` together need more than ``room``; None when they never will.

    Args:
        trends: What grows.
        room: Bytes that are left for it.
        straight: Let each go on with its mean step, as if it did not bend.
    """
    queue = [(_next(trend), index) for index, trend in enumerate(trends)]
    heapq.heapify(queue)
    waits = [trend.interval_s for trend in trends]
    sizes = [trend.steady_step_bytes if straight else trend.step_bytes for trend in trends]
    rate = sum(size / trend.interval_s for size, trend in zip(sizes, trends, strict=True))
    if (straight or all(trend.bend == 0.0 for trend in trends)) and room > 200 * max(sizes):
        return room / rate if rate > 0 else None
    factors = [1.0 if straight else math.exp(trend.bend) for trend in trends]
    if all(factor < 1.0 for factor in factors):
        ever = sum(size / (1.0 - factor) for size, factor in zip(sizes, factors, strict=True))
        if ever <= room:
            return None
    if len(trends) == 1 and trends[0].drift_s == 0.0 and sizes[0] > 0:
        steps = _steps_until(room, sizes[0], factors[0])
        return None if steps > _FAR else queue[0][0] + (steps - 1) * waits[0]
    for _ in range(_FAR):
        at, index = heapq.heappop(queue)
        room -= sizes[index]
        if room < 0:
            return max(at, 0.0)
        sizes[index] *= factors[index]
        waits[index] += trends[index].drift_s
        heapq.heappush(queue, (at + waits[index], index))
    return None


def _steps_until(room: float, size: float, factor: float) -> int:
    """How many steps need more than ``room``, each larger than the one before by ``factor``."""
    if room < size:
        return 1
    if abs(factor - 1.0) < 1e-9:
        return math.floor(room / size) + 1
    steps = math.floor(math.log1p(room * (factor - 1.0) / size) / math.log(factor)) + 1
    return max(steps, 1)


def _next(trend: Trend) -> float:
    """When the next step is due; an overdue one at any moment."""
    return max(trend.interval_s - trend.since_s, 0.0)
