"""Measuring a container, an image or this machine: what each needs beside the benchmarks, and what is kept of it.

Each of the three may be called from any thread, takes a minute (quick) or ten (full), and can be cancelled at any
moment; what was measured until then comes back, and is kept, as a run that is marked ``cancelled``.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from gpuconsole.core.errors import BadFile
from gpuconsole.engine.model import Container
from gpuconsole.launch.spec import LaunchSpec
from gpuconsole.probes.benchclaims import claims_of
from gpuconsole.probes.benchgrades import Peers, grade_run
from gpuconsole.probes.benchlimits import limit_of
from gpuconsole.probes.benchrecords import BenchRecord, BenchRun
from gpuconsole.probes.benchresults import BenchReport
from gpuconsole.probes.benchrunner import FULL, QUICK, run_bench, run_bench_local
from gpuconsole.probes.catalog import bench_deadline_s, benchmarks_for
from gpuconsole.probes.records import AskedGpus, Record
from gpuconsole.services.askedgpus import asked_of, asked_of_machine
from gpuconsole.services.benchassembly import assemble
from gpuconsole.services.benchsampling import HostSamples, IsOurs, below_us, in_container
from gpuconsole.services.benchstore import BenchStore
from gpuconsole.services.cancelling import Cancellation
from gpuconsole.services.checkhost import waiting_container
from gpuconsole.services.launching import OnStep
from gpuconsole.services.naming import find, need_running
from gpuconsole.services.probeturn import alone_on_gpus
from gpuconsole.services.session import Session

OnRecord = Callable[[Record], None]
ELSEWHERE = "the engine is not on this machine"
THIS_MACHINE = "this machine"


@dataclass(frozen=True, slots=True)
class BenchWish:
    """What is to be measured."""

    full: bool = False
    """All benchmarks, in ten minutes instead of one."""
    only: tuple[str, ...] = ()
    """Names or codes of the benchmarks wanted; none for all."""
    deadline_s: float | None = None
    """For all of them together; None takes the usual one."""

    @property
    def mode(self) -> str:
        """``quick`` or ``full``."""
        return FULL if self.full else QUICK

    @property
    def longest_s(self) -> float:
        """When all is over at the latest.

        Raises:
            UsageError: There is no benchmark of a name in ``only``.
        """
        plan = benchmarks_for(self.mode, self.only)
        return bench_deadline_s(self.mode, plan) if self.deadline_s is None else self.deadline_s


@dataclass(frozen=True, slots=True)
class Benched:
    """A run, and whether it is remembered."""

    run: BenchRun
    not_kept: BadFile | None = None
    """Why it is not."""


def bench_container(
    session: Session,
    container: Container | str,
    wish: BenchWish,
    on_record: OnRecord,
    *,
    store: BenchStore | None = None,
    cancel: Cancellation | None = None,
) -> Benched:
    """Measure inside a running container.

    Args:
        session: Whose GPUs and engine.
        container: The container, or a name or id of one.
        wish: What is measured.
        on_record: Called on this thread at each step and result, these without a grade yet.
        store: Where the run is kept, and what it is judged by; None opens the usual one.
        cancel: Ends it at any moment.

    Raises:
        NotFound: There is none of this name; the hint names the nearest.
        Conflict: It does not run.
        UsageError: There is no benchmark of a name in ``wish``.
        Cancelled: ``cancel`` was used before it was its turn.
        EngineUnavailable: The engine does not answer.
    """
    cancel = cancel or Cancellation()
    found = find(session.engine, container) if isinstance(container, str) else container
    need_running(found, "a benchmark")
    run = _in_container(session, found, wish, on_record, cancel=cancel)
    return judged(replace(run, subject=found.name, subject_id=found.id), store)


def bench_image(
    session: Session,
    spec: LaunchSpec,
    wish: BenchWish,
    on_record: OnRecord,
    *,
    on_step: OnStep,
    store: BenchStore | None = None,
    cancel: Cancellation | None = None,
    called: str | None = None,
) -> Benched:
    """Measure in a fresh container of an image, which is removed whatever happens.

    Args:
        session: Whose GPUs and engine.
        spec: The image and its GPUs; name, command and entrypoint are ours.
        wish: What is measured.
        on_record: As in :func:`bench_container`.
        on_step: Called at each step of the launch before.
        store: As in :func:`bench_container`.
        cancel: Ends it at any moment.
        called: The image's name for people, where ``spec`` has its id.

    Raises:
        NotFound: There is no such image.
        GpuNotFound: Its GPUs do not exist, or cannot be given.
        UsageError: There is no benchmark of a name in ``wish``.
        Cancelled: ``cancel`` was used before anything was measured.
        ConsoleError: The engine refused or failed.
    """
    cancel, name = cancel or Cancellation(), called or spec.image
    with waiting_container(session, spec, on_step, cancel=cancel, deadline_s=wish.longest_s) as container:
        run = _in_container(session, container, wish, on_record, cancel=cancel, called=name)
    environment = replace(run.environment, where=f"image {name}")
    image_id = container.image_id or ""
    return judged(replace(run, environment=environment, subject=name, subject_id=image_id), store)


def bench_local(
    session: Session,
    wish: BenchWish,
    on_record: OnRecord,
    *,
    store: BenchStore | None = None,
    cancel: Cancellation | None = None,
) -> Benched:
    """Measure with this machine's own Python; arguments as in :func:`bench_container`."""
    cancel = cancel or Cancellation()
    with alone_on_gpus(
        session, f"the benchmark of {THIS_MACHINE}", lambda: asked_of_machine(session), on_record, cancel=cancel
    ) as asked:

        def measure() -> BenchReport:
            return run_bench_local(
                mode=wish.mode, only=wish.only, asked_gpus=asked, on_record=on_record, cancel=cancel.event,
                deadline_s=wish.deadline_s,
            )  # fmt: skip

        run = _sampled(session, measure, asked, wish, ours=below_us(os.getpid()))
    return judged(replace(run, subject=THIS_MACHINE), store)


