"""Checking a container, an image or this machine: what each needs before and after the checks themselves."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from gpuconsole.engine.model import Container
from gpuconsole.launch.spec import LaunchSpec
from gpuconsole.probes.records import CheckReport, Record, RunEnd
from gpuconsole.probes.runner import DEADLINE_S, run_check, run_local, with_host_checks
from gpuconsole.probes.suite import select
from gpuconsole.services.askedgpus import ELSEWHERE, asked_of, asked_of_machine
from gpuconsole.services.cancelling import Cancellation, Cancelled
from gpuconsole.services.checkhost import waiting_container
from gpuconsole.services.checkwatch import GpuWatch
from gpuconsole.services.launching import OnStep
from gpuconsole.services.naming import find, need_running
from gpuconsole.services.probeturn import alone_on_gpus
from gpuconsole.services.session import Session

OnRecord = Callable[[Record], None]


def check_container(
    session: Session,
    container: Container | str,
    on_record: OnRecord,
    *,
    cancel: Cancellation | None = None,
    deadline_s: float = DEADLINE_S,
    only: tuple[str, ...] = (),
) -> CheckReport:
    """Check a running container.

    Args:
        session: Whose GPUs and engine.
        container: The container, or a name or id of one.
        on_record: Called at each step and result of the checks.
        cancel: Ends it at any moment.
        deadline_s: For all checks.
        only: Names or codes of the checks wanted; none for all.

    Raises:
        UsageError: There is no check of a name in ``only``.
        NotFound: There is none of this name; the hint names the nearest.
        Conflict: It does not run.
        Cancelled: ``cancel`` was used; the payload was ended inside.
        EngineUnavailable: The engine does not answer.
    """
    found = find(session.engine, container) if isinstance(container, str) else container
    need_running(found, "a check")
    report = _checked(session, found, on_record, cancel=cancel or Cancellation(), deadline_s=deadline_s, only=only)
    return _unless_cancelled(report, f"container {found.name}")


def check_image(
    session: Session,
    spec: LaunchSpec,
    on_record: OnRecord,
    *,
    on_step: OnStep,
    cancel: Cancellation | None = None,
    deadline_s: float = DEADLINE_S,
    called: str | None = None,
    only: tuple[str, ...] = (),
) -> CheckReport:
    """Check an image in a fresh container, which is removed whatever happens.

    Args:
        session: Whose GPUs and engine.
        spec: The image and its GPUs; name, command and entrypoint are ours.
        on_record: Called at each step and result of the checks.
        on_step: Called at each step of the launch before them.
        cancel: Ends it at any moment.
        deadline_s: For the checks alone.
        called: The image's name for people, where ``spec`` has its id.
        only: Names or codes of the checks wanted; none for all.

    Raises:
        UsageError: There is no check of a name in ``only``.
        NotFound: There is no such image.
        GpuNotFound: Its GPUs do not exist, or cannot be given.
        Cancelled: ``cancel`` was used; container and payload are gone.
        ConsoleError: The engine refused or failed.
    """
    cancel = cancel or Cancellation()
    select(only)  # a name that does not exist shall not cost a launch
    called = called or spec.image
    with waiting_container(session, spec, on_step, cancel=cancel, deadline_s=deadline_s) as container:
        report = _checked(session, container, on_record, cancel=cancel, deadline_s=deadline_s, called=called, only=only)
    report = replace(report, environment=replace(report.environment, where=f"image {called}"))
    return _unless_cancelled(report, f"image {called}")


def check_local(
    session: Session,
    on_record: OnRecord,
    *,
    cancel: Cancellation | None = None,
    deadline_s: float = DEADLINE_S,
    only: tuple[str, ...] = (),
) -> CheckReport:
    """Check this machine's own Python.

    Raises:
        UsageError: There is no check of a name in ``only``.
        Cancelled: ``cancel`` was used.
    """
    cancel, problem = cancel or Cancellation(), session.gpus.snapshot().problem or ""
    with alone_on_gpus(
        session, "the check of this machine", lambda: asked_of_machine(session), on_record, cancel=cancel
    ) as asked:

        def inside() -> CheckReport:
            return run_local(
                asked_gpus=asked, on_record=on_record, cancel=cancel.event, deadline_s=deadline_s, only=only
            )

        report = _with_host(GpuWatch(session, asked, problem=problem), inside, on_record, only)
    return _unless_cancelled(report, "this machine")


def _checked(
    session: Session,
    container: Container,
    on_record: OnRecord,
    *,
    cancel: Cancellation,
    deadline_s: float,
    called: str | None = None,
    only: tuple[str, ...] = (),
) -> CheckReport:
    """Check a container; ``called`` is the image it was made of for this alone, and goes with."""
    problem = "" if session.engine.info().local else ELSEWHERE
    with alone_on_gpus(
        session, f"the check of {called or container.name}", lambda: asked_of(session, container), on_record,
        cancel=cancel,
    ) as asked:  # fmt: skip

        def inside() -> CheckReport:
            return run_check(
                session.engine, container, asked_gpus=asked, on_record=on_record, cancel=cancel.event,
                deadline_s=deadline_s, ephemeral=called is not None, only=only,
            )  # fmt: skip

        return _with_host(GpuWatch(session, asked, problem=problem), inside, on_record, only)


def _with_host(
    watch: GpuWatch, inside: Callable[[], CheckReport], on_record: OnRecord, only: tuple[str, ...]
) -> CheckReport:
    """Run the checks inside while the host watches, and put both together."""
    wanted = select(only).host
    if not wanted:
        return inside()
    with watch:
        report = inside()
    results = []
    for check in wanted:
        begun = time.monotonic()
        results.append(replace(watch.result(check), seconds=round(time.monotonic() - begun, 3)))
        on_record(results[-1])
    return with_host_checks(report, results)


def _unless_cancelled(report: CheckReport, where: str) -> CheckReport:
    if report.end is RunEnd.CANCELLED:
        raise Cancelled(f"The check of {where} was cancelled: it was ended there, and nothing of it is left.")
    return report
