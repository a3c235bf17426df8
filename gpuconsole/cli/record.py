"""``gpuconsole record``: what the console shows of this machine, written to a file."""

from __future__ import annotations

from pathlib import Path

import click

from gpuconsole.cli.context import Settings, pass_settings
from gpuconsole.cli.output import talk
from gpuconsole.cli.seconds import Seconds
from gpuconsole.core.errors import BadFile, ExitCode
from gpuconsole.core.text import plain_line, size


@click.command(
    epilog="\b\nExamples:\n  gpuconsole record -o run.jsonl.gz --seconds 600\n"
    "  gpuconsole --replay run.jsonl.gz\n  gpuconsole forecast run.jsonl.gz\n"
    "  gpuconsole doctor --report bug.jsonl.gz --recording run.jsonl.gz   # for a bug report"
)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, dir_okay=False), required=True, metavar="FILE",
    help="The file; NAME.jsonl.gz is compressed, - is standard output.",
)  # fmt: skip
@click.option("--seconds", type=Seconds(1, 7 * 86400), default=60.0, metavar="N", help="How long; 60 by default.")
@click.option(
    "--every", type=Seconds(0.25, 60), default=1.0, metavar="SECONDS", help="Between two looks; 1 by default."
)
@click.option("--check", metavar="NAME", help="Check this container meanwhile.")
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@click.option(
    "--with-names",
    is_flag=True,
    help="Keep names of the machine, users, folders, images and addresses; secrets are masked all the same.",
)
@pass_settings
def record(
    settings: Settings, output: Path, seconds: float, every: float, check: str | None, force: bool, with_names: bool
) -> int:
    """Record GPUs, processes, containers, images, runs and their output, as the console shows them.

    Names of the machine, its people and its folders are replaced by stand-ins; what programs write is kept as it is, so
    look at it before you give it away. Ctrl+c ends it early, and what was recorded is kept.
    """
    from gpuconsole.host.recording import STANDARD_OUTPUT
    from gpuconsole.services import recordings

    if check is not None:
        settings.may_change("run a check in a container")
    to_file = output != STANDARD_OUTPUT
    name = plain_line(str(output)) if to_file else "standard output"
    talk(f"Recording {seconds:g} s into {name}; ctrl+c ends it early.")
    if with_names:
        talk("  With the names of this machine, its users, folders, images and addresses; secrets are masked.")
    ended, before = False, _stamp(output)
    try:
        took = recordings.record(
            settings.session(), output, seconds=seconds, interval_s=every, check=check, replace=force,
            names=with_names,
        )  # fmt: skip
    except KeyboardInterrupt:
        ended, took = True, 0.0
    words = "Ended early; what was recorded is kept" if ended else f"Recorded {took:.0f} s"
    if not to_file:
        talk(f"{words}.")
        return ExitCode.OK
    if ended and _stamp(output) == before:
        old = "; what it held is still there" if before else ""
        raise BadFile(
            f"Nothing was recorded: it was ended before {name} was begun{old}.",
            hint="Let it go on until the GPUs were looked at once.",
        )
    held = output.stat().st_size
    if not held:  # ended before the first look
        raise BadFile(
            f"Nothing was recorded: {name} is empty.", hint="Let it go on until the GPUs were looked at once."
        )
    talk(f"{words}: {name}, {size(held)}.")
    talk(f"  See it by 'gpuconsole --replay {plain_line(str(output))}'.")
    return ExitCode.OK


def _stamp(path: Path) -> tuple[int, int, int] | None:
    """Changes with every write to the file; None where none is."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
