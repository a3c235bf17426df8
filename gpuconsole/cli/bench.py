"""``gpuconsole bench``: how fast is this container, image or machine, and against what?"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from gpuconsole.cli.context import Settings, pass_settings
from gpuconsole.cli.lazy import LazyGroup
from gpuconsole.cli.names import complete_container
from gpuconsole.cli.others import others_option, yes_option
from gpuconsole.cli.probed import container_to_enter, image_spec
from gpuconsole.cli.seconds import Seconds
from gpuconsole.core.errors import ExitCode

if TYPE_CHECKING:
    from gpuconsole.cli.bench_talk import BenchTalk
    from gpuconsole.engine.model import Container
    from gpuconsole.launch.spec import LaunchSpec
    from gpuconsole.probes.benchrecords import BenchRun
    from gpuconsole.probes.records import Record
    from gpuconsole.services.benching import Benched, BenchWish
    from gpuconsole.services.cancelling import Cancellation
    from gpuconsole.services.session import Session

_RUN = "run"
_COMMANDS = {
    "history": ("gpuconsole.cli.bench_records:history", "What was measured before, and how it changed."),
    "compare": ("gpuconsole.cli.bench_records:compare", "Two runs beside each other."),
    "export": ("gpuconsole.cli.bench_records:export", "A run without names, to give away."),
    "import": ("gpuconsole.cli.bench_records:import_", "Take in a run of another machine."),
}
_EPILOG = """\b
Examples:
  gpuconsole bench llama-ft
  gpuconsole bench --image pytorch/pytorch:2.9.0-cuda12.8-cudnn9-runtime --gpus 1 --full
  gpuconsole bench --local --only mm,mem
  gpuconsole bench llama-ft --json | jq .headline
  gpuconsole bench compare
\b
It takes a minute, or ten with --full, at most 40 % of the free GPU memory, and changes no
setting. Each score is graded by the nearest thing there is to compare it with: sibling GPUs,
its own past, a reference, the datasheet; the rule stands beside the grade. Results that spread
too far, or were taken while others used the GPU, are marked, and judge nothing later. On
ctrl+c what was measured is shown and kept. A container called like one of the commands:
gpuconsole bench run NAME.

\b
Exit codes: 0 all was measured, and nothing is far below what it should be; 1 something is, or
was wrong or could not be measured; 10 the time was over before the end; 130 ctrl+c."""


class BenchGroup(LazyGroup):
    """What is no command's name is what is to be measured."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the command's name out, or put that of measuring in."""
        told = args[0] if args else ""
        if told not in (*_COMMANDS, _RUN, *ctx.help_option_names) and not (ctx.resilient_parsing and not args):
            args = [_RUN, *args]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Both forms."""
        return ["[OPTIONS] [NAME]", "|", "COMMAND ..."]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The options of measuring, and the commands."""
        options = [each for each in run.get_params(ctx) if isinstance(each, click.Option)]
        with formatter.section("Options"):
            formatter.write_dl([record for each in options if (record := each.get_help_record(ctx))])
        self.format_commands(ctx, formatter)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Commands, containers and the options of measuring."""
        if incomplete.startswith("-"):
            return run.shell_complete(ctx, incomplete)
        return [*super().shell_complete(ctx, incomplete), *complete_container(ctx, run.params[0], incomplete)]


@click.group(cls=BenchGroup, commands_at=_COMMANDS, epilog=_EPILOG)
def bench() -> None:
    """Measure how fast NAME is, and grade it against what it should be.

    It runs a program inside, so that a container of another user asks for its name first.
    """


