"""``gpuconsole launch``: options in, a running container out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from gpuconsole.cli.context import Settings, pass_settings
from gpuconsole.cli.launch_options import launch_options, typed_fields
from gpuconsole.cli.launch_profile import launch_spec
from gpuconsole.cli.names import complete_image, complete_launch

if TYPE_CHECKING:
    from gpuconsole.launch.spec import LaunchSpec
    from gpuconsole.services.cancelling import Cancellation
    from gpuconsole.services.launching import Launched
    from gpuconsole.services.session import Session

_EPILOG = """\b
Examples:
  gpuconsole launch pytorch/pytorch:2.9.0-cuda12.8-cudnn9-runtime
  gpuconsole launch IMAGE --gpus 2 -v .:/workspace -- torchrun --standalone --nproc-per-node 2 train.py
  gpuconsole launch IMAGE --gpus device=0,2 -v ~/data:/data:ro -v runs:/runs -p 8888:8888
  gpuconsole launch IMAGE --rm --wait -- python -c 'import torch; print(torch.__version__)'
  gpuconsole launch IMAGE --kind torchrun --gpus 2 -v .:/workspace -w /workspace -- train.py
  gpuconsole launch IMAGE --kind jupyter -v .:/workspace -w /workspace
  gpuconsole launch train --gpus 4 -e LR=0.1 --dry-run
\b
--gpus as docker has it: a number is a count, the freest of them; device=0,2 names indices
or UUIDs; all, none, auto (one). Containers get them by UUID, whatever was written.
A port is on 127.0.0.1 unless an address is written. /dev/shm gets 8 GiB, half of the
memory at most, since the engine's own 64 MiB kill DataLoader workers and NCCL.
With folders of the host it runs as you, under your name, with a home in /tmp: files come out
as yours. --user image keeps the image's own user.
Secrets: -e WANDB_API_KEY or -e MLFLOW_TRACKING_TOKEN pass them from this shell, and
--secret netrc=~/.netrc as a file, which nobody sees who inspects the container.
Ctrl+c up to the first second after the start leaves nothing behind; later, and while
--wait follows it, the container goes on."""


FORMS = ("docker", "compose", "toml")
"""What ``--dry-run`` can print."""


class _LaunchCommand(click.Command):
    """Takes everything after ``--`` as the command for the container, and nothing before it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments."""
        words: list[str] = []
        if "--" in args:
            cut = args.index("--")
            args, words = args[:cut], args[cut + 1 :]
        ctx.meta["command"] = tuple(words)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            told = f"{error.format_message()} Options of the command that runs in the container go after --."
            raise click.UsageError(told, ctx) from error
        except click.UsageError as error:
            if "unexpected extra argument" not in error.message:
                raise
            told = f"{error.message} Write -- between PROFILE or IMAGE with its options and the command to run in it."
            raise click.UsageError(told, ctx) from error

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """The usage line's parts."""
        return [*super().collect_usage_pieces(ctx), "[-- COMMAND …]"]


@click.command(cls=_LaunchCommand, epilog=_EPILOG, options_metavar="[OPTIONS]")
@click.argument("word", metavar="PROFILE|IMAGE", shell_complete=complete_launch)
@click.option("--image", metavar="IMAGE", help="In place of the profile's image.", shell_complete=complete_image)
@launch_options
@click.option("-d", "--detach", is_flag=True, help="In the background, as it always is without --wait.")
@click.option("--wait", is_flag=True, help="Follow its output and return its exit code.")
@click.option("--when-free", is_flag=True, help="Wait until nobody is on the GPUs it is to get.")
@click.option("--dry-run", is_flag=True, help="Print the docker run line and launch nothing.")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMS),
    help="What --dry-run prints: the docker run line, a compose file, or a profile.",
)
@click.option("--write-files", is_flag=True, help="With --dry-run: make the small files that the printed form names.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON document.")
@pass_settings
@click.pass_context
def launch(
    ctx: click.Context,
    settings: Settings,
    /,
    *,
    word: str,
    image: str | None,
    detach: bool,
    wait: bool,
    when_free: bool,
    dry_run: bool,
    form: str | None,
    write_files: bool,
    as_json: bool,
    **given: Any,
) -> int:
    """Start a container from a profile, or from an image, with the chosen GPUs and volumes; its name is printed.

    A word is a profile when gpuconsole.toml, of this project or your own, has one of that name; everything else, and
    all that has a ':', '/', '.' or '@' in it, is an image. Options come on top of what the profile says.

    Without a COMMAND the image's own runs, with a terminal, so that a shell stays to be attached to.
    """
    if detach and wait:
        raise click.UsageError("--detach and --wait exclude each other.")
    if form is not None and not dry_run:
        raise click.UsageError("--format says what --dry-run prints; give both.")
    if form not in (None, FORMS[0]) and as_json:
        raise click.UsageError(f"--json and --format {form} exclude each other.")
    if write_files and not dry_run:
        raise click.UsageError("--write-files makes what --dry-run names; give both.")
    if write_files and form == "toml":
        raise click.UsageError("A profile names no files, so --write-files and --format toml exclude each other.")
    if not dry_run:
        settings.may_change("launch a container")
    if write_files:
        settings.may_change("make files")
    session = settings.session()
    typed = typed_fields(given, command=ctx.meta["command"])
    asked = launch_spec(session, word, image, typed, ask=not dry_run)
    if dry_run:
        from gpuconsole.cli import launch_dryrun

        return launch_dryrun.dry_run(
            session,
            asked.spec,
            asked.options,
            form=form or FORMS[0],
            profile=asked.profile,
            foreground=wait,
            as_json=as_json,
            write_files=write_files,
        )
    return bring_up(session, asked.spec, wait=wait, as_json=as_json, when_free=when_free)


def bring_up(session: Session, spec: LaunchSpec, *, wait: bool, as_json: bool, when_free: bool = False) -> int:
    """Launch ``spec``, tell how it goes, and give the exit code."""
    from gpuconsole.cli.interrupts import left_at_once, run_interruptible
    from gpuconsole.cli.launch_talk import LaunchTalk, Passing
    from gpuconsole.services import launching

    told = LaunchTalk(as_json=as_json)
    passing = Passing(to_stderr=as_json) if wait else None

    def work(cancel: Cancellation) -> Launched:
        return launching.launch(session, spec, told.step, cancel=cancel, on_output=passing, when_free=when_free)

    try:
        launched = run_interruptible(
            work,
            tell=told.interrupted,
            left=lambda: left_at_once(told.what_is_left, hint="See what there is by 'gpuconsole ps'."),
        )
    finally:
        if passing is not None:
            passing.finish()
    return told.result(launched, followed=wait)
