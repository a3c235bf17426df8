"""Growth that pauses and goes on, as a leak in training that rests while validation runs: its time without the pauses.

A pause is a rest between steps that come as they came before it. Growth that dies away rests ever longer, and does not
come back at its old pace; so a rest counts only with several usual gaps on both sides.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from gpuconsole.gpu.forecast_loading import Point

_PAUSE = 2.6
"""Of the usual gap between steps: a gap that is longer is a pause."""
_USUAL = 1.7
"""Of it: a gap beside a pause is no longer than this."""
_LARGER = 3.0
"""Of the usual step: what comes after a pause is no more than this."""
_BEFORE, _AFTER = 2, 2
"""Usual gaps that there must be right before and right after a pause."""
AGAIN = 1.3
"""Of the longest pause that growth came back from: one that lasts longer is its end."""


def without_pauses(points: Sequence[Point], sampling_s: float) -> tuple[list[Point], float, float]:
    """The points with each pause cut down to the usual gap, the seconds cut off, and the longest pause.

    Args:
        points: The first is where growth starts from; what rest there is before the first step is no pause.
        sampling_s: Seconds between samples: a gap may have been half of that shorter than it was seen.
    """
    gaps = [(b.t - a.t) / b.steps for a, b in pairwise(points)]
    if len(gaps) < 2 + _BEFORE + _AFTER:
        return list(points), 0.0, 0.0
    usual = median(gaps[1:])
    largest = _LARGER * median((b.level - a.level) / b.steps for a, b in pairwise(points))
    cut, longest = 0.0, 0.0
    kept = [points[0], points[1]]
    for index in range(1, len(gaps)):
        around = gaps[max(index - _BEFORE, 1) : index] + gaps[index + 1 : index + 1 + _AFTER]
        before, after = points[index : index + 2]
        single = after.steps == 1 and after.level - before.level <= largest  # else it grew meanwhile, unseen
        alike = len(around) == _BEFORE + _AFTER and max(around) <= _USUAL * usual + sampling_s
        near = sum(around) / max(len(around), 1)  # where steps are as close as samples, the median is off by some
        if single and alike and gaps[index] - sampling_s / 2 > _PAUSE * near:
            cut += gaps[index] - near
            longest = max(longest, gaps[index])
        kept.append(points[index + 1]._replace(t=points[index + 1].t - cut))
    return kept, cut, longest
