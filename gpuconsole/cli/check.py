"""``gpuconsole check``: is this container, image or machine fit for training?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gpuconsole.cli.context import Settings, pass_settings
from gpuconsole.cli.names import complete_container
from gpuconsole.cli.others import others_option, yes_option
from gpuconsole.cli.probed import container_to_enter, image_spec
from gpuconsole.cli.seconds import Seconds
from gpuconsole.core.errors import ExitCode

if TYPE_CHECKING:
    from gpuconsole.cli.check_talk import CheckTalk
    from gpuconsole.engine.model import Container
    from gpuconsole.launch.spec import LaunchSpec
    from gpuconsole.probes.records import CheckReport
    from gpuconsole.services.cancelling import Cancellation
    from gpuconsole.services.session import Session

_EPILOG = """\b
Examples:
  gpuconsole check llama-ft
  gpuconsole check --image pytorch/pytorch:2.9.0-cuda12.8-cudnn9-runtime --gpus 1
  gpuconsole check --local
  gpuconsole check llama-ft --json | jq .verdict
  gpuconsole check llama-ft --only shm,compile
\b
As the container's own user it starts CUDA, compares results with float64 on the CPU (products,
convolutions, attention), trains steps in mixed precision, compiles, has all GPUs compute a sum,
tests a part of their memory, passes a tensor through /dev/shm and saves a file; from outside it
looks at the GPUs' errors, clocks and links. It takes up to 45 s, changes no setting, and leaves
nothing behind, also on ctrl+c or when killed. --image uses a fresh container and removes it.

\b
Exit codes: 0 no check failed; 1 one failed; 10 the time of --timeout was over before the end."""


@click.command(epilog=_EPILOG)
@click.argument("name", metavar="[NAME]", required=False, shell_complete=complete_container)
@click.option("--image", metavar="REF", help="Check a fresh container of this image instead.")
@click.option("--local", is_flag=True, help="Check this machine's own Python instead.")
@click.option("--gpus", metavar="GPUS", help="With --image: N, device=0,2, all, auto or none.")
@click.option("--timeout", metavar="SECONDS", type=Seconds(1, 86400), help="For all checks; 180 by default.")
@click.option("--only", metavar="NAMES", multiple=True, help="Only these, by name or code, with commas: shm,C11.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON document.")
@yes_option
@others_option
@pass_settings
def check(
    settings: Settings,
    /,
    *,
    name: str | None,
    image: str | None,
    local: bool,
    gpus: str | None,
    timeout: float | None,
    only: tuple[str, ...],
    as_json: bool,
    yes: bool,
    others: bool,
) -> int:
    """Check whether NAME is fit for training, and name the one thing that is wrong.

    It runs a program inside, so that a container of another user asks for its name first.
    """
    if sum((name is not None, image is not None, local)) != 1:
        raise click.UsageError("Give the name of a container, or --image REF, or --local: one of them.")
    if gpus is not None and image is None:
        raise click.UsageError("--gpus goes with --image: a container that runs has its GPUs already.")
    if not local:
        settings.may_change("run a check in a container")
    from gpuconsole.cli.check_talk import CheckTalk
    from gpuconsole.cli.interrupts import left_at_once, run_interruptible
    from gpuconsole.probes.records import RunEnd
    from gpuconsole.probes.runner import DEADLINE_S
    from gpuconsole.services.checkrecords import remember_check

    only = _names(only)
    session, told = settings.session(), CheckTalk()
    spec = None if image is None else image_spec(session, image, gpus)
    container = None
    if name is not None:
        container = container_to_enter(settings, name, "a check", verb="check", yes=yes, others=others)

    def work(cancel: Cancellation) -> CheckReport:
        return _check(
            session, told, container=container, spec=spec, cancel=cancel, deadline_s=timeout or DEADLINE_S, only=only
        )

    try:
        report = run_interruptible(
            work,
            tell=told.interrupted,
            left=lambda: left_at_once("the check may still be ending", hint="It ends by itself within seconds."),
        )
    finally:
        told.finish()
    if not only:  # some of the checks alone are no verdict to remember
        remember_check(report)
    told.result(report, as_json=as_json)
    if report.end is RunEnd.TIMEOUT:
        return ExitCode.TIMEOUT
    return ExitCode.FAILED if report.failed else ExitCode.OK


def _names(only: tuple[str, ...]) -> tuple[str, ...]:
    """The checks that were asked for, each of which exists; none for all."""
    from gpuconsole.probes.suite import select

    names = tuple(name.strip() for each in only for name in each.split(",") if name.strip())
    if only and not names:
        raise click.UsageError("--only takes names or codes of checks, with commas: --only shm,C11.")
    select(names)
    return names


def _check(
    session: Session,
    told: CheckTalk,
    *,
    container: Container | None,
    spec: LaunchSpec | None,
    cancel: Cancellation,
    deadline_s: float,
    only: tuple[str, ...],
) -> CheckReport:
    from gpuconsole.services import checking

    if spec is not None:
        return checking.check_image(
            session, spec, told.record, on_step=told.step, cancel=cancel, deadline_s=deadline_s, only=only
        )
    if container is not None:
        return checking.check_container(
            session, container, told.record, cancel=cancel, deadline_s=deadline_s, only=only
        )
    return checking.check_local(session, told.record, cancel=cancel, deadline_s=deadline_s, only=only)
