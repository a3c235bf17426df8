"""What the forecast says of a process that is gone: failed only where the memory was about to be full."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from gpuconsole.gpu.forecast import Forecaster
from gpuconsole.gpu.forecast_model import Assessment, GpuMemory, MemorySample, ProcessMemory, Subject
from gpuconsole.gpu.state import MemoryState
from tests.forecast.curves import GIB, TOTAL, Sketch, growing

ALARMS = (MemoryState.RISK, MemoryState.CRITICAL)
_FEW = 0.06
"""Of the card: so little is left when memory is said to be nearly full."""


def of_process(said: Sequence[Assessment]) -> MemoryState | None:
    return next((each.state for each in said if each.subject is Subject.PROCESS), None)


def without_process(sample: MemorySample, t: float) -> MemorySample:
    """The GPU after its process has gone, and nothing else is on it."""
    (gpu,) = sample.gpus
    left = replace(gpu, used_bytes=0, free_bytes=gpu.total_bytes, processes=())
    return MemorySample(t, (left,))


def ended_at_every_look(samples: Sequence[MemorySample]) -> Iterator[tuple[MemorySample, float | None, MemoryState]]:
    """Each sample with an alarm standing, seconds it gave, and what is said of a process that ends right after it."""
    for place, last in enumerate(samples[:-1]):
        forecaster = Forecaster()
        said: tuple[Assessment, ...] = ()
        for sample in samples[: place + 1]:
            said = forecaster.feed(sample)
        ahead = next((each for each in said if each.subject is Subject.GPU), None)
        if ahead is None or ahead.state not in ALARMS:
            continue
        gone = of_process(forecaster.feed(without_process(last, samples[place + 1].t)))
        assert gone is not None
        yield last, ahead.eta_s, gone


@pytest.mark.parametrize("seed", range(3))
def test_whoever_stops_a_process_in_time_is_not_told_that_it_failed(seed: int) -> None:
    """An alarm is there to be acted upon: with room and time left, an end is an end."""
    sketch = Sketch(seed).load(60).rest(8).leak(2.5, 2.0, jitter=0.1)  # full only after many more steps
    samples = sketch.samples()[::4]
    early = 0
    for last, eta_s, gone in ended_at_every_look(samples):
        (gpu,) = last.gpus
        assert gpu.free_bytes is not None
        assert gpu.total_bytes is not None
        if gpu.free_bytes > _FEW * gpu.total_bytes and eta_s is not None and eta_s > 10.0:
            early += 1
            assert gone is MemoryState.FREE, f"{gpu.free_bytes / GIB:.0f} GiB free, full in {eta_s:.0f} s"
    assert early, "there was time to act"


@pytest.mark.parametrize("every", [1, 2, 4])
def test_one_that_ends_as_the_memory_is_full_has_failed(every: int) -> None:
    failed = 0
    for seed in range(8):
        forecaster = Forecaster()
        sketch = growing(seed)
        assert sketch.oom_t is not None
        ends = [of_process(forecaster.feed(sample)) for sample in sketch.samples()[::every]]
        failed += MemoryState.FAILED in ends
    assert failed == 8


def test_processes_that_are_told_no_more_have_not_failed() -> None:
    """A driver that lists processes no more says nothing of what became of them."""
    samples = [each for each in Sketch(3).load(90).rest(4).leak(1.2, 0.8).samples() if each.gpus[0].used_bytes]
    before = [each for each in samples if (each.gpus[0].used_bytes or 0) > 100 * GIB]
    cut = samples.index(before[-1])
    forecaster = Forecaster()
    for sample in samples[: cut + 1]:
        said = forecaster.feed(sample)
    assert of_process(said) in ALARMS
    last = samples[cut]
    for step in range(1, 10):
        silent = replace(last.gpus[0], processes=None)
        later = forecaster.feed(MemorySample(last.t + step, (silent,)))
        assert of_process(later) in (*ALARMS, None), "nobody knows"


@pytest.mark.parametrize("step", [0.3, 0.5, 1.0])
def test_a_full_card_is_not_called_packed_while_it_rises(step: float) -> None:
    """Packed is full on purpose, and a word to calm: not for one that has begun to leak."""
    sketch = Sketch(5).load(128).rest(6).leak(step, 3.0, steps=6).rest(30)
    words: list[tuple[float, MemoryState]] = []
    forecaster = Forecaster()
    for sample in sketch.samples()[::4]:
        words += [(sample.t, each.state) for each in forecaster.feed(sample) if each.subject is Subject.GPU]
    assert sketch.loaded_t is not None
    begins = sketch.loaded_t + 6
    rising = {state for t, state in words if begins + 7 < t < begins + 15}
    assert MemoryState.PACKED not in rising
    assert words[-1][1] is MemoryState.PACKED, "it rests again"


def said_of_one_that_ends_beside_a_leak(then: Sequence[float], before: float | None = None) -> Assessment:
    """What is said of a process that ends while another one has filled the GPU but for 4 %.

    Args:
        then: GiB that it holds at the last looks; the last of them as it ends.
        before: GiB that it held until then; None for one that was not there.
    """
    room = TOTAL / GIB * 0.96 - then[-1]
    leak = Sketch(3).load(room - 45).rest(8).leak(1.0, 1.0, until=room).samples()[::4]
    forecaster = Forecaster()
    said: tuple[Assessment, ...] = ()
    for place, each in enumerate(leak):
        late = place - len(leak) + len(then)
        own = then[late] if late >= 0 else before
        gpu = with_another(each, own)
        said = forecaster.feed(MemorySample(each.t, (gpu,)))
    assert next(each.state for each in said if each.subject is Subject.GPU) in ALARMS
    assert gpu.free_bytes is not None
    assert 0.03 * TOTAL < gpu.free_bytes < 0.05 * TOTAL
    gone = forecaster.feed(MemorySample(leak[-1].t + 1, (with_another(leak[-1], None),)))
    assert next(each.state for each in gone if each.pid == 7) in ALARMS
    return next(each for each in gone if each.pid == 8)


def with_another(sample: MemorySample, gib: float | None) -> GpuMemory:
    """The GPU with process 8 on it, beside what is there."""
    (gpu,) = sample.gpus
    if gib is None:
        return gpu
    size = int(gib * GIB)
    used, held = (gpu.used_bytes or 0) + size, (*(gpu.processes or ()), ProcessMemory(8, size))
    return replace(gpu, used_bytes=used, free_bytes=TOTAL - used, processes=held)


@pytest.mark.parametrize("holds", [0.4, 3.0, 30.0])
def test_who_asked_for_no_more_and_ends_beside_a_leak_has_not_run_out_of_memory(holds: float) -> None:
    gone = said_of_one_that_ends_beside_a_leak([holds], before=holds)
    assert gone.state is MemoryState.FREE
    assert "out of memory" not in gone.why
    assert "nearly full" in gone.why, "that it may matter is said"


@pytest.mark.parametrize("holds", [0.4, 2.0])
def test_a_newcomer_that_took_little_has_ended_for_its_own_reasons(holds: float) -> None:
    gone = said_of_one_that_ends_beside_a_leak([0.2, holds / 2, holds])
    assert gone.state is MemoryState.FREE
    assert "out of memory" not in gone.why


def test_who_was_loading_more_than_was_left_has_run_out_of_memory() -> None:
    gone = said_of_one_that_ends_beside_a_leak([3, 6, 9, 12])
    assert gone.state is MemoryState.FAILED
    assert "out of memory" in gone.why


def test_who_held_more_before_than_would_fit_now_has_run_out_of_memory() -> None:
    gone = said_of_one_that_ends_beside_a_leak([18, 14, 10, 10, 10], before=18)
    assert gone.state is MemoryState.FAILED
    assert "out of memory" in gone.why


def test_a_slow_leak_beside_a_fast_one_has_run_out_of_memory_too() -> None:
    """It is not named for the growth, and yet asks for more again and again."""
    gone = said_of_one_that_ends_beside_a_leak([20 + 0.2 * n for n in range(20)], before=20)
    assert gone.state is MemoryState.FAILED
