"""RAM and shm that are loaded raise no alarm; what leaks is announced all the same, however it begins."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import product

import pytest

from gpuconsole.gpu.forecast import changes
from gpuconsole.gpu.forecast_model import Assessment, MemorySample, PoolMemory, Subject
from gpuconsole.gpu.state import MemoryState
from tests.forecast.curves import GIB, Sketch

ALARMS = (MemoryState.RISK, MemoryState.CRITICAL)
EVERY = (0.5, 1.0, 2.0, 5.0)
POOLS = (Subject.HOST, Subject.CONTAINER, Subject.SHM)
LIMIT = 100.0
Course = Sequence[tuple[float, float]]
"""Seconds, and percent of the memory in use at their end; the first begins at its own level."""


def drawn(
    course: Course, every: float, subject: Subject, *, noise: float = 0.0, seed: int = 1, time: float = 1.0
) -> list[MemorySample]:
    """What somebody sees who looks so often; out of memory, the one who held it is gone."""
    pick = random.Random(seed)
    taken: list[MemorySample] = []
    t, begin, level = pick.uniform(0, every), 0.0, course[0][1]
    for seconds, to in course:
        while t < begin + seconds:
            used = level + (to - level) * (t - begin) / seconds + pick.gauss(0, noise)
            bytes_ = int((0.0 if used > LIMIT else max(used, 0.0)) * GIB)
            pool = PoolMemory(subject, "it", "it", bytes_, int(LIMIT * GIB))
            taken.append(MemorySample(time * t, (), (pool,)))
            t += every
        begin, level = begin + seconds, to
    return taken


def raised(samples: Sequence[MemorySample]) -> list[tuple[float, Assessment]]:
    return [(t, each) for t, each in changes(samples) if each.state in ALARMS]


def loads(base: float, to: float, seconds: float) -> Iterator[Course]:
    """A data set of so much is read: evenly, in two and in three goes, and slowly at first."""
    whole = to - base
    yield (200, base), (seconds, to), (60, to)
    yield (100, base), (seconds / 2, base + whole / 2), (8, base + whole / 2), (seconds / 2, to), (60, to)
    thirds = [base + whole * n / 3 for n in (1, 2)]
    yield (
        (100, base), (seconds / 3, thirds[0]), (6, thirds[0]), (seconds / 3, thirds[1]), (6, thirds[1]),
        (seconds / 3, to), (60, to),
    )  # fmt: skip
    yield (100, base), (seconds / 3, base + 0.15 * whole), (seconds * 2 / 3, to), (60, to)


@pytest.mark.parametrize("subject", POOLS)
@pytest.mark.parametrize("every", EVERY)
def test_what_is_loaded_and_then_rests_raises_no_alarm(every: float, subject: Subject) -> None:
    pick = random.Random(int(10 * every))
    for to in (60.0, 80.0, 90.0):
        base, seconds, noise = pick.choice([2.0, 15.0, 25.0]), pick.uniform(20, 60), pick.choice([0.0, 0.05, 0.3])
        even, *others = loads(0.0 if subject is Subject.SHM else base, to, seconds)
        # in several goes, one who copies into a /dev/shm looks like one who fills it
        for course in [even] if subject is Subject.SHM else [even, pick.choice(others)]:
            told = raised(drawn(course, every, subject, noise=noise))
            assert not told, (noise, course, told[0][1].why)


@pytest.mark.parametrize("every", EVERY)
@pytest.mark.parametrize("subject", POOLS[:2])
def test_a_load_soon_after_the_first_look_raises_no_alarm(subject: Subject, every: float) -> None:
    """How long it was calm before nobody knows."""
    for to, seconds in product((60.0, 90.0), (20.0, 60.0)):
        assert not raised(drawn([(6, 20), (seconds, to), (60, to)], every, subject)), (to, seconds)


@pytest.mark.parametrize("every", EVERY)
@pytest.mark.parametrize("subject", POOLS)
def test_a_rise_by_chance_after_a_load_has_ended_is_none_of_it(subject: Subject, every: float) -> None:
    course = [(200.0, 15.0), (60.0, 90.0), (20.0, 90.0), (1.0, 90.5), (30.0, 90.5), (1.0, 91.0), (30.0, 91.0)]
    assert not raised(drawn(course, every, subject))


@pytest.mark.parametrize("every", EVERY)
def test_what_a_program_loads_as_soon_as_its_container_is_there_raises_no_alarm(every: float) -> None:
    for to, seconds, rest in product((60.0, 90.0), (20.0, 60.0), (5.0,)):
        samples = drawn([(rest, 0.5), (seconds, to), (60, to)], every, Subject.CONTAINER)
        assert not raised([MemorySample(-every), *samples]), (to, seconds, rest)


@pytest.mark.parametrize("every", EVERY)
@pytest.mark.parametrize("subject", POOLS)
def test_a_load_that_leaves_next_to_nothing_is_an_alarm(subject: Subject, every: float) -> None:
    assert raised(drawn([(200, 15), (12 * every, 101)], every, subject))


def test_growth_that_may_be_a_load_is_watched_and_says_so() -> None:
    said = [each for _, each in changes(drawn([(200, 15), (40, 80), (30, 80)], 1.0, Subject.HOST))]
    watched = [each for each in said if each.state is MemoryState.WATCH]
    assert watched
    assert all("unless it is a load" in each.why and each.eta_s is not None for each in watched)
    assert said[-1].state is MemoryState.STEADY


LEAKS: dict[str, Course] = {
    "after a long calm": [(1200, 15), (2400, 101)],
    "after a load": [(300, 15), (40, 50), (30, 50), (1800, 101)],
    "faster by half": [(60, 15), (1200, 45), (1500, 101)],
    "four times as fast": [(300, 15), (1800, 30), (2160, 101)],
    "twenty times as fast": [(300, 15), (1800, 20), (1460, 101)],
}
"""Their last stretch ends out of memory."""


@pytest.mark.parametrize(
    ("kind", "subject"),
    [*product(LEAKS, [Subject.HOST]), *product(["after a long calm", "twenty times as fast"], POOLS[1:])],
)
def test_a_leak_is_announced_while_there_is_time(kind: str, subject: Subject) -> None:
    course = LEAKS[kind]
    ends, lasts = sum(seconds for seconds, _ in course), course[-1][0]
    told = raised(drawn(course, 5.0, subject, noise=0.1))
    assert told
    assert ends - told[0][0] > 0.35 * lasts


@pytest.mark.parametrize("every", [0.5, 1.0, 2.0])
def test_a_leak_that_is_slower_than_what_was_loaded_before_needs_no_long_look(every: float) -> None:
    """A container's own load says how fast it loads; the calm after it is short."""
    samples = drawn([(3, 1), (3, 30), (5, 30), (25, 101)], every, Subject.CONTAINER)
    told = raised([MemorySample(-every), *samples])
    assert told
    assert 36 - told[0][0] > 0.25 * 25


def test_ram_knows_no_seconds_either() -> None:
    def told(time: float) -> list[MemoryState]:
        samples = drawn([(300, 15), (150, 50), (20, 50), (900, 101)], 5.0, Subject.HOST, time=time)
        return [each.state for _, each in changes(samples)]

    assert MemoryState.RISK in told(1.0)
    assert told(1024.0) == told(1.0)


def test_slow_growth_before_makes_fast_growth_no_surer_than_it_is() -> None:
    """What took minutes at a fraction of the pace is no such time of growth at the pace of now."""
    etas: list[float] = []
    for slow in (0, 60):
        sketch = Sketch(3).load(60).rest(6).leak(0.15, 4.0, steps=slow).leak(1.0, 0.5)
        told = next(each for _, each in changes(sketch.samples()[::2]) if each.state in ALARMS)
        assert told.eta_s is not None
        etas.append(told.eta_s)
    assert etas[1] < 1.5 * etas[0]