def _in_container(
    session: Session,
    container: Container,
    wish: BenchWish,
    on_record: OnRecord,
    *,
    cancel: Cancellation,
    called: str = "",
) -> BenchRun:
    what = f"the benchmark of {called or container.name}"
    with alone_on_gpus(session, what, lambda: asked_of(session, container), on_record, cancel=cancel) as asked:

        def measure() -> BenchReport:
            return run_bench(
                session.engine, container, mode=wish.mode, only=wish.only, asked_gpus=asked, on_record=on_record,
                cancel=cancel.event, deadline_s=wish.deadline_s,
            )  # fmt: skip

        ours = in_container(container.id) if session.engine.info().local else None
        return _sampled(session, measure, asked, wish, ours=ours)


def _sampled(
    session: Session, measure: Callable[[], BenchReport], asked: AskedGpus, wish: BenchWish, *, ours: IsOurs | None
) -> BenchRun:
    """Measure while the host looks on; it does not where the GPUs are not its own."""
    taken_at = time.time()
    samples = None if ours is None else HostSamples(session, ours)
    if samples is not None:
        samples.start()
    try:
        report = measure()
    finally:
        if samples is not None:
            samples.stop()
    return assemble(
        report, samples, asked=asked, taken_at=taken_at, subject="", subject_id="", only=wish.only,
        elsewhere=ELSEWHERE if samples is None else "",
    )  # fmt: skip


def judged(run: BenchRun, store: BenchStore | None) -> Benched:
    """The run graded by what is remembered, and remembered itself if anything was measured.

    Args:
        run: As it was measured.
        store: The records; None opens the usual ones, and a run is judged without when they cannot be used.
    """
    opened: BenchStore | None = None
    problem: BadFile | None = None
    if store is None:
        try:
            store = opened = BenchStore()
        except BadFile as error:
            problem = error

    def peers(record: BenchRecord) -> Peers:
        nonlocal problem
        try:
            return Peers() if store is None else store.peers(record, run)
        except BadFile as error:
            problem = error
            return Peers()

    graded = grade_run(run, peers)
    graded = replace(graded, headline=limit_of(graded), claims=claims_of(graded))
    try:
        if store is not None and any(record.measured for record in graded.benchmarks):
            store.keep(graded)
    except BadFile as error:
        problem = error
    finally:
        if opened is not None:
            opened.close()
    return Benched(graded, problem)
