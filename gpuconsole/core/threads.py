"""Threads and gates for what must be there at once: :mod:`threading`, and what it imports, takes 3 ms to come."""

from __future__ import annotations

import sys
from _thread import allocate_lock, start_new_thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def begin(work: Callable[[], None], *, name: str, bare: bool = False) -> None:
    """Run ``work``, which must not raise, on a thread that holds up no end of the program.

    Args:
        work: What is done there.
        name: Of the thread.
        bare: Do without :mod:`threading`, unless it is there already. ``work`` must not import it then: it takes the
            thread that imports it for the main one, whose end the program waits for.
    """
    if bare and "threading" not in sys.modules:
        start_new_thread(work, ())
        return
    import threading

    threading.Thread(target=work, name=name, daemon=True).start()


class Gate:
    """Something that happens once, and that any number of threads may wait for."""

    def __init__(self) -> None:
        self._shut = allocate_lock()
        self._shut.acquire()
        self._opening = allocate_lock()
        self.is_open = False

    def open(self) -> None:
        """Let everybody through, from now on; opening it again changes nothing."""
        with self._opening:
            if not self.is_open:
                self.is_open = True
                self._shut.release()

    def wait(self, limit_s: float | None = None) -> bool:
        """Wait until it is open, for ``limit_s`` seconds at most; whether it is."""
        if not self.is_open and self._shut.acquire(timeout=-1 if limit_s is None else limit_s):
            self._shut.release()
        return self.is_open
