"""Growth that pauses and goes on is one growth; growth that rests ever longer, or for good, is over."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise

import pytest

from gpuconsole.gpu.forecast import Forecaster
from gpuconsole.gpu.forecast_loading import Point
from gpuconsole.gpu.forecast_model import MemorySample, Subject
from gpuconsole.gpu.forecast_pauses import without_pauses
from gpuconsole.gpu.state import MemoryState
from tests.forecast.curves import Sketch

ALARMS = {MemoryState.RISK, MemoryState.CRITICAL}


def alarms(samples: Sequence[MemorySample], every: float, until: float) -> list[tuple[float, float | None]]:
    """When each alarm for the GPU rose and fell; None while it stands."""
    forecaster, taken, found = Forecaster(), -every, list[tuple[float, float | None]]()
    for sample in samples:
        if sample.t - taken < every - 0.1 or sample.t > until:
            continue
        taken = sample.t
        stands = any(each.state in ALARMS for each in forecaster.feed(sample) if each.subject is Subject.GPU)
        if stands and (not found or found[-1][1] is not None):
            found.append((sample.t, None))
        elif not stands and found and found[-1][1] is None:
            found[-1] = found[-1][0], sample.t
    return found


def pausing(seed: int, *, until: float = 1e9) -> Sketch:
    """Equal steps in bursts of five to ten, with a rest of four to six usual gaps after each."""
    pick = random.Random(seed)
    s = Sketch(seed).load(pick.uniform(60, 90), 4, 0.5).rest(3)
    step, gap, burst = pick.uniform(1.2, 1.8), pick.uniform(0.8, 1.2), pick.randint(5, 10)
    while s.oom_t is None and s.level + step <= until:
        s.leak(step, gap, jitter=0.1, steps=burst, until=until).rest(gap * pick.uniform(4, 6))
    return s


@pytest.mark.parametrize("every", [0.5, 1.0])
def test_a_leak_that_pauses_again_and_again_is_announced_and_the_alarm_stands(every: float) -> None:
    leads, fell = [], 0
    for seed in range(20):
        s = pausing(seed)
        assert s.oom_t is not None
        assert s.loaded_t is not None
        raised = alarms(s.samples(), every, s.oom_t)
        assert raised, seed
        assert raised[-1][1] is None, f"seed {seed}: the alarm had fallen when memory ran out"
        leads.append((s.oom_t - raised[-1][0]) / (s.oom_t - s.loaded_t))
        fell += len(raised) - 1
    assert sorted(leads)[len(leads) // 2] >= 0.3
    assert fell <= len(leads) / 4, "most alarms outlast the pauses"


@pytest.mark.parametrize("every", [0.5, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_a_leak_that_paused_and_then_stops_is_over(every: float, seed: int) -> None:
    s = pausing(seed, until=130.0).rest(60)
    raised = alarms(s.samples(), every, s.t)
    assert all(fell is not None for _, fell in raised)


def points(gaps: Sequence[float], start: float = 0.0) -> list[Point]:
    times = [start]
    for gap in gaps:
        times.append(times[-1] + gap)
    return [Point(t, 10.0 + number, int(number > 0)) for number, t in enumerate(times)]


def test_only_pauses_are_cut_out_and_each_down_to_the_usual_gap() -> None:
    cut, seconds, longest = without_pauses(points([5, 1, 1, 1, 6, 1, 1, 1, 9, 1, 1]), 0.25)
    assert [b.t - a.t for a, b in pairwise(cut)] == [5, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]
    assert seconds == 5 + 8
    assert longest == 9


@pytest.mark.parametrize(
    "gaps",
    [
        [1, 1, 1, 1, 1, 1, 1],
        [9, 1, 1, 1, 1, 1],  # the rest before growth is none of it
        [1, 1, 2, 4, 8, 16, 32],  # it dies away
        [1, 1, 1, 1, 9],  # nobody knows yet whether it comes back
        [1, 1, 1, 9, 1, 9, 1],  # nothing usual about it
        [1, 1],
    ],
)
def test_what_is_no_pause_stays(gaps: list[float]) -> None:
    given = points(gaps)
    assert without_pauses(given, 0.25) == (given, 0.0, 0.0)


def test_growth_that_went_on_while_nobody_looked_is_no_pause() -> None:
    before, after = points([1] * 6), points([1] * 5, start=12)
    given = [*before, *(each._replace(level=each.level + 12, steps=1) for each in after)]
    assert without_pauses(given, 0.25) == (given, 0.0, 0.0)


@pytest.mark.parametrize("every", [0.5, 1.0, 2.0])
@pytest.mark.parametrize(
    ("base", "step", "gap", "steps"), [(88, 13.3, 2.0, 3), (60, 9.8, 2.5, 8), (40, 24.0, 3.0, 4), (100, 4.3, 2.0, 9)]
)
def test_memory_that_comes_and_goes_at_the_top_is_an_alarm_once_at_most(
    every: float, base: float, step: float, gap: float, steps: int
) -> None:
    """Its first climb looks like a leak until it ends; the next ones do not."""
    s = Sketch(1).load(base, 4, 0.5).rest(8)
    for _ in range(15):
        s.leak(step, gap, steps=steps)
        s.level = base
        s.rest(8)
    assert len(alarms(s.samples(), every, s.t)) <= 1
