"""A reading taken again and again on a thread of its own, and told to whoever asked."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from gpuconsole.core.errors import ConsoleError
from gpuconsole.core.text import plain_line

Reading = TypeVar("Reading")

BACK_OFF_S = (1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
"""Pauses after failures in a row; the last one stays."""


class Sampler(Generic[Reading]):
    """Calls ``take`` every ``interval_s`` on a daemon thread.

    A reading that takes longer than the interval is never overtaken by the next. Failures back off, and are told once
    per change, not once per try.

    Args:
        name: Of the thread.
        take: Takes one reading; may block, may raise ``ConsoleError``.
        interval_s: Seconds from the start of one reading to the start of the next.
        on_result: Called on the thread with each reading.
        on_failure: Called on the thread when a reading fails that did not fail so before.
    """

    def __init__(
        self,
        name: str,
        take: Callable[[], Reading],
        *,
        interval_s: float,
        on_result: Callable[[Reading], None],
        on_failure: Callable[[ConsoleError], None] = lambda error: None,
    ) -> None:
        self._take = take
        self._interval_s = interval_s
        self._on_result = on_result
        self._on_failure = on_failure
        self._wake = threading.Event()
        self._stopped = threading.Event()
        self._paused = False
        self._told: str | None = None
        # A daemon thread: a driver call that never returns must not hold the process at quit.
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @property
    def interval_s(self) -> float:
        """Seconds between readings."""
        return self._interval_s

    def start(self) -> None:
        """Take the first reading now, the next ones every interval."""
        self._thread.start()

    def set_interval(self, interval_s: float) -> None:
        """Change the pace; the next reading comes at once."""
        self._interval_s = interval_s
        self._wake.set()

    def pause(self) -> None:
        """Take no readings until :meth:`resume`."""
        self._paused = True

    def resume(self) -> None:
        """Go on, with a reading at once."""
        self._paused = False
        self._wake.set()

    def stop(self, timeout_s: float = 0.5) -> None:
        """End it; a reading under way is not waited for longer than ``timeout_s``."""
        self._stopped.set()
        self._wake.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(timeout_s)

    def _run(self) -> None:
        failures = 0
        while not self._stopped.is_set():
            began = time.monotonic()
            if not self._paused:
                failures = 0 if self._reading() else failures + 1
            pause = BACK_OFF_S[min(failures, len(BACK_OFF_S)) - 1] if failures else self._interval_s
            self._wake.wait(max(0.0, began + max(pause, self._interval_s) - time.monotonic()))
            self._wake.clear()

    def _reading(self) -> bool:
        try:
            reading = self._take()
            if not self._stopped.is_set():
                self._on_result(reading)
        except ConsoleError as error:
            return self._failed(error)
        except Exception as error:  # noqa: BLE001 (the thread must not end in silence)
            fault = ConsoleError(
                f"The {self._thread.name} failed inside gpuconsole ({type(error).__name__}: {plain_line(str(error))}).",
                hint="It is tried again; report it if it stays.",
            )
            return self._failed(fault)
        self._told = None
        return True

    def _failed(self, error: ConsoleError) -> bool:
        if not self._stopped.is_set() and self._told != error.message:
            self._told = error.message
            self._on_failure(error)
        return False
