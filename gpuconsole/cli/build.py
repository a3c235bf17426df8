"""``gpuconsole build``: an image with PyTorch of our own Dockerfile."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gpuconsole.cli.context import Settings, pass_settings
from gpuconsole.cli.names import complete_reference
from gpuconsole.cli.output import data, failure, json_event, result, talk
from gpuconsole.core.document import jsonable
from gpuconsole.core.errors import ConsoleError, ExitCode
from gpuconsole.core.text import duration, size

if TYPE_CHECKING:
    from gpuconsole.cli.build_progress import BuildTeller
    from gpuconsole.probes.records import CheckReport
    from gpuconsole.services.building import Built
    from gpuconsole.services.buildorders import BuildOrder, Chosen
    from gpuconsole.services.cancelling import Cancellation
    from gpuconsole.services.runs import Runs
    from gpuconsole.services.session import Session

_EPILOG = """\b
Examples:
  gpuconsole build --torch 2.9 --cuda 12.8 --tag pytorch-cuda:v2.9
  gpuconsole build --print > Dockerfile && docker build -t mine - < Dockerfile
  gpuconsole build --base team/base:3 --index-url https://mirror.example/simple
\b
Ctrl+c ends it in the engine too and leaves nothing half made. No login and no secret ever goes
into a build. Proxies are those of Docker's configuration, as 'docker build' takes them.
\b
Environment: GPUCONSOLE_BUILD_BASE, GPUCONSOLE_BUILD_INDEX_URL, GPUCONSOLE_BUILD_TORCH_INDEX_URL
and GPUCONSOLE_BUILD_NETWORK stand for the options of those names.
\b
Exit codes: 0 built, and no check failed; 1 built, and a check failed; 2 there is no such build
of PyTorch; 5 base or package not found; 6 disk full; 9 the build failed; 130 ctrl+c."""


@click.command(epilog=_EPILOG)
@click.option("--torch", metavar="V", help="PyTorch, 2.9 or 2.9.1; the newest that runs here by default.")
@click.option("--cuda", metavar="V", help="CUDA it is built for, 12.8; by default what runs here.")
@click.option("--python", metavar="V", help="Python, 3.12 or 3.10: that of the base's Ubuntu.")
@click.option(
    "--base",
    metavar="REF",
    envvar="GPUCONSOLE_BUILD_BASE",
    shell_complete=complete_reference,
    help="Build on this image instead of nvidia/cuda; it needs Python 3, or apt-get to install it.",
)
@click.option("--tag", metavar="NAME", help="Name of the image; pytorch-cuda:TORCH-CUDA by default.")
@click.option(
    "--index-url",
    metavar="URL",
    envvar="GPUCONSOLE_BUILD_INDEX_URL",
    help="Take all Python packages from here, torch too.",
)
@click.option(
    "--torch-index-url",
    metavar="URL",
    envvar="GPUCONSOLE_BUILD_TORCH_INDEX_URL",
    help="Take torch from here instead of PyTorch's own index.",
)
@click.option(
    "--network",
    metavar="MODE",
    envvar="GPUCONSOLE_BUILD_NETWORK",
    help="Network of the build's steps, as docker build has it: host, none, or a name.",
)
@click.option(
    "--pull",
    type=click.Choice(["missing", "always", "never"]),
    default="missing",
    show_default=True,
    help="When the base is pulled.",
)
@click.option("--no-cache", "fresh", is_flag=True, help="Carry out every step, also those done before.")
@click.option("--force", is_flag=True, help="Also when the engine's disk seems too small.")
@click.option("--no-check", is_flag=True, help="Do not check the image afterwards.")
@click.option("--gpus", metavar="GPUS", help="For the check: N, device=0,2, all, auto or none.")
@click.option("--print", "only_print", is_flag=True, help="Only print the Dockerfile.")
@click.option("--json", "as_json", is_flag=True, help="JSON Lines, the schema first.")
@pass_settings
def build(
    settings: Settings,
    /,
    *,
    torch: str | None,
    cuda: str | None,
    python: str | None,
    base: str | None,
    tag: str | None,
    index_url: str | None,
    torch_index_url: str | None,
    network: str | None,
    pull: str,
    fresh: bool,
    force: bool,
    no_check: bool,
    gpus: str | None,
    only_print: bool,
    as_json: bool,
) -> int:
    """Build an image with PyTorch, JupyterLab and TensorBoard, check it, and print its name.

    torch, torchvision and torchaudio come in the versions that belong together, for one CUDA; a combination that
    PyTorch never published is refused with those there are. The image runs as a user that is not root, has a C
    compiler for torch.compile, and labels with all versions, so that 'gpuconsole images' knows what is inside.
    """
    from gpuconsole.launch.spec import PullPolicy
    from gpuconsole.services.buildorders import BuildOrder

    if only_print and as_json:
        raise click.UsageError("--print gives a Dockerfile, and --json tells of a build: one of them.")
    if no_check and gpus is not None:
        raise click.UsageError("--gpus is for the check, which --no-check leaves out.")
    order = BuildOrder(
        torch=torch,
        cuda=cuda,
        python=python,
        base=base,
        tag=tag,
        index_url=index_url,
        torch_index_url=torch_index_url,
        network=network,
        pull=PullPolicy(pull),
        fresh=fresh,
        force=force,
    )
    if only_print:
        return _print(settings.session(), order)
    settings.may_change("build an image")
    return _build(settings, order, check=not no_check, gpus=gpus, as_json=as_json)


def _print(session: Session, order: BuildOrder) -> int:
    """The Dockerfile alone; neither engine nor registry has to answer."""
    from dataclasses import replace

    from gpuconsole.images.dockerfile import dockerfile
    from gpuconsole.services.building import chosen_for, pinned_base
    from gpuconsole.services.buildorders import choose
    from gpuconsole.services.fitting import machine

    try:
        chosen = chosen_for(session, order)
    except ConsoleError as error:
        if error.exit_code is ExitCode.USAGE:
            raise
        host = machine(session).traits
        chosen = choose(order, host, architecture=host.architecture or "amd64")
    _note(chosen)
    base, why = pinned_base(session, chosen)
    if why:
        talk(f"Note: the base {base} stands there without a digest: {why}.")
    data(dockerfile(replace(chosen.recipe, base=base)).rstrip("\n"))
    return ExitCode.OK


def _build(settings: Settings, order: BuildOrder, *, check: bool, gpus: str | None, as_json: bool) -> int:
    from gpuconsole.cli.build_progress import build_teller
    from gpuconsole.services.building import chosen_for
    from gpuconsole.services.runs import Runs

    session = settings.session()
    chosen = chosen_for(session, order)
    _note(chosen)
    told = build_teller(as_json=as_json)
    told.begin(chosen)
    runs = Runs()
    try:
        try:
            built = _carried_out(session, order, chosen, runs, told)
        except ConsoleError as error:
            if as_json:
                _failed(error)
            raise
        _tell(session, built, as_json=as_json)
        code = _check(session, built, runs, gpus=gpus, as_json=as_json) if check else ExitCode.OK
        _tell_verdict(session, built, runs, as_json=as_json)
        return code
    finally:
        runs.close()


def _note(chosen: Chosen) -> None:
    """Say before the work what is known against it."""
    from gpuconsole.images.verdict import Word

    if chosen.verdict.word is Word.WILL_NOT_RUN:
        talk(f"Note: {chosen.name} will not run here: {chosen.verdict.reasons[0].text}.")


def _carried_out(session: Session, order: BuildOrder, chosen: Chosen, runs: Runs, told: BuildTeller) -> Built:
    from gpuconsole.cli.interrupts import left_at_once, run_interruptible
    from gpuconsole.services.buildruns import build_as_run

    def work(cancel: Cancellation) -> Built:
        return build_as_run(session, order, runs, cancel=cancel, chosen=chosen, on_state=told.state)

    try:
        return run_interruptible(
            work,
            tell=lambda: told.say("Interrupted: ending the build. Again to leave at once."),
            left=lambda: left_at_once(
                "the engine may go on for a moment", hint="'gpuconsole image prune' removes what it leaves."
            ),
        )
    finally:
        told.close()


def _failed(error: ConsoleError, *, event: str = "failed") -> None:
    json_event(
        {
            "event": event,
            "message": error.message,
            "hint": error.hint,
            "exit_code": int(error.exit_code),
            "log": error.detail.splitlines(),
        }
    )


def _tell(session: Session, built: Built, *, as_json: bool) -> None:
    from gpuconsole.services.buildruns import built_part

    if as_json:
        json_event(built_part(built))
        return
    talk(f"{built.name} is built: {size(built.image.size_bytes)}, {duration(built.seconds)}.")
    if built.replaced_id is not None:
        talk("The name led to another image before, which stays without it.")
    result(built.name)


def _tell_verdict(session: Session, built: Built, runs: Runs, *, as_json: bool) -> None:
    """Whether it runs here, from what went in and what the check saw."""
    from gpuconsole.images.verdictwords import plain_words
    from gpuconsole.services.fitting import engine_machine
    from gpuconsole.services.images import judge_local, known_facts
    from gpuconsole.services.seenimages import seen_images

    facts = known_facts(built.image, seen=seen_images(runs).get(built.image.id))
    verdict = judge_local(built.image, engine_machine(session).traits, facts)
    if as_json:
        reasons = [{"id": reason.id, "text": reason.text} for reason in verdict.reasons]
        json_event({"event": "verdict", "verdict": verdict.word.value, "reasons": reasons})
    else:
        talk(f"Here: {plain_words(verdict.word)} ({verdict.reasons[0].text}).")


def _check(session: Session, built: Built, runs: Runs, *, gpus: str | None, as_json: bool) -> int:
    """Check it and tell the verdict; gives the exit code."""
    from gpuconsole.cli.check_talk import CheckTalk
    from gpuconsole.cli.interrupts import left_at_once, run_interruptible
    from gpuconsole.services.buildruns import check_built

    told = CheckTalk()

    def work(cancel: Cancellation) -> CheckReport:
        return check_built(session, built, runs, gpus=gpus, on_record=told.record, on_step=told.step, cancel=cancel)

    try:
        report = run_interruptible(
            work,
            tell=told.interrupted,
            left=lambda: left_at_once("the check may still be ending", hint="It ends by itself within seconds."),
        )
    except ConsoleError as error:
        told.finish()
        # The image is there, and said to be: what kept the check from running is no failure of the build.
        failure(error)
        talk(f"{built.name} is not checked; do that later: gpuconsole check --image {built.name}")
        if as_json:
            _failed(error, event="unchecked")
        return int(error.exit_code)
    finally:
        told.finish()
    if as_json:
        json_event({"event": "checked", "verdict": jsonable(report.verdict), "checks": jsonable(report.checks)})
    else:
        talk(f"Check: {report.verdict.sentence}")
        talk(f"All of it: gpuconsole check --image {built.name}")
    return ExitCode.FAILED if report.failed else ExitCode.OK
