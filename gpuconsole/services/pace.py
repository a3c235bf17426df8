"""How fast something goes on now, and how long the rest takes at that."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

_SPAN_S = 10.0
"""What counts as now."""
_SHORTEST_S = 1.0
"""Of less a rate would be a guess."""


class Pace:
    """The rate of a count that grows.

    Args:
        clock: Seconds that only grow.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._marks: deque[tuple[float, int]] = deque()

    def reached(self, count: int) -> float | None:
        """Note that it stands at ``count``; the rate per second, None as long as too little was seen."""
        now = self._clock()
        marks = self._marks
        if marks and count < marks[-1][1]:  # begun again
            marks.clear()
        # A few marks a second are enough, however often it is told.
        if len(marks) > 1 and now - marks[-2][0] < 0.2:
            marks[-1] = (now, count)
        else:
            marks.append((now, count))
        while len(marks) > 2 and now - marks[1][0] >= _SPAN_S:
            marks.popleft()
        then, before = marks[0]
        return (count - before) / (now - then) if now - then >= _SHORTEST_S else None


def left_s(remaining: int, rate: float | None) -> float | None:
    """Seconds for ``remaining`` at ``rate``; None when nothing moves or the rate is not known."""
    if remaining <= 0:
        return 0.0
    return remaining / rate if rate else None
