"""A command line with options to parse: click finds the command and runs it."""

from __future__ import annotations

from collections.abc import Sequence

import click

from gpuconsole.cli.commands import cli
from gpuconsole.cli.output import talk
from gpuconsole.core.errors import ExitCode


def run_parsed(argv: Sequence[str]) -> int:
    """Run the command that ``argv`` names and return its exit code; usage errors are told here.

    Raises:
        SystemExit: The reader of the output has left.
        ConsoleError: The command failed.
    """
    try:
        result = cli.main(args=list(argv), prog_name="gpuconsole", standalone_mode=False)
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.ClickException as error:
        error.show()
        return int(ExitCode.USAGE)
    except click.Abort:  # ctrl+c, or the end of input at a question
        talk("gpuconsole: interrupted.")
        return int(ExitCode.INTERRUPTED)
    return int(result) if isinstance(result, int) else int(ExitCode.OK)
