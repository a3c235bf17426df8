"""What the console does with benchmarks: begin them, follow them, and find what was measured before."""

from __future__ import annotations

import json
import threading
import time
from collections import OrderedDict
from typing import TYPE_CHECKING

from gpuconsole.core.errors import BadFile, NotFound
from gpuconsole.services.runs import RunKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from gpuconsole.engine.model import Container
    from gpuconsole.launch.spec import GpuWish
    from gpuconsole.probes.benchrecords import BenchRun
    from gpuconsole.services.benching import Benched, BenchWish
    from gpuconsole.services.benchstore import BenchStore
    from gpuconsole.services.cancelling import Cancellation
    from gpuconsole.services.checkqueue import CheckQueue, Ending, OnRecord
    from gpuconsole.services.probelive import Live
    from gpuconsole.services.runs import Run
    from gpuconsole.services.session import Session

_FRESH = 20
"""Runs of this console that are known also when the file of the records cannot be used."""


class BenchDesk:
    """The console's benchmarks.

    Args:
        session: Whose GPUs and engine.
        queue: What carries them out, one after another and never beside a check.
        path: File of the records; None takes the usual one.
    """

    def __init__(self, session: Session, queue: CheckQueue, *, path: Path | None = None) -> None:
        self._session = session
        self._queue = queue
        self._path = path
        self._lock = threading.Lock()
        self._store: BenchStore | None = None
        self._fresh: OrderedDict[str, BenchRun] = OrderedDict()

    @property
    def going(self) -> tuple[str, ...]:
        """Those that run or wait, a phrase each; leaving ends them."""
        return self._queue.benches

    def live(self, run_id: str) -> Live | None:
        """How far one is."""
        return self._queue.live(run_id)

    def container(self, container: Container, wish: BenchWish) -> str:
        """Measure a container, after what waits already; returns the run's id."""
        from gpuconsole.services.benching import bench_container

        def measure(on_record: OnRecord, cancel: Cancellation) -> Benched:
            return bench_container(self._session, container.id, wish, on_record, store=self._records(), cancel=cancel)

        return self._begin(container.name, container.id, wish, measure)

    def image(self, name: str, image_id: str, gpus: GpuWish | None, wish: BenchWish) -> str:
        """Measure an image in a fresh container with these GPUs, which is removed after; returns the run's id."""
        from gpuconsole.launch.spec import LaunchSpec, PullPolicy
        from gpuconsole.services.benching import bench_image

        # By its id: the name may be pinned to another image here, and mean another one when its turn comes.
        spec = LaunchSpec(image=image_id, gpus=gpus, pull=PullPolicy.NEVER)

        def measure(on_record: OnRecord, cancel: Cancellation) -> Benched:
            return bench_image(
                self._session, spec, wish, on_record, on_step=lambda step: None, store=self._records(), cancel=cancel,
                called=name,
            )  # fmt: skip

        return self._begin(name, image_id, wish, measure)

    def _begin(
        self, subject: str, subject_id: str, wish: BenchWish, measure: Callable[[OnRecord, Cancellation], Benched]
    ) -> str:
        from gpuconsole.services.benchruns import conclusion
        from gpuconsole.services.probelive import LiveProbe
        from gpuconsole.services.probeprogress import ProbeProgress

        def work(on_record: OnRecord, cancel: Cancellation) -> Ending:
            benched = measure(on_record, cancel)
            with self._lock:
                self._fresh[benched.run.run] = benched.run
                while len(self._fresh) > _FRESH:
                    self._fresh.popitem(last=False)
            state, headline, summary = conclusion(benched.run)
            lost = "" if benched.not_kept is None else f" It is not kept: {benched.not_kept.message}"
            return state, f"{headline}{lost}", summary

        def budgets(plan: Iterable[str]) -> dict[str, float]:
            from gpuconsole.probes.payload.benchplan import BY_SLUG

            return {slug: BY_SLUG[slug].budget_s(wish.mode) for slug in plan if slug in BY_SLUG}

        live = LiveProbe(time.time, mode=wish.mode, budgets=budgets)
        return self._queue.put(RunKind.BENCH, subject, subject_id, work, ProbeProgress().add, live)

    def _records(self) -> BenchStore | None:
        """The records; None when they cannot be used, which each run says then."""
        from gpuconsole.services.benchstore import BenchStore

        with self._lock:
            if self._store is None:
                try:
                    self._store = BenchStore(path=self._path)
                except BadFile:
                    return None
            return self._store

    def result(self, run: Run) -> BenchRun | None:
        """All that a run measured; None when that is not kept: it measured nothing, or another console is at it.

        Raises:
            BadFile: Its record cannot be read.
        """
        name = measured_in(run)
        if name is None:
            return None
        with self._lock:
            fresh = self._fresh.get(name)
        store = None if fresh is not None else self._records()
        if store is None:
            return fresh
        try:
            return store.find(name)
        except NotFound:
            return None

    def all(self) -> tuple[BenchRun, ...]:
        """Every run that is remembered, newest first.

        Raises:
            BadFile: The file cannot be read.
        """
        store = self._records()
        kept = () if store is None else store.all()
        known = {run.run for run in kept}
        with self._lock:
            fresh = [run for run in self._fresh.values() if run.run not in known]
        return tuple(sorted((*fresh, *kept), key=lambda run: -run.taken_at))

    def close(self) -> None:
        """Close the records."""
        with self._lock:
            if self._store is not None:
                self._store.close()
                self._store = None


def measured_in(run: Run) -> str | None:
    """Id of the record that a run of the list tells of; None when it tells of none."""
    if run.kind is not RunKind.BENCH or not run.document:
        return None
    try:
        name = json.loads(run.document).get("run")
    except (ValueError, AttributeError):
        return None
    return name if isinstance(name, str) and name else None
