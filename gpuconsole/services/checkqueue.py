"""Checks and benchmarks one after another, on a thread of their own: two at a time would measure each other."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpuconsole.core.errors import ConsoleError
from gpuconsole.core.text import plain_line
from gpuconsole.services.runs import LEFT, RunKind, Runs, RunState

if TYPE_CHECKING:
    from gpuconsole.probes.records import CheckReport, Record
    from gpuconsole.services.cancelling import Cancellation
    from gpuconsole.services.probelive import Live, LiveProbe

OnRecord = Callable[["Record"], None]
Check = Callable[[OnRecord, "Cancellation"], "CheckReport"]
"""Carries a check out: is given whom to tell its records, and what may end it."""
Ending = tuple[RunState, str, str]
"""State, headline and document of a run that is over."""
Work = Callable[[OnRecord, "Cancellation"], Ending]
Progress = Callable[["Record"], tuple[str, float | None]]
"""Gives what is going on after a record, and the share that is done."""
_PARTING_S = 5.0
"""A benchmark that is cancelled by leaving has so long to end inside, and to keep what it measured."""
_LIVES = 20
"""Ended probes whose last state is still known, for those who look at it just then."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A check or a benchmark that waits or runs."""

    run_id: str
    kind: RunKind
    subject: str
    work: Work
    progress: Progress
    live: LiveProbe

    @property
    def words(self) -> str:
        """As it is told: ``bench of llama-ft``."""
        return f"{self.kind.value} of {self.subject}"


class CheckQueue:
    """The checks and benchmarks that run or wait.

    Args:
        runs: Where each is a run.
        cancellations: Run id → what ends it, while it runs or waits.
    """

    def __init__(self, runs: Runs, cancellations: dict[str, Cancellation]) -> None:
        self._runs = runs
        self._cancellations = cancellations
        self._changed = threading.Condition()
        self._waiting: deque[Probe] = deque()
        self._current: Probe | None = None
        self._lives: dict[str, LiveProbe] = {}
        self._closed = False
        self._thread: threading.Thread | None = None

    def add(self, subject: str, subject_id: str, check: Check) -> str:
        """Carry a check out after what waits already; returns the run's id."""
        from gpuconsole.services.checkruns import conclusion
        from gpuconsole.services.probelive import LiveProbe
        from gpuconsole.services.probeprogress import ProbeProgress

        def work(on_record: OnRecord, cancel: Cancellation) -> Ending:
            return conclusion(check(on_record, cancel))

        return self.put(RunKind.CHECK, subject, subject_id, work, ProbeProgress().add, LiveProbe(time.time))

    def put(self, kind: RunKind, subject: str, subject_id: str, work: Work, progress: Progress, live: LiveProbe) -> str:
        """Carry ``work`` out after what waits already; returns the run's id."""
        from gpuconsole.services.cancelling import Cancellation

        run_id = self._runs.begin(kind, subject, subject_id, "waits for its turn")
        self._cancellations[run_id] = Cancellation()
        with self._changed:
            self._lives[run_id] = live
            while len(self._lives) > _LIVES:
                self._lives.pop(next(iter(self._lives)))
            self._waiting.append(Probe(run_id, kind, subject, work, progress, live))
            self._changed.notify_all()
        self._tell_waiting()
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="checker", daemon=True)
            self._thread.start()
        return run_id

    def live(self, run_id: str) -> Live | None:
        """How far a probe is; None of one that is not of this console."""
        live = self._lives.get(run_id)
        return None if live is None else live.now

    @property
    def benches(self) -> tuple[str, ...]:
        """The benchmarks that run or wait, a phrase each."""
        with self._changed:
            probes = [*([self._current] if self._current is not None else []), *self._waiting]
        return tuple(probe.words for probe in probes if probe.kind is RunKind.BENCH)

    def drop(self, run_id: str) -> bool:
        """End one that only waits; False when it does not wait."""
        with self._changed:
            found = next((probe for probe in self._waiting if probe.run_id == run_id), None)
            if found is None:
                return False
            self._waiting.remove(found)
        self._end(found, RunState.CANCELLED, "Cancelled before its turn.")
        self._tell_waiting()
        return True

    def close(self) -> None:
        """Begin no more; a benchmark that was asked to end has a moment to keep what it measured."""
        with self._changed:
            self._closed = True
            left = list(self._waiting)
            self._waiting.clear()
            self._changed.notify_all()
            measures = self._current is not None and self._current.kind is RunKind.BENCH
        for probe in left:
            self._end(probe, RunState.CANCELLED, "Cancelled before its turn: gpuconsole was left.")
        if measures and self._thread is not None:
            self._thread.join(_PARTING_S)

    def _work(self) -> None:
        while (probe := self._next()) is not None:
            self._tell_waiting()
            self._carry_out(probe)

    def _next(self) -> Probe | None:
        with self._changed:
            self._current = None
            self._changed.wait_for(lambda: self._waiting or self._closed)
            if self._closed:
                return None
            self._current = self._waiting.popleft()
            return self._current

    def _tell_waiting(self) -> None:
        """Say of each that waits what it waits for."""
        with self._changed:
            if self._current is None:
                return
            waiting, first = list(self._waiting), self._current.words
        for place, probe in enumerate(waiting):
            others = f" and {place} more" if place else ""
            self._runs.advance(probe.run_id, f"waits for the {first}{others}")

    def _carry_out(self, probe: Probe) -> None:
        run_id = probe.run_id

        def on_record(record: Record) -> None:
            probe.live.add(record)
            headline, share = probe.progress(record)
            self._runs.advance(run_id, headline, share)

        from gpuconsole.services.cancelling import Cancelled

        cancellation = self._cancellations[run_id]
        try:
            self._runs.advance(run_id, "begins")
            self._end(probe, *probe.work(on_record, cancellation))
        except ConsoleError as error:
            if self._closed and not isinstance(error, Cancelled):
                self._end(probe, RunState.CANCELLED, LEFT)  # what broke then broke because of it
                return
            state = RunState.CANCELLED if cancellation.requested else RunState.FAILED
            self._end(probe, state, error.message if not error.hint else f"{error.message} → {error.hint}")
        except Exception as error:  # noqa: BLE001 (the thread must go on, and the run must not stay open)
            words = plain_line(f"gpuconsole itself failed: {type(error).__name__}: {error}")
            self._end(probe, RunState.FAILED, words)

    def _end(self, probe: Probe, state: RunState, headline: str, document: str | None = None) -> None:
        self._cancellations.pop(probe.run_id, None)
        self._runs.end(probe.run_id, state, headline, document)
