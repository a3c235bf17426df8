"""Running a use case so that ctrl+c, a TERM signal or a lost terminal stops it between two safe steps.

The work runs in a thread of its own, since a signal in the middle of a request would leave nobody knowing what the
engine made of it. The main thread waits for both, work and signals.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from types import FrameType
from typing import TypeVar

from gpuconsole.core.errors import ConsoleError
from gpuconsole.services.cancelling import Cancellation, Cancelled

_T = TypeVar("_T")
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_TURN_S = 0.1


def run_interruptible(
    work: Callable[[Cancellation], _T], *, tell: Callable[[], None], left: Callable[[], ConsoleError]
) -> _T:
    """Run ``work`` in a thread and return what it returns, or raise what it raises.

    Args:
        work: Is given the wish to stop, and looks at it between steps.
        tell: Called at the first signal, before the wish is passed on.
        left: What to raise at a second signal: the work is left where it is.
    """
    cancel = Cancellation()
    inbox: SimpleQueue[int | None] = SimpleQueue()
    results: list[_T] = []
    failures: list[BaseException] = []

    def body() -> None:
        try:
            results.append(work(cancel))
        except BaseException as error:  # noqa: BLE001  # raised again by the main thread
            failures.append(error)
        finally:
            inbox.put(None)

    with _signals_to(inbox):
        threading.Thread(target=body, name="interruptible", daemon=True).start()
        told = False
        while _next(inbox) is not None:
            if told:
                raise left()
            told = True
            try:
                tell()
            except OSError:  # the terminal is gone, which may be why there was a signal
                pass
            cancel.request()
    if failures:
        raise failures[0]
    return results[0]


def _next(inbox: SimpleQueue[int | None]) -> int | None:
    """Wait for a signal or the end of the work, in turns.

    Python runs a handler between two steps of the program: after a signal that comes when the wait is as good as begun,
    an endless wait would hold it back until the next signal.
    """
    while True:
        try:
            return inbox.get(timeout=_TURN_S)
        except Empty:
            continue


@contextmanager
def _signals_to(inbox: SimpleQueue[int | None]) -> Iterator[None]:
    def note(number: int, _: FrameType | None) -> None:
        inbox.put(number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {}
    for number in _SIGNALS:
        # What the caller ignores stays ignored: nohup, and jobs in the background of a shell without job control.
        if signal.getsignal(number) is not signal.SIG_IGN:
            before[number] = signal.signal(number, note)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def left_at_once(what: str, *, hint: str) -> Cancelled:
    """The error for a second signal."""
    return Cancelled(f"Left at once: {what}.", hint=hint)
