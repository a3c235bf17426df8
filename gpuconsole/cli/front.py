"""The front door: runs the command line, and is the one place where failures become sentences and exit codes."""

from __future__ import annotations

import errno
import gc
import os
import sys

from gpuconsole.cli.output import failure, talk
from gpuconsole.cli.quick import is_single_look, needs_parser, run_quick
from gpuconsole.cli.settings import debug_by_environment
from gpuconsole.core.errors import ConsoleError, ExitCode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; failures are told on stderr, without a traceback."""
    _open_streams()
    argv = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in argv[: _command_position(argv)] or debug_by_environment()
    try:
        code = run_quick(argv)
        if code is None:
            from gpuconsole.cli.parsed import run_parsed

            gc.enable()
            code = run_parsed(argv)
        sys.stdout.flush()
    except ConsoleError as error:
        if debug:
            _trace(error)
        failure(error, detail=debug)
        return int(error.exit_code)
    except KeyboardInterrupt:
        talk("\ngpuconsole: interrupted.")
        return int(ExitCode.INTERRUPTED)
    except (BrokenPipeError, SystemExit) as end:
        return _reader_left(end)
    except Exception as error:  # noqa: BLE001 (the last line before the person)
        return _unforeseen(error, debug=debug)
    return code


def prepare(arguments: Sequence[str] | None = None) -> None:
    """Import what such a command line begins with."""
    if needs_parser(sys.argv[1:] if arguments is None else arguments):
        import gpuconsole.cli.parsed  # noqa: F401


def leaves_nothing(arguments: Sequence[str] | None = None) -> bool:
    """Whether nothing is to be done any more once such a command line has run: no thread of it works on anything."""
    return is_single_look(sys.argv[1:] if arguments is None else arguments)


def _trace(error: Exception) -> None:
    """Show the traceback, harmless: the words of an error may hold text from outside."""
    import traceback

    from gpuconsole.core.text import plain

    talk(plain("".join(traceback.format_exception(error))).rstrip())


def _unforeseen(error: Exception, *, debug: bool) -> int:
    """A fault of our own, or an output that cannot be written; never a traceback unless it was asked for."""
    from gpuconsole.core.text import plain_line

    if debug:
        _trace(error)
    words = plain_line(f"{type(error).__name__}: {error}")
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EBADF):
        talk(f"gpuconsole: the output could not be written ({words}).")
        talk("  → Make room where it is written. What was launched, if anything, goes on: 'gpuconsole ps' shows it.")
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the rest would fail again at exit
        return int(ExitCode.BAD_FILE)
    talk(f"gpuconsole: something went wrong inside gpuconsole itself ({words}).")
    for note in getattr(error, "__notes__", ()):  # what a use case could not take back
        talk(f"  {plain_line(note)}")
    again = (
        "Report what stands above."
        if debug
        else "Run it again with --debug before the command, and report what it shows."
    )
    talk(f"  → {again}")
    return int(ExitCode.INTERNAL)


def _open_streams() -> None:
    """Give us streams that can be read and written, whatever we were started with: closed ones, narrow encodings."""
    if sys.stdin is None:
        sys.stdin = open(os.devnull)  # noqa: SIM115  # stays open as long as the program
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
        elif argument in ("-H", "--host", "--replay"):
            skip = True
        elif not argument.startswith("-"):
            return position
    return len(argv)