@bench.command(_RUN, hidden=True, epilog="\b\nExamples:\n  gpuconsole bench run history")
@click.argument("name", metavar="[NAME]", required=False, shell_complete=complete_container)
@click.option("--image", metavar="REF", help="Measure in a fresh container of this image instead.")
@click.option("--local", is_flag=True, help="Measure this machine's own Python instead.")
@click.option("--quick", is_flag=True, help="The short ones, in a minute; so it is without --full.")
@click.option("--full", is_flag=True, help="All of them, in ten minutes.")
@click.option("--only", metavar="NAMES", multiple=True, help="Only these, by name or code, with commas: mm,B05.")
@click.option("--gpus", metavar="GPUS", help="With --image: N, device=0,2, all, auto or none.")
@click.option("--timeout", metavar="SECONDS", type=Seconds(1, 86400), help="For all; 60 by default, 600 with --full.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON document.")
@yes_option
@others_option
@pass_settings
def run(
    settings: Settings,
    /,
    *,
    name: str | None,
    image: str | None,
    local: bool,
    quick: bool,
    full: bool,
    only: tuple[str, ...],
    gpus: str | None,
    timeout: float | None,
    as_json: bool,
    yes: bool,
    others: bool,
) -> int:
    """Measure the container NAME, also one that is called like a command of 'bench'."""
    if sum((name is not None, image is not None, local)) != 1:
        raise click.UsageError("Give the name of a container, or --image REF, or --local: one of them.")
    if gpus is not None and image is None:
        raise click.UsageError("--gpus goes with --image: a container that runs has its GPUs already.")
    if quick and full:
        raise click.UsageError("--quick and --full exclude each other.")
    wish = _wish(only, full=full, timeout=timeout)
    if not local:
        settings.may_change("run a benchmark in a container")
    from gpuconsole.cli.bench_talk import BenchTalk
    from gpuconsole.cli.interrupts import left_at_once, run_interruptible

    session, told = settings.session(), BenchTalk(longest_s=wish.longest_s)
    spec = None if image is None else image_spec(session, image, gpus)
    container = None
    if name is not None:
        container = container_to_enter(settings, name, "a benchmark", verb="measure", yes=yes, others=others)

    def work(cancel: Cancellation) -> Benched:
        return _recorded(session, told, wish, container=container, spec=spec, cancel=cancel)

    try:
        benched = run_interruptible(
            work,
            tell=told.interrupted,
            left=lambda: left_at_once("the benchmark may still be ending", hint="It ends by itself within seconds."),
        )
    finally:
        told.finish()
    told.result(benched, as_json=as_json)
    if image is not None and gpus is None:
        told.no_gpu_given(benched.run)
    return exit_code(benched.run)


def _wish(only: tuple[str, ...], *, full: bool, timeout: float | None) -> BenchWish:
    """What is asked for; names that no benchmark has are refused before anything is started."""
    from gpuconsole.probes.catalog import benchmarks_for
    from gpuconsole.services.benching import BenchWish

    names = tuple(name.strip() for each in only for name in each.split(",") if name.strip())
    if only and not names:
        raise click.UsageError("--only takes names or codes of benchmarks, with commas: --only mm,B05.")
    benchmarks_for("full", names)
    return BenchWish(full=full, only=names, deadline_s=timeout)


def exit_code(run: BenchRun) -> int:
    """How a run ended, as an exit code."""
    from gpuconsole.probes.records import RunEnd

    if run.end is RunEnd.CANCELLED:
        return ExitCode.INTERRUPTED
    if run.end is RunEnd.TIMEOUT:
        return ExitCode.TIMEOUT
    return ExitCode.FAILED if run.failed or run.end is RunEnd.BROKEN else ExitCode.OK


def _recorded(
    session: Session,
    told: BenchTalk,
    wish: BenchWish,
    *,
    container: Container | None,
    spec: LaunchSpec | None,
    cancel: Cancellation,
) -> Benched:
    """Measure as a run that the console shows too."""
    from gpuconsole.services import benching
    from gpuconsole.services.benchruns import recorded
    from gpuconsole.services.runs import Runs

    def measure(advance: Callable[[Record], None]) -> Benched:
        def on_record(record: Record) -> None:
            told.record(record)
            advance(record)

        if spec is not None:
            return benching.bench_image(session, spec, wish, on_record, on_step=told.step, cancel=cancel)
        if container is not None:
            return benching.bench_container(session, container, wish, on_record, cancel=cancel)
        return benching.bench_local(session, wish, on_record, cancel=cancel)

    subject = container.name if container is not None else spec.image if spec is not None else benching.THIS_MACHINE
    runs = Runs()
    try:
        return recorded(runs, subject, "" if container is None else container.id, measure)
    finally:
        runs.close()
