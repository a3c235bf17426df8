"""When memory is full if growth goes on: what is worked out at once is what step by step comes to."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuconsole.gpu.forecast_ahead import full_in
from gpuconsole.gpu.forecast_model import Trend

MIB = 2.0**20


def step_by_step(trend: Trend, room: float, *, straight: bool) -> float | None:
    size = trend.steady_step_bytes if straight else trend.step_bytes
    at = max(trend.interval_s - trend.since_s, 0.0)
    for _ in range(4000):
        room -= size
        if room < 0:
            return at
        size *= 1.0 if straight else math.exp(trend.bend)
        at += trend.interval_s
    return None


@given(
    size=st.floats(1, 100), mean=st.floats(1, 100), bend=st.just(0.0) | st.floats(-1, 1), every=st.floats(0.1, 60),
    since=st.floats(0, 90), steps=st.floats(0.1, 199), straight=st.booleans(),
)  # fmt: skip
def test_one_that_grows(
    size: float, mean: float, bend: float, every: float, since: float, steps: float, straight: bool
) -> None:
    trend = Trend(1.0, 1.0, 5, size * MIB, every, since, 1.0, bend=bend, steady_step_bytes=mean * MIB)
    room = steps * (mean if straight else size) * MIB * 0.9999997
    expected = step_by_step(trend, room, straight=straight)
    found = full_in([trend], room, straight=straight)
    assert (found is None) == (expected is None)
    if found is not None and expected is not None:
        # A step that needs exactly what is left may be the one or the next by rounding.
        assert found == pytest.approx(expected, abs=1.01 * every)
