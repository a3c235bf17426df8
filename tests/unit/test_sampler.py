"""The sampler: pace, pauses, failures told once, and an end that waits for nobody."""

from __future__ import annotations

import queue
import threading
import time

import pytest

from gpuconsole.core.errors import ConsoleError, EngineUnavailable
from gpuconsole.services.sampler import Sampler


def test_readings_come_until_it_is_stopped() -> None:
    seen: queue.Queue[int] = queue.Queue()
    numbers = iter(range(1_000_000))
    sampler = Sampler("test", lambda: next(numbers), interval_s=0.01, on_result=seen.put)
    sampler.start()
    assert [seen.get(timeout=60) for _ in range(3)] == [0, 1, 2]
    sampler.stop(timeout_s=60)
    while not seen.empty():
        seen.get()
    time.sleep(0.05)
    assert seen.empty()


def test_a_slow_reading_is_never_overtaken() -> None:
    running, most = threading.Lock(), []

    def take() -> None:
        assert running.acquire(blocking=False)
        time.sleep(0.03)
        running.release()
        most.append(1)

    sampler = Sampler("test", take, interval_s=0.001, on_result=lambda _: None)
    sampler.start()
    end = time.monotonic() + 60
    while len(most) < 3 and time.monotonic() < end:
        time.sleep(0.01)
    sampler.stop(timeout_s=60)
    assert len(most) >= 3


def test_a_failure_is_told_once_until_it_changes_and_a_good_reading_ends_it() -> None:
    told: queue.Queue[ConsoleError | str] = queue.Queue()
    steps = iter(["down", "down", "refused", "", "down"])
    done = threading.Event()

    def take() -> str:
        step = next(steps, None)
        if step is None:
            done.set()
            return "end"
        if step:
            raise EngineUnavailable(step)
        return "good"

    sampler = Sampler("test", take, interval_s=0.01, on_result=told.put, on_failure=told.put)
    sampler.start()
    for _ in range(8):
        sampler.resume()  # a reading now
        time.sleep(0.1)
    assert done.wait(60)
    sampler.stop()
    words = [str(item) for item in told.queue]
    assert words[:5] == ["down", "refused", "good", "down", "end"]


def test_paused_it_takes_nothing_and_goes_on_at_once() -> None:
    seen: queue.Queue[float] = queue.Queue()
    sampler = Sampler("test", time.monotonic, interval_s=0.01, on_result=seen.put)
    sampler.start()
    seen.get(timeout=60)
    sampler.pause()
    sampler._wake.set()
    while sampler._wake.is_set():  # until a reading that was under way has ended
        time.sleep(0.01)
    while not seen.empty():
        seen.get()
    time.sleep(0.05)
    assert seen.empty()
    sampler.resume()
    assert seen.get(timeout=60)
    sampler.stop()


def test_stop_does_not_wait_for_a_reading_that_hangs() -> None:
    release = threading.Event()
    began = threading.Event()

    def take() -> None:
        began.set()
        release.wait(30)

    seen: list[None] = []
    sampler = Sampler("test", take, interval_s=1, on_result=seen.append)
    sampler.start()
    assert began.wait(60)
    started = time.monotonic()
    sampler.stop(timeout_s=0.1)
    assert time.monotonic() - started < 5
    release.set()
    time.sleep(0.05)
    assert seen == []


@pytest.mark.parametrize("where", ["take", "tell"])
def test_a_fault_of_our_own_is_told_and_ends_nothing(where: str) -> None:
    told: queue.Queue[ConsoleError] = queue.Queue()
    seen: queue.Queue[int] = queue.Queue()
    faults = iter([True, True])

    def take() -> int:
        if where == "take" and next(faults, False):
            raise ZeroDivisionError("a \x1b[2Jfault")
        return 1

    def tell(reading: int) -> None:
        if where == "tell" and next(faults, False):
            raise ZeroDivisionError("a \x1b[2Jfault")
        seen.put(reading)

    sampler = Sampler("test", take, interval_s=0.01, on_result=tell, on_failure=told.put)
    sampler.start()
    try:
        error = told.get(timeout=30)
        assert "ZeroDivisionError: a fault" in error.message
        assert error.hint
        assert seen.get(timeout=30) == 1, "it is tried again"
        assert told.empty(), "told once"
    finally:
        sampler.stop()
