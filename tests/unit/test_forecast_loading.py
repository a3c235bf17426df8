"""Where loading ends when growth goes on at its pace: told by what computes, and never while it may be loading."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from gpuconsole.gpu.forecast import changes
from gpuconsole.gpu.forecast_loading import Past, Point, loading_end
from gpuconsole.gpu.forecast_model import MemorySample, ProcessMemory, Settings
from gpuconsole.gpu.state import MemoryState
from gpuconsole.host.recorded import memory_samples
from tests.forecast.curves import CALM, GIB, Sketch, growing_at_once

ALARMS = {MemoryState.RISK, MemoryState.CRITICAL}
TWO_TENANTS = Path(__file__).parents[1] / "fixtures" / "two-tenants-h200.jsonl.gz"
SEEDS = range(8)


def thinned(samples: Sequence[MemorySample], seconds: float) -> list[MemorySample]:
    taken: list[MemorySample] = []
    for sample in samples:
        if not taken or sample.t - taken[-1].t >= seconds - 0.1:
            taken.append(sample)
    return taken


def raised(samples: Sequence[MemorySample]) -> list[float]:
    """When an alarm rose, or rose further."""
    return [t for t, each in changes(samples) if each.state in ALARMS]


def states(samples: Sequence[MemorySample]) -> list[tuple[str, str]]:
    return [(each.subject.value, each.state.value) for _, each in changes(samples)]


def beside(samples: Sequence[MemorySample], size: float, begins: float | None = None) -> list[MemorySample]:
    """The same with another process of so many GiB on the GPU; it computes from ``begins`` on, and nobody before."""
    told = []
    for sample in samples:
        gpu = sample.gpus[0]
        held = (*(gpu.processes or ()), ProcessMemory(8, int(size * GIB)))
        used = (gpu.used_bytes or 0) + int(size * GIB)
        free = (gpu.free_bytes or 0) - int(size * GIB)
        use = gpu.utilization_pct if begins is None else 99.0 if sample.t >= begins else 0.0
        told.append(
            MemorySample(
                sample.t, (replace(gpu, used_bytes=used, free_bytes=free, utilization_pct=use, processes=held),)
            )
        )
    return told


def told_busy(samples: Sequence[MemorySample], busy: float | None) -> list[MemorySample]:
    """The same with one utilisation all along."""
    return [replace(each, gpus=(replace(each.gpus[0], utilization_pct=busy),)) for each in samples]


@pytest.mark.parametrize("every", [0.5, 1.0, 2.0])
def test_growth_at_the_pace_of_loading_is_announced_once_it_computes(every: float) -> None:
    shown = 0
    for seed in SEEDS:
        sketch = growing_at_once(seed)
        assert sketch.oom_t is not None
        assert sketch.loaded_t is not None
        times = raised(thinned(sketch.samples(), every))
        assert not times or times[0] > sketch.loaded_t, seed
        steps = len({level for t, level, _ in sketch.points if t > sketch.loaded_t})
        if min(steps, (sketch.oom_t - sketch.loaded_t) / every) < 14:
            continue  # too short to be seen so seldom
        shown += 1
        assert times, seed
        assert times[0] < sketch.oom_t - every, seed
    assert shown >= 2


@pytest.mark.parametrize("every", [0.5, 1.0, 2.0])
def test_the_recorded_one_is_announced(every: float) -> None:
    """20 GiB loaded, then 7 GiB every 1.5 s until the H200 is full after 34.8 s."""
    samples = thinned(list(memory_samples(TWO_TENANTS)), every)
    told = [(t, each) for t, each in changes(samples) if each.state in ALARMS]
    assert {each.gpu for _, each in told} == {0}
    first = min(t for t, _ in told)
    assert first < 34.8 - 0.2 * (34.8 - 7.8)
    eta = next(each.eta_s for t, each in told if t == first)
    assert eta is not None
    assert first + eta == pytest.approx(34.8, abs=2 * every + 1)


@pytest.mark.parametrize("seed", SEEDS)
def test_it_scales_with_time_and_size(seed: int) -> None:
    samples = growing_at_once(seed)
    once = states(samples.samples())
    assert states(samples.samples(time=2)) == once
    assert states(samples.samples(time=4096)) == once
    assert states(samples.samples(size=2)) == once
    assert states(samples.samples(time=64, size=1 / 16)) == once


@pytest.mark.parametrize("every", [0.5, 1.0, 2.0, 5.0])
@pytest.mark.parametrize("busy", [None, 15.0, 40.0])
def test_without_a_change_of_what_computes_it_may_be_loading(busy: float | None, every: float) -> None:
    for seed in SEEDS:
        samples = thinned(CALM["sharded_load"](seed).samples(), every)
        assert not raised(told_busy(samples, busy)), seed


@pytest.mark.parametrize("every", [0.5, 1.0, 2.0])
def test_who_loads_beside_one_that_begins_to_compute_is_loading(every: float) -> None:
    for seed in SEEDS:
        sketch = CALM["sharded_load"](seed)
        assert sketch.loaded_t is not None
        begins = sketch.loaded_t * (0.2 + 0.08 * seed)
        samples = beside(sketch.samples(size=0.9), 8.0, begins)
        assert not raised(thinned(samples, every)), seed


def test_a_desktop_beside_it_hides_nothing() -> None:
    for seed in range(3, 6):
        alone = growing_at_once(seed).samples()
        assert bool(raised(alone)) == bool(raised(beside(alone, 1.0))), seed


def test_one_process_whose_memory_is_not_told_is_as_good_as_one_that_is() -> None:
    told = growing_at_once(3).samples()
    untold = [
        replace(
            each,
            gpus=(
                replace(
                    each.gpus[0],
                    processes=tuple(replace(held, memory_bytes=None) for held in each.gpus[0].processes or ()),
                ),
            ),
        )
        for each in told
    ]
    assert raised(told)
    assert raised(untold)


def test_what_computed_before_memory_was_given_back_is_no_loading() -> None:
    """Another model in the same process: its loading is told anew."""
    sketch = Sketch(3).computes(0).load(60, 4, 1.0).computes(97).rest(10)
    sketch.level = 2.0
    sketch.rest(2).computes(3).load(130, 40, 0.8, 0.1).computes(97).rest(10)
    for every in (0.5, 1.0, 2.0):
        assert not raised(thinned(sketch.samples(), every))


def loaded_and_then(step: float, resting: float, later: float) -> list[Point]:
    """Five shards of 10 GiB a second, a rest of five, and four steps; with what it computed in the rest and after."""
    points = [Point(float(t), 10.0 * t, min(t, 1)) for t in range(6)]
    busy_s = 5 * resting
    points.append(Point(10.0, 50 + step, busy_s=busy_s))
    return points + [Point(10.0 + n, 50 + step * (n + 1), busy_s=busy_s + n * later) for n in (1, 2, 3)]


@pytest.mark.parametrize(
    ("step", "resting", "later", "ended"),
    [
        (6.0, 0.0, 0.0, True),  # nobody knows what computes: the rest tells
        (6.0, 1.0, 1.0, True),
        (6.0, 1.0, 0.0, False),  # tried out, and the next model is read
        (6.0, 1.0, 0.1, False),
        (2.0, 1.0, 0.0, True),  # far slower than it loaded: growth, whatever computes
    ],
)
def test_what_is_read_after_a_model_was_tried_out_is_loading(
    step: float, resting: float, later: float, ended: bool
) -> None:
    points = loaded_and_then(step, resting, later)
    for scale in (1.0, 1024.0):
        scaled = [each._replace(t=scale * each.t, busy_s=scale * each.busy_s) for each in points]
        past = Past(True, False, scale, 140.0, quiet=scaled[-1])
        assert loading_end(scaled, past, Settings()) == (5 if ended else None)


def test_merged_shards_are_no_break() -> None:
    """Equal shards at one pace, the older ones merged as a curve does."""
    merged = [Point(0.0, 0.0, 0), Point(8.0, 16.0, 8), Point(16.0, 32.0, 8), Point(24.0, 48.0, 8)]
    points = merged + [Point(24.0 + n, 48.0 + 2.0 * n) for n in range(1, 20)]
    slower = merged + [Point(24.0 + 3 * n, 48.0 + 2.0 * n) for n in range(1, 20)]
    for samples in (points, slower):
        assert loading_end(samples, Past(True, False, 0.5, 140.0, quiet=samples[-1]), Settings()) is None


@pytest.mark.parametrize("every", [0.5, 1.0, 2.0])
def test_a_last_shard_far_larger_than_the_steps_after_it_is_no_growth(every: float) -> None:
    """However loading falls between the looks: what is loaded last never counts as the first step of growth."""
    for seed in range(20):
        s = Sketch(seed)
        s.load(100, 3, 0.9, 0.3).rest(2.0 + seed / 10).leak(1.6, 0.8)
        assert s.oom_t is not None
        assert s.loaded_t is not None
        first = raised(thinned(s.samples(), every))[0]
        assert 0.2 <= (s.oom_t - first) / (s.oom_t - s.loaded_t) <= 0.6, seed
