"""Runs the checks in a place and makes the report: ships the payload, reads its records, ends it, cleans up."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from gpuconsole.core.document import jsonable
from gpuconsole.engine.model import Container
from gpuconsole.engine.protocol import Engine
from gpuconsole.probes import archive, payload, suite
from gpuconsole.probes.conversation import Conversation, Heard
from gpuconsole.probes.local import LocalPlace
from gpuconsole.probes.localwords import on_this_machine
from gpuconsole.probes.parsing import environment_of
from gpuconsole.probes.payload.plan import BY_SLUG
from gpuconsole.probes.place import ContainerPlace, Place
from gpuconsole.probes.records import (
    NO_GPUS,
    AskedGpus,
    CheckReport,
    CheckResult,
    CheckStatus,
    Environment,
    Record,
    RunEnd,
)
from gpuconsole.probes.verdict import judge

DEADLINE_S = 180.0
"""For the whole run; a healthy one takes 5 to 45 s, one whose GPUs cannot talk to each other two minutes."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of a run."""

    asked: AskedGpus = NO_GPUS
    environment: Environment = field(default_factory=Environment)
    """What is known of the place beforehand."""
    ephemeral: bool = False
    """The container was made for this check and goes with it."""
    local: bool = False
    """There is no container: words and remedies are for the machine itself."""
    deadline_s: float = DEADLINE_S
    only: tuple[str, ...] = ()
    """Names or codes of the checks wanted; none for all."""
    interpreters: tuple[str, ...] = ()
    """To be preferred before those found there."""


def run_check(
    engine: Engine,
    container: Container,
    *,
    asked_gpus: AskedGpus = NO_GPUS,
    on_record: Callable[[Record], None],
    cancel: threading.Event,
    deadline_s: float = DEADLINE_S,
    ephemeral: bool = False,
    only: tuple[str, ...] = (),
) -> CheckReport:
    """Run all checks inside a running container.

    Args:
        engine: The engine it runs on.
        container: The container, as it is now.
        asked_gpus: The GPUs it was given, as the host knows it.
        on_record: Called from this thread at each step and result.
        cancel: When set, the payload is killed inside and the report says ``cancelled``.
        deadline_s: After so many seconds likewise, with ``timeout``.
        ephemeral: The container was made for this check and goes with it.
        only: Names or codes of the checks wanted; none for all.

    Raises:
        UsageError: There is no check of a name in ``only``.
        Conflict: The container does not run, or is paused.
        EngineUnavailable: The engine does not answer (any more).
    """
    environment = Environment(
        suite=payload.SUITE,
        where=f"container {container.name}",
        image=container.image,
        image_id=container.image_id,
        container_id=container.id,
    )
    request = Request(asked=asked_gpus, environment=environment, ephemeral=ephemeral, deadline_s=deadline_s, only=only)
    return run(ContainerPlace(engine, container), request, on_record=on_record, cancel=cancel)


def run_local(
    *,
    asked_gpus: AskedGpus = NO_GPUS,
    on_record: Callable[[Record], None],
    cancel: threading.Event,
    deadline_s: float = DEADLINE_S,
    only: tuple[str, ...] = (),
) -> CheckReport:
    """Run all checks on this machine's Python: the one gpuconsole runs on, else one that has torch.

    The results told on the way are worded as for a container; those of the report are not.
    """
    place = LocalPlace()
    request = Request(
        asked=asked_gpus,
        environment=Environment(suite=payload.SUITE, where="this machine"),
        deadline_s=deadline_s,
        local=True,
        interpreters=place.pythons,
        only=only,
    )
    return run(place, request, on_record=on_record, cancel=cancel)


def run(place: Place, request: Request, *, on_record: Callable[[Record], None], cancel: threading.Event) -> CheckReport:
    """Run all checks in ``place``."""
    begun = time.monotonic()
    conversation = Conversation(place, on_record=on_record, cancel=cancel, deadline_s=request.deadline_s)
    shipped = archive.build()
    heard = conversation.hold(
        lambda python, name: command(
            python, name, shipped, place=place, told=_told(request), first=request.interpreters
        ),
        shipped.data,
    )
    return _report(heard, request, seconds=round(time.monotonic() - begun, 3))


def with_host_checks(report: CheckReport, results: Sequence[CheckResult]) -> CheckReport:
    """``report`` with what the host itself has checked, and the verdict on all of it."""
    checks = suite.sorted_for_report((*report.checks, *results))
    return replace(report, checks=checks, verdict=judge(checks, report.environment, report.end))


def _told(request: Request) -> dict[str, object]:
    """What the payload is told of a check."""
    return {
        "checks": list(suite.select(request.only).inside),
        **told_of(request.asked),
        "ephemeral": request.ephemeral,
        "deadline_s": request.deadline_s,
    }


def told_of(asked: AskedGpus) -> dict[str, object]:
    """What the payload is told of the GPUs that were given."""
    return {"asked": None if asked.gpus is None else jsonable(asked.gpus), "asked_count": asked.count}


def command(
    python: str,
    name: str,
    shipped: archive.Archive,
    *,
    place: Place,
    told: dict[str, object],
    first: tuple[str, ...] = (),
) -> list[str]:
    """The command line that takes the archive from standard input and starts it.

    Args:
        python: The interpreter that takes it in.
        name: Of the run; marks each record.
        shipped: The archive that will come.
        place: Where it runs.
        told: What the payload shall do.
        first: Interpreters to be preferred for it before those found there.
    """
    config = {**told, "run": name, "workdir": place.workdir}
    return [
        python,
        "-S",
        "-c",
        archive.boot_text(),
        str(len(shipped.data)),
        shipped.sha256,
        place.workdir,
        ":".join(first),
        json.dumps(config),
        name,
    ]


def _report(heard: Heard, request: Request, *, seconds: float) -> CheckReport:
    environment = environment_of(heard.facts, request.environment)
    if environment.python is None:
        environment = replace(environment, python=heard.python_version, python_path=heard.python or None)
    why_not = {
        RunEnd.COMPLETE: "the checks did not come to it",
        RunEnd.CANCELLED: "cancelled before it ran",
        RunEnd.TIMEOUT: "no time was left for it",
        RunEnd.BROKEN: "the run ended before it",
    }[heard.end]
    checks = [] if heard.obstacle is None else [heard.obstacle]
    selection = suite.select(request.only)
    for slug in selection.inside:
        skipped = CheckResult(slug, BY_SLUG[slug].code, CheckStatus.SKIP, why_not)
        checks.append(heard.results.get(slug, skipped))
    if request.local:
        checks = [on_this_machine(check, environment.python_path or sys.executable) for check in checks]
    return CheckReport(
        end=heard.end,
        environment=environment,
        checks=suite.sorted_for_report(checks),
        verdict=judge(checks, environment, heard.end),
        notes=tuple(heard.notes),
        seconds=seconds,
    )
