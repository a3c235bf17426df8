"""The images are asked for whenever they may have changed, and never twice at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from gpuconsole.services.imagelister import ImageLister


class Asked:
    """Counts the questions, and how many are open at once; each waits until it may be answered."""

    def __init__(self) -> None:
        self.open = self.most_open = self.answered = 0
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.threads: set[threading.Thread] = set()
        self.fails = False
        self.seen = -1
        """The newest change that an answer holds."""
        self.changes = 0
        self._lock = threading.Lock()

    def __call__(self) -> None:
        with self._lock:
            self.threads.add(threading.current_thread())
            self.open += 1
            self.most_open = max(self.most_open, self.open)
            changes = self.changes
        self.may_answer.wait(60)
        with self._lock:
            self.open -= 1
            self.answered += 1
            self.seen = changes
        if self.fails:
            raise ValueError("a fault of ours")


def until(true: Callable[[], object]) -> None:
    end = time.monotonic() + 60
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.fixture
def asked() -> Iterator[Asked]:
    asked = Asked()
    yield asked
    asked.may_answer.set()


def change(lister: ImageLister, asked: Asked) -> None:
    asked.changes += 1
    lister.ask()


@pytest.mark.parametrize("slow", [False, True])
def test_many_reasons_are_few_questions_on_one_thread_and_the_last_one_counts(asked: Asked, slow: bool) -> None:
    lister = ImageLister(asked)
    if slow:
        asked.may_answer.clear()
    for _ in range(200):
        change(lister, asked)
    asked.may_answer.set()
    until(lambda: asked.seen == 200)
    assert asked.answered < 100
    assert asked.most_open == len(asked.threads) == 1
    lister.close()


def test_a_reason_that_comes_while_it_is_asked_is_heeded_afterwards(asked: Asked) -> None:
    lister = ImageLister(asked)
    asked.may_answer.clear()
    change(lister, asked)
    until(lambda: asked.open == 1)
    change(lister, asked)
    asked.may_answer.set()
    until(lambda: asked.seen == 2)
    assert asked.answered == 2
    lister.close()


def test_nothing_is_asked_without_a_reason_or_after_the_end(asked: Asked) -> None:
    lister = ImageLister(asked)
    assert not asked.threads
    lister.ask()
    until(lambda: asked.answered == 1)
    lister.close()
    until(lambda: not any(thread.is_alive() for thread in asked.threads))
    lister.ask()
    assert len(asked.threads) == asked.answered == 1


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_after_a_fault_the_next_reason_is_heeded(asked: Asked) -> None:
    lister = ImageLister(asked)
    asked.fails = True
    lister.ask()
    until(lambda: asked.threads and not any(thread.is_alive() for thread in asked.threads))
    asked.fails = False
    lister.ask()
    until(lambda: asked.answered == 2)
    lister.close()
