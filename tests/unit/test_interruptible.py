"""A signal stops the work whatever the main thread is doing when it comes."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from gpuconsole.cli.interrupts import run_interruptible
from gpuconsole.core.errors import ConsoleError
from gpuconsole.services.cancelling import Cancellation, Cancelled


def until_the_main_thread_waits() -> None:
    """Return when it has slept through several looks, in which nobody else held the interpreter."""
    slept = 0
    while slept < 5:
        time.sleep(0.01)
        state = Path(f"/proc/self/task/{os.getpid()}/stat").read_text().rpartition(")")[2].split()[0]
        slept = slept + 1 if state == "S" else 0


def left() -> ConsoleError:
    return Cancelled("Left at once.")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_does_not_wake_the_main_thread_is_heeded(number: signal.Signals) -> None:
    """It is sent to another thread: the wait goes on, as after a signal that came when it was as good as begun."""
    told: list[str] = []

    def work(cancel: Cancellation) -> bool:
        until_the_main_thread_waits()
        signal.pthread_kill(threading.get_ident(), number)
        return cancel.wait(20)

    assert run_interruptible(work, tell=lambda: told.append("stopping"), left=left)
    assert told == ["stopping"]


def test_a_second_signal_leaves_the_work_where_it_is() -> None:
    over = threading.Event()

    def work(cancel: Cancellation) -> None:
        until_the_main_thread_waits()
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        assert cancel.wait(20)
        until_the_main_thread_waits()
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        over.wait(20)

    with pytest.raises(Cancelled, match="Left at once"):
        run_interruptible(work, tell=lambda: None, left=left)
    over.set()
