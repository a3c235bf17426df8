"""The queue of checks and benchmarks: one at a time, each can be cancelled at any moment, none stays open."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from gpuconsole.core.errors import ConsoleError
from gpuconsole.probes.records import Progress, Record, Started
from gpuconsole.services.cancelling import Cancellation
from gpuconsole.services.checkqueue import CheckQueue, Ending, OnRecord
from gpuconsole.services.probelive import LiveProbe
from gpuconsole.services.runs import Run, RunKind, Runs, RunState
from tests.tui.in_tmux import wait


class Bed:
    """A queue, and work that waits to be let go."""

    def __init__(self) -> None:
        self.runs = Runs(kept=False)
        self.cancellations: dict[str, Cancellation] = {}
        self.queue = CheckQueue(self.runs, self.cancellations)
        self.at_once = 0
        self.most_at_once = 0

    def run(self, run_id: str) -> Run:
        return next(run for run in self.runs.all() if run.id == run_id)

    def put(
        self, subject: str, go: threading.Event, *, kind: RunKind = RunKind.BENCH, fault: Exception | None = None
    ) -> str:
        """Work that tells a record, and ends when it may or when it is cancelled."""

        def work(on_record: OnRecord, cancel: Cancellation) -> Ending:
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
            try:
                on_record(Started(("bench.mm",), "python3"))
                on_record(Progress("bench.mm", 1, 1, "bf16"))
                wait(lambda: go.is_set() or cancel.requested, what="the end of the work")
                if fault is not None:
                    raise fault
                return (RunState.CANCELLED if cancel.requested else RunState.OK), "It went.", "{}"
            finally:
                self.at_once -= 1

        def progress(record: Record) -> tuple[str, float | None]:
            return type(record).__name__, 0.5

        return self.queue.put(kind, subject, f"id of {subject}", work, progress, LiveProbe(lambda: 0.0))


@pytest.fixture
def bed() -> Iterator[Bed]:
    made = Bed()
    yield made
    for cancellation in list(made.cancellations.values()):
        cancellation.request()
    made.queue.close()


def test_one_after_another_and_each_says_what_it_waits_for(bed: Bed) -> None:
    go = threading.Event()
    first, second, third = bed.put("a", go), bed.put("b", go, kind=RunKind.CHECK), bed.put("c", go)
    wait(lambda: bed.run(first).headline == "Progress", what="the first")
    wait(lambda: bed.run(third).headline == "waits for the bench of a and 1 more", what="the third")
    assert bed.run(second).headline == "waits for the bench of a"
    assert list(bed.queue.benches) == ["bench of a", "bench of c"]
    live = bed.queue.live(first)
    assert live is not None
    assert live.at == "bench.mm"
    assert bed.queue.live("of another console") is None
    go.set()
    wait(lambda: all(run.ended for run in bed.runs.all()), what="all")
    assert {run.state for run in bed.runs.all()} == {RunState.OK}
    assert bed.most_at_once == 1
    assert not bed.queue.benches
    assert not bed.cancellations


def test_one_that_waits_is_dropped_at_once(bed: Bed) -> None:
    go = threading.Event()
    first, second, third = bed.put("a", go), bed.put("b", go), bed.put("c", go)
    wait(lambda: bed.run(first).headline == "Progress", what="the first")
    assert bed.queue.drop(second)
    assert bed.run(second).state is RunState.CANCELLED
    assert bed.run(third).headline == "waits for the bench of a"
    assert not bed.queue.drop(first)  # it runs: that is for its cancellation
    assert not bed.queue.drop(second)
    bed.cancellations[first].request()
    wait(lambda: bed.run(first).ended, what="the first")
    assert bed.run(first).state is RunState.CANCELLED
    go.set()
    wait(lambda: bed.run(third).ended, what="the third")


@pytest.mark.parametrize("fault", [ConsoleError("It broke.", hint="Mend it."), RuntimeError("\x1b[31mours")])
def test_a_fault_ends_its_run_and_nothing_else(bed: Bed, fault: Exception) -> None:
    go = threading.Event()
    go.set()
    first, second = bed.put("a", go, fault=fault), bed.put("b", go)
    wait(lambda: bed.run(second).ended, what="the second")
    assert bed.run(first).state is RunState.FAILED
    assert bed.run(first).headline in ("It broke. → Mend it.", "gpuconsole itself failed: RuntimeError: ours")
    assert bed.run(second).state is RunState.OK


def test_leaving_waits_for_what_a_benchmark_has_to_keep(bed: Bed) -> None:
    go = threading.Event()
    first, second = bed.put("a", go), bed.put("b", go)
    wait(lambda: bed.run(first).headline == "Progress", what="the first")
    bed.cancellations[first].request()
    bed.queue.close()
    assert bed.run(first).state is RunState.CANCELLED
    assert bed.run(second).headline == "Cancelled before its turn: gpuconsole was left."
