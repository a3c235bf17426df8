"""What stands below a chart: the time of its columns, and marks where something happened."""

from __future__ import annotations

import time
from collections.abc import Sequence

from gpuconsole.tui.present.cell import Cell
from gpuconsole.tui.present.chart import LEFT, Line, Times

_STEPS_S = (5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200)
"""Between two labels of the axis."""
_APART = 3
"""Cells between two labels at least."""
_NOW = "now"
_BESIDE = (0, 1, 2, -1, -2)
"""Where a sign goes whose column is taken."""


def clock(at: float, *, seconds: bool = False) -> str:
    """A moment as a clock on this machine shows it."""
    return time.strftime("%H:%M:%S" if seconds else "%H:%M", time.localtime(at))


def axis(times: Times) -> Line:
    """Round moments below their columns, and where now is."""
    row = [" "] * times.width
    now = times.past - len(_NOW)
    row[now : times.past] = _NOW
    taken = (now - _APART + 1, times.past + _APART - 1) if now >= 0 else (0, times.width)
    step = _step(times)
    offset = time.localtime(times.end).tm_gmtoff
    first = int((times.begins + offset) // step) + 1
    last = int((times.end + (times.ahead + 1) * times.each_s + offset) // step)
    free = 0
    for number in range(first, last + 1):
        at = number * step - offset
        text = f"└{clock(at, seconds=step < 60)}"
        begin = times.place(at)
        end = begin + len(text)
        if begin < free or end > times.width or (begin < taken[1] and end > taken[0]):
            continue
        row[begin:end] = text
        free = end + 1
    return (Cell(" " * LEFT), Cell("".join(row), "dim"))


def _step(times: Times) -> int:
    for step in _STEPS_S:
        room = step / times.each_s
        if room >= (9 if step < 60 else 6) + _APART:
            return step
    return _STEPS_S[-1]


def marks(spans: Sequence[tuple[str, float, float | None]], times: Times) -> Line:
    """A sign where something happened, and a line where it lasted.

    Args:
        spans: Sign, beginning and end of each; the end is None for what has no length.
        times: Which time the columns stand for.
    """
    row = [" "] * times.past
    for _, since, until in spans:
        if until is not None:
            first, last = max(0, times.place(since)), min(times.past - 1, times.place(until))
            row[first : last + 1] = "─" * max(0, last + 1 - first)
    signed: set[int] = set()
    for sign, since, _ in spans:
        place = max(0, times.place(since))
        near = (place + step for step in _BESIDE if 0 <= place + step < times.past)
        free = next((each for each in near if each not in signed), None)
        if free is not None:
            row[free] = sign
            signed.add(free)
    return (Cell(" " * LEFT), Cell("".join(row), "accent"), Cell(" " * (times.width - times.past)))
