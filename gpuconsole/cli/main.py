"""The ``gpuconsole`` command: its options, its commands, and the one place where failures become exit codes."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence

import click

from gpuconsole import __version__
from gpuconsole.cli.context import Settings
from gpuconsole.cli.lazy import LazyGroup
from gpuconsole.core.errors import ConsoleError, ExitCode

COMMANDS = {
    "status": ("gpuconsole.cli.status:status", "Every GPU: use, memory, temperature, and who holds it."),
    "ps": ("gpuconsole.cli.containers:ps", "Containers with their GPUs and GPU memory."),
    "images": ("gpuconsole.cli.images:images", "Local images with the PyTorch and CUDA inside."),
    "launch": ("gpuconsole.cli.launch:launch", "Start a PyTorch container with the chosen GPUs and volumes."),
    "check": ("gpuconsole.cli.check:check", "Prove that torch works inside a container."),
    "inspect": ("gpuconsole.cli.containers:inspect", "All about one container; secrets masked."),
    "logs": ("gpuconsole.cli.containers:logs", "Output of a container."),
    "shell": ("gpuconsole.cli.interactive:shell", "A shell inside a container."),
    "attach": ("gpuconsole.cli.interactive:attach", "Join a container's own terminal."),
    "start": ("gpuconsole.cli.actions:start", "Start a stopped container."),
    "stop": ("gpuconsole.cli.actions:stop", "Stop a container."),
    "restart": ("gpuconsole.cli.actions:restart", "Stop and start a container."),
    "pause": ("gpuconsole.cli.actions:pause", "Freeze a container, or let it go on with --resume."),
    "rm": ("gpuconsole.cli.actions:rm", "Remove a container."),
    "doctor": ("gpuconsole.cli.doctor:doctor", "What this machine lacks, and how to get it."),
    "completion": ("gpuconsole.cli.completion:completion", "Shell completion for bash, zsh or fish."),
}
"""Command → where it lives and its one line of help, in the order ``--help`` lists them."""


@click.group(
    cls=LazyGroup,
    commands_at=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    invoke_without_command=True,
    epilog="Every command has examples: gpuconsole COMMAND --help",
)
@click.option("-H", "--host", metavar="URL", envvar="GPUCONSOLE_HOST", help="Engine to talk to, as DOCKER_HOST has it.")
@click.option("--readonly", is_flag=True, help="Refuse everything that changes something.")
@click.option("--debug", is_flag=True, envvar="GPUCONSOLE_DEBUG", help="Show the traceback of a failure.")
@click.version_option(__version__, prog_name="gpuconsole")
@click.pass_context
def cli(ctx: click.Context, host: str | None, readonly: bool, debug: bool) -> None:
    """Watch, launch and prove PyTorch-CUDA containers on this machine's GPUs.

    Without a command it opens the console.
    """
    settings = Settings(host=host, debug=debug, readonly=readonly)
    ctx.obj = settings
    ctx.call_on_close(settings.close)
    if ctx.invoked_subcommand is None:
        from gpuconsole.tui.start import open_console

        ctx.exit(open_console(settings.session(), readonly=readonly))


def run(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its exit code."""
    sys.exit(main(arguments))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; failures are told on stderr, without a traceback."""
    from gpuconsole.cli.output import failure, talk

    _open_streams()
    argv = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in argv[: _command_position(argv)] or bool(os.environ.get("GPUCONSOLE_DEBUG"))
    try:
        result = cli.main(args=argv, prog_name="gpuconsole", standalone_mode=False)
        sys.stdout.flush()
    except ConsoleError as error:
        if debug:
            import traceback

            traceback.print_exception(error)
        failure(error, detail=debug)
        return int(error.exit_code)
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.ClickException as error:
        error.show()
        return int(ExitCode.USAGE)
    except (KeyboardInterrupt, click.Abort):
        talk("gpuconsole: interrupted.")
        return int(ExitCode.INTERRUPTED)
    except (BrokenPipeError, SystemExit) as end:
        return _reader_left(end)
    except Exception as error:  # noqa: BLE001 (the last line before the person)
        return _unforeseen(error, debug=debug)
    return int(result) if isinstance(result, int) else int(ExitCode.OK)


def _unforeseen(error: Exception, *, debug: bool) -> int:
    """A fault of our own, or an output that cannot be written; never a traceback unless it was asked for."""
    import traceback

    from gpuconsole.cli.output import talk
    from gpuconsole.core.text import plain_line

    if debug:
        traceback.print_exception(error)
    words = plain_line(f"{type(error).__name__}: {error}")
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EBADF):
        talk(f"gpuconsole: the output could not be written ({words}); what was begun goes on.")
        talk("  → Make room where it is written; 'gpuconsole ps' shows what runs.")
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the rest would fail again at exit
        return int(ExitCode.BAD_FILE)
    talk(f"gpuconsole: something went wrong inside gpuconsole itself ({words}).")
    talk("  → Run it again with --debug before the command, and report what it shows.")
    return int(ExitCode.INTERNAL)


def _open_streams() -> None:
    """Give us streams that can be written, whatever we were started with: closed ones, or narrow encodings."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115  # stays open as long as the program
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def _reader_left(end: BaseException) -> int:
    """The reader of our output went away (``| head``): that is its right, and the rest would fail again at exit."""
    # click meets a broken pipe itself, puts this wrapper around stdout, and exits as from a failure.
    if isinstance(end, SystemExit) and not type(sys.stdout).__name__.endswith("PacifyFlushWrapper"):
        raise end
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return int(ExitCode.OK)


def _command_position(argv: Sequence[str]) -> int:
    """Index of the command's name among the arguments, or their number."""
    skip = False
    for position, argument in enumerate(argv):
        if skip:
            skip = False
        elif argument in ("-H", "--host"):
            skip = True
        elif not argument.startswith("-"):
            return position
    return len(argv)
