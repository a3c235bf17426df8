"""Whatever the readings are, the forecast says something that can be true, and never fails."""

from __future__ import annotations

import math

from hypothesis import example, given, settings
from hypothesis import strategies as st

from gpuconsole.gpu.forecast import Forecaster
from gpuconsole.gpu.forecast_model import GpuMemory, MemorySample, PoolMemory, ProcessMemory, Subject
from gpuconsole.gpu.state import MemoryState

TOTAL = 10_000
sizes = st.one_of(st.none(), st.integers(0, TOTAL), st.sampled_from([0, 1, TOTAL - 1, TOTAL, 3 * TOTAL]))
processes = st.one_of(
    st.none(), st.lists(st.builds(ProcessMemory, pid=st.integers(1, 3), memory_bytes=sizes), max_size=4).map(tuple)
)
gpus = st.builds(
    GpuMemory,
    index=st.integers(0, 1),
    total_bytes=st.sampled_from([None, 0, TOTAL, TOTAL, TOTAL, TOTAL]),
    used_bytes=sizes,
    free_bytes=sizes,
    utilization_pct=st.one_of(st.none(), st.integers(0, 100)),
    processes=processes,
)
pools = st.builds(
    PoolMemory,
    subject=st.sampled_from([Subject.CONTAINER, Subject.HOST, Subject.SHM]),
    id=st.sampled_from(["a", "b"]),
    name=st.just("x"),
    used_bytes=sizes,
    limit_bytes=st.sampled_from([None, 0, TOTAL, TOTAL, TOTAL]),
)
steps = st.one_of(st.sampled_from([1e-6, 0.5, 1.0, 1e7]), st.floats(1e-3, 100))


def check(samples: list[MemorySample]) -> None:
    forecaster = Forecaster()
    for sample in samples:
        for each in forecaster.feed(sample):
            assert each.why
            assert isinstance(each.state, MemoryState)
            assert each.eta_s is None or (each.eta_s >= 0 and math.isfinite(each.eta_s))
            assert each.rate_bytes_s is None or each.rate_bytes_s >= 0


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(steps, st.lists(gpus, max_size=2), st.lists(pools, max_size=2)), max_size=40))
def test_any_readings(drawn: list[tuple[float, list[GpuMemory], list[PoolMemory]]]) -> None:
    t, samples = 0.0, []
    for step, some_gpus, some_pools in drawn:
        t += step
        samples.append(MemorySample(t, tuple(some_gpus), tuple(some_pools)))
    check(samples)


@settings(max_examples=80, deadline=None)
@example([(1e-6, 0), (1e-6, -201), (1e-6, 212), (1e-6, 11), (1e-6, 11)], 402)
@given(st.lists(st.tuples(steps, st.integers(-3_000, 900)), min_size=5, max_size=200), st.integers(0, TOTAL))
def test_any_walk_of_one_process(walk: list[tuple[float, int]], level: int) -> None:
    t, samples = 0.0, []
    for step, change in walk:
        t += step
        level = min(max(level + change, 0), TOTAL)
        held = (ProcessMemory(7, level),) if level else ()
        samples.append(MemorySample(t, (GpuMemory(0, TOTAL, level, TOTAL - level, 90, held),)))
    check(samples)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.floats(0.1, 5), st.floats(0, 400)), min_size=30, max_size=120))
def test_any_growth(rises: list[tuple[float, float]]) -> None:
    t, level, samples = 0.0, 2_000.0, []
    for step, rise in rises:
        t += step
        level = min(level + rise, TOTAL)
        samples.append(MemorySample(t, (), (PoolMemory(Subject.CONTAINER, "c", "x", int(level), TOTAL),)))
    check(samples)
