"""Times and their statistics, on clocks that say what the test wants."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuconsole.probes.payload.bench import timing
from gpuconsole.probes.payload.bench.lanes import Lane, drive
from gpuconsole.probes.payload.bench.timing import Clock, Timing, quantile, steady, timed
from tests.payload.bench.pretended import pretended

torch = pytest.importorskip("torch")


class Scripted(Clock):
    """Gives each iteration the next time, and each window the next pace."""

    def __init__(self, times: list[float], paces: list[float] | None = None) -> None:
        self.times = iter(times)
        self.paces = iter(paces or [])
        self.windows = 0
        self.inner = 0

    def samples(
        self, fn: Callable[[], object], count: int, *, inner: int, flush: Callable[[], object] | None
    ) -> list[float]:
        self.inner = inner
        taken = []
        for _ in range(count):
            if flush is not None:
                flush()
            taken.append(next(self.times))
        return taken

    def pace_ms(self, fn: Callable[[], object], seconds: float) -> float:
        self.windows += 1
        return next(self.paces)


def scripted(monkeypatch: pytest.MonkeyPatch, clock: Scripted) -> Scripted:
    monkeypatch.setattr(timing, "clock_of", lambda torch, device: clock)
    return clock


def test_statistics_are_those_of_the_sorted_times() -> None:
    stat = Timing([5.0, 1.0, 4.0, 2.0, 3.0]).stat()
    assert stat == {"median_ms": 3.0, "p20": 1.8, "p80": 4.2, "min": 1.0, "max": 5.0, "n": 5, "riqr": 0.6667}


@given(st.lists(st.floats(0.001, 1e6), min_size=1, max_size=50), st.floats(0, 1))
def test_a_quantile_lies_within(values: list[float], share: float) -> None:
    ordered = sorted(values)
    assert ordered[0] * (1 - 1e-9) <= quantile(ordered, share) <= ordered[-1] * (1 + 1e-9)
    assert quantile(ordered, 0.0) == ordered[0]
    assert quantile(ordered, 1.0) == pytest.approx(ordered[-1])


def test_a_wide_spread_and_too_few_iterations_are_noisy() -> None:
    assert not Timing([10.0] * 20).noisy
    assert not Timing([10.0, 10.1, 9.9, 10.2] * 5).noisy
    assert Timing([10.0, 12.0, 8.0, 10.5] * 5).noisy
    assert Timing([10.0] * 19).noisy


def test_one_slow_iteration_moves_neither_median_nor_spread() -> None:
    assert Timing([10.0] * 40 + [900.0]).median_ms == 10.0
    assert not Timing([10.0] * 40 + [900.0]).noisy


def test_the_first_call_is_apart_and_twenty_iterations_are_the_least(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = scripted(monkeypatch, Scripted([1000.0] * 3 + [7.0] * 20))
    calls: list[int] = []
    found = timed(torch, lambda: calls.append(1), device="cpu", min_s=0.0, most_s=60.0)
    assert len(calls) == 1  # all others are the clock's
    assert found.samples_ms == [7.0] * 20
    assert found.cold_s is not None
    assert found.began is not None
    assert found.ended is not None
    assert found.ended >= found.began
    assert clock.inner == 1


def test_when_the_time_is_over_five_iterations_are_enough_and_noisy(monkeypatch: pytest.MonkeyPatch) -> None:
    scripted(monkeypatch, Scripted([1000.0] * 3 + [7.0] * 20))
    found = timed(torch, lambda: None, device="cpu", min_s=0.0, most_s=0.0)
    assert found.samples_ms == [7.0] * 5
    assert found.noisy


def test_what_is_too_short_for_an_event_is_called_many_times(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = scripted(monkeypatch, Scripted([0.01] * 3 + [0.01] * 1000))
    found = timed(torch, lambda: None, device="cpu", min_s=0.0, inner=0)
    assert clock.inner * 0.01 >= 0.2
    assert found.inner == clock.inner


def test_it_warms_up_until_three_windows_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cold card is quicker: its first windows must not be where the timing begins."""
    clock = scripted(monkeypatch, Scripted([1.0] * 500, [8.0, 8.5, 9.0, 9.4, 9.5, 9.5, 9.5, 1.0]))
    timed(torch, lambda: None, device="cpu", min_s=0.0, heat_s=60.0)
    assert clock.windows == 6


def test_without_time_to_warm_up_it_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = scripted(monkeypatch, Scripted([1.0] * 500))
    assert timed(torch, lambda: None, device="cpu", min_s=0.0).heat_s < 1.0
    assert clock.windows == 0


@pytest.mark.parametrize(
    ("paces", "yes"),
    [([], False), ([1.0, 1.0], False), ([1.0, 1.0, 1.0], True), ([1.0, 1.01, 1.019], True), ([1.0, 1.0, 1.03], False),
     ([9.0, 1.0, 1.0, 1.0], True)],
)  # fmt: skip
def test_steady_means_the_last_three_agree_within_2_percent(paces: list[float], yes: bool) -> None:
    assert steady(paces) is yes


def test_the_cache_is_emptied_before_every_iteration_and_outside_its_time() -> None:
    order: list[str] = []
    times = Clock().samples(lambda: order.append("work"), 3, inner=2, flush=lambda: order.append("flush"))
    assert order == ["flush", "work", "work"] * 3
    assert len(times) == 3


def test_a_clock_by_events_counts_every_call(monkeypatch: pytest.MonkeyPatch) -> None:
    with pretended(monkeypatch):
        clock = timing.clock_of(torch, "cuda:0")
        calls: list[int] = []
        assert len(clock.samples(lambda: calls.append(1), 4, inner=3, flush=None)) == 4
        assert len(calls) == 12
        calls.clear()
        assert clock.pace_ms(lambda: calls.append(1), 0.0) > 0
        assert calls


def test_lanes_are_all_kept_busy_and_each_result_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    with pretended(monkeypatch, count=2):
        work: dict[str, int] = {"cuda:0": 0, "cuda:1": 0, "looked": 0}

        def lane(device: str) -> Lane:
            def fn() -> None:
                work[device] += 1

            def after() -> None:
                work["looked"] += 1

            return Lane(torch, device, fn, chunk=5, after=after)

        lanes = [lane("cuda:0"), lane("cuda:1")]
        drive(lanes, 0.0)
    for one in lanes:
        assert work[one.device] == 5 * len(one.samples_ms) > 0
    assert work["looked"] == sum(len(one.samples_ms) for one in lanes)
    assert [one.position for one in lanes] == [0, 1]
