"""Runs the benchmarks in a place and makes the report: as the checks are run, by the same payload."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gpuconsole.engine.model import Container
from gpuconsole.engine.protocol import Engine
from gpuconsole.probes import archive, payload
from gpuconsole.probes.benchconversation import BenchConversation, of_benchmarks
from gpuconsole.probes.benchresults import NOTHING, BenchReport, BenchResult, BenchStatus
from gpuconsole.probes.catalog import BenchInfo, bench_deadline_s, benchmarks_for
from gpuconsole.probes.conversation import Heard
from gpuconsole.probes.local import LocalPlace
from gpuconsole.probes.localwords import on_this_machine
from gpuconsole.probes.parsing import environment_of
from gpuconsole.probes.place import ContainerPlace, Place
from gpuconsole.probes.records import NO_GPUS, AskedGpus, Environment, Record, RunEnd
from gpuconsole.probes.runner import command, told_of

QUICK, FULL = "quick", "full"


@dataclass(frozen=True, slots=True)
class BenchRequest:
    """What is asked of a run."""

    plan: tuple[BenchInfo, ...]
    mode: str = QUICK
    asked: AskedGpus = NO_GPUS
    environment: Environment = field(default_factory=Environment)
    """What is known of the place beforehand."""
    local: bool = False
    """There is no container: words and remedies are for the machine itself."""
    deadline_s: float = 60.0
    interpreters: tuple[str, ...] = ()
    """To be preferred before those found there."""
    options: Mapping[str, Any] = field(default_factory=lambda: NOTHING)
    """For tests and diagnosis: ``{"data": "zeros"}``."""


def run_bench(
    engine: Engine,
    container: Container,
    *,
    mode: str = QUICK,
    only: Sequence[str] = (),
    asked_gpus: AskedGpus = NO_GPUS,
    on_record: Callable[[Record], None],
    cancel: threading.Event,
    deadline_s: float | None = None,
    options: Mapping[str, Any] = NOTHING,
) -> BenchReport:
    """Run benchmarks inside a running container.

    Args:
        engine: The engine it runs on.
        container: The container, as it is now.
        mode: ``quick`` or ``full``.
        only: Names or codes of those wanted; else all of the mode.
        asked_gpus: The GPUs it was given, as the host knows it.
        on_record: Called from this thread at each step and result.
        cancel: When set, the payload is killed inside and the report says ``cancelled``; what was measured is in it.
        deadline_s: For the whole run; by default 60 s for a quick one, 600 s for a full one.
        options: For tests and diagnosis.

    Raises:
        UsageError: There is no benchmark of such a name.
        Conflict: The container does not run, or is paused.
        EngineUnavailable: The engine does not answer (any more).
    """
    plan = benchmarks_for(mode, only)
    request = BenchRequest(
        plan=plan,
        mode=mode,
        asked=asked_gpus,
        environment=Environment(
            suite=payload.SUITE,
            where=f"container {container.name}",
            image=container.image,
            image_id=container.image_id,
            container_id=container.id,
        ),
        deadline_s=bench_deadline_s(mode, plan) if deadline_s is None else deadline_s,
        options=options,
    )
    return run(ContainerPlace(engine, container), request, on_record=on_record, cancel=cancel)


def run_bench_local(
    *,
    mode: str = QUICK,
    only: Sequence[str] = (),
    asked_gpus: AskedGpus = NO_GPUS,
    on_record: Callable[[Record], None],
    cancel: threading.Event,
    deadline_s: float | None = None,
    options: Mapping[str, Any] = NOTHING,
) -> BenchReport:
    """Run benchmarks on this machine's Python; arguments as for :func:`run_bench`.

    Raises:
        UsageError: There is no benchmark of such a name.
    """
    place, plan = LocalPlace(), benchmarks_for(mode, only)
    request = BenchRequest(
        plan=plan,
        mode=mode,
        asked=asked_gpus,
        environment=Environment(suite=payload.SUITE, where="this machine"),
        deadline_s=bench_deadline_s(mode, plan) if deadline_s is None else deadline_s,
        local=True,
        interpreters=place.pythons,
        options=options,
    )
    return run(place, request, on_record=on_record, cancel=cancel)


def run(
    place: Place, request: BenchRequest, *, on_record: Callable[[Record], None], cancel: threading.Event
) -> BenchReport:
    """Run the benchmarks of ``request`` in ``place``."""
    begun = time.monotonic()
    talk = BenchConversation(place, on_record=on_record, cancel=cancel, deadline_s=request.deadline_s)
    shipped = archive.build()
    told: dict[str, object] = {
        "kind": "bench",
        "mode": request.mode,
        "checks": [one.id for one in request.plan],
        **told_of(request.asked),
        "deadline_s": request.deadline_s,
        "options": dict(request.options),
    }
    heard = talk.hold(
        lambda python, name: command(python, name, shipped, place=place, told=told, first=request.interpreters),
        shipped.data,
    )
    return _report(heard, talk, request, seconds=round(time.monotonic() - begun, 3))


def _report(heard: Heard, talk: BenchConversation, request: BenchRequest, *, seconds: float) -> BenchReport:
    environment = environment_of(heard.facts, request.environment)
    if environment.python is None:
        environment = replace(environment, python=heard.python_version, python_path=heard.python or None)
    obstacle = None if heard.obstacle is None else of_benchmarks(heard.obstacle)
    if obstacle is not None and request.local:
        obstacle = on_this_machine(obstacle, environment.python_path or sys.executable)
    results = list(talk.results)
    left = [info for info in request.plan if info.id not in talk.measured]
    for info in left:
        if heard.end is RunEnd.CANCELLED and _told(results, info):
            continue  # what it told until then stands for it
        result = _not_run(info, heard.end, headline=not _told(results, info))
        if heard.end is RunEnd.CANCELLED and info is left[0] and talk.started:
            result = replace(result, why="cancelled while it ran")
        results.append(result)
    order = {info.id: info.code for info in request.plan}
    results.sort(key=lambda result: order.get(result.id, ""))
    return BenchReport(
        end=heard.end,
        environment=environment,
        mode=request.mode,
        benchmarks=tuple(results),
        notes=tuple(heard.notes),
        obstacle=obstacle,
        seconds=seconds,
    )


def _told(results: Sequence[BenchResult], info: BenchInfo) -> bool:
    return any(result.id == info.id for result in results)


def _not_run(info: BenchInfo, end: RunEnd, *, headline: bool) -> BenchResult:
    status, why = {
        RunEnd.COMPLETE: (BenchStatus.SKIPPED, "the run did not come to it"),
        RunEnd.CANCELLED: (BenchStatus.SKIPPED, "cancelled before it ran"),
        RunEnd.TIMEOUT: (BenchStatus.TIMEOUT, "no time was left for it"),
        RunEnd.BROKEN: (BenchStatus.SKIPPED, "the run ended before it"),
    }[end]
    return BenchResult(info.id, info.code, status, rev=info.rev, why=why, headline=headline)
