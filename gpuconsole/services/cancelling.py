"""Stopping a use case that is under way: asked for in one thread, obeyed in another, between two safe steps."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from gpuconsole.core.errors import ConsoleError, ExitCode


class Cancelled(ConsoleError):
    """It was stopped by the user; the message says what became of it."""

    exit_code = ExitCode.INTERRUPTED


class _Closable(Protocol):
    def close(self) -> None: ...


class Cancellation:
    """A wish to stop. The worker asks :attr:`requested` between steps; streams it waits on are closed at once."""

    def __init__(self) -> None:
        self._requested = threading.Event()
        self._lock = threading.Lock()
        self._open: list[_Closable] = []

    @property
    def requested(self) -> bool:
        """Whether to stop."""
        return self._requested.is_set()

    @property
    def event(self) -> threading.Event:
        """The wish as an event, for those who wait for several things; only :meth:`request` sets it."""
        return self._requested

    def request(self) -> None:
        """Ask for the stop, from any thread."""
        self._requested.set()
        with self._lock:
            streams, self._open = self._open, []
        for stream in streams:
            stream.close()

    def wait(self, timeout_s: float) -> bool:
        """Wait until the stop is asked for, at most so many seconds; whether it was."""
        return self._requested.wait(timeout_s)

    @contextmanager
    def closing(self, stream: _Closable) -> Iterator[None]:
        """Close ``stream`` when the block ends, or earlier when the stop is asked for."""
        with self._lock:
            self._open.append(stream)
        try:
            if self.requested:
                stream.close()
            yield
        finally:
            with self._lock:
                self._open = [other for other in self._open if other is not stream]
            stream.close()
