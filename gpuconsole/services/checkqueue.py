"""Checks one after another, on a thread of their own: two at a time would measure each other."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from gpuconsole.core.errors import ConsoleError
from gpuconsole.core.text import plain_line
from gpuconsole.services.runs import RunKind, Runs, RunState

if TYPE_CHECKING:
    from gpuconsole.probes.records import CheckReport, Record
    from gpuconsole.services.cancelling import Cancellation

Check = Callable[["Callable[[Record], None]", "Cancellation"], "CheckReport"]
"""Carries a check out: is given whom to tell its records, and what may end it."""


class CheckQueue:
    """The checks that run or wait.

    Args:
        runs: Where each is a run.
        cancellations: Run id → what ends it, while it runs or waits.
    """

    def __init__(self, runs: Runs, cancellations: dict[str, Cancellation]) -> None:
        self._runs = runs
        self._cancellations = cancellations
        self._waiting: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def add(self, subject: str, subject_id: str, check: Check) -> str:
        """Carry ``check`` out after those that wait already; returns the run's id."""
        from gpuconsole.services.cancelling import Cancellation

        run_id = self._runs.begin(RunKind.CHECK, subject, subject_id, "waits for its turn")
        self._cancellations[run_id] = Cancellation()
        self._waiting.put(lambda: self._carry_out(run_id, check))
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="checker", daemon=True)
            self._thread.start()
        return run_id

    def close(self) -> None:
        """Begin no more."""
        self._waiting.put(None)

    def _work(self) -> None:
        while (task := self._waiting.get()) is not None:
            task()

    def _carry_out(self, run_id: str, check: Check) -> None:
        from gpuconsole.services.checkruns import CheckProgress, conclusion

        progress = CheckProgress()

        def on_record(record: Record) -> None:
            headline, share = progress.add(record)
            self._runs.advance(run_id, headline, share)

        try:
            self._runs.advance(run_id, "begins")
            report = check(on_record, self._cancellations[run_id])
            self._runs.end(run_id, *conclusion(report))
        except ConsoleError as error:
            cancelled = self._cancellations[run_id].requested
            state = RunState.CANCELLED if cancelled else RunState.FAILED
            self._runs.end(run_id, state, error.message if not error.hint else f"{error.message} → {error.hint}")
        except Exception as error:  # noqa: BLE001 (the thread must go on, and the run must not stay open)
            words = plain_line(f"gpuconsole itself failed: {type(error).__name__}: {error}")
            self._runs.end(run_id, RunState.FAILED, words)
        finally:
            self._cancellations.pop(run_id, None)
