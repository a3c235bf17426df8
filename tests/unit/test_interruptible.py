"""A signal stops the work whatever the main thread is doing when it comes."""

from __future__ import annotations

import signal
import threading

import pytest

from gpuconsole.cli.interrupts import run_interruptible
from gpuconsole.core.errors import ConsoleError
from gpuconsole.services.cancelling import Cancellation, Cancelled


def left() -> ConsoleError:
    return Cancelled("Left at once.")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_does_not_wake_the_main_thread_is_heeded(number: signal.Signals) -> None:
    """It is sent to another thread: the wait goes on, as after a signal that came just before it began."""
    told: list[str] = []

    def work(cancel: Cancellation) -> bool:
        signal.pthread_kill(threading.get_ident(), number)
        return cancel.wait(20)

    assert run_interruptible(work, tell=lambda: told.append("stopping"), left=left)
    assert told == ["stopping"]


def test_a_second_signal_leaves_the_work_where_it_is() -> None:
    over = threading.Event()

    def work(cancel: Cancellation) -> None:
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        assert cancel.wait(20)
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        over.wait(20)

    with pytest.raises(Cancelled, match="Left at once"):
        run_interruptible(work, tell=lambda: None, left=left)
    over.set()
