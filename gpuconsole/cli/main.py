"""Where the program begins and ends: nothing is imported here before ctrl+c is in our hands."""

from __future__ import annotations

import gc
import os
import sys

TYPE_CHECKING = False  # that of typing would cost an import outside the guard of run()
if TYPE_CHECKING:
    import signal
    from collections.abc import Sequence
else:
    import _signal as signal  # built in; what it gives the name to makes enumerations of it first

_INTERRUPTED = 130


def run(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its exit code.

    Ctrl+c ends the program with 130 at any moment: without a word while it begins and while it ends; in between the
    command says what became of its work.
    """
    try:
        _end_at_once_when_interrupted()
        # What is imported now stays: looking through it for garbage takes a twentieth of a status. The front door lets
        # it be collected again for whatever lasts.
        gc.disable()
        from gpuconsole.cli import front

        front.prepare(arguments)
        _interrupt_the_command()
        code = front.main(arguments)
        _end_at_once_when_interrupted()
        if front.leaves_nothing(arguments):
            _leave_behind_modules(code)
    except KeyboardInterrupt:  # before there was a handler, or beside the command
        _leave()
    sys.exit(code)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; signals are left as they are."""
    from gpuconsole.cli import front

    return front.main(arguments)


def _end_at_once_when_interrupted() -> None:
    """Let ctrl+c end the process itself: a KeyboardInterrupt amid imports or at exit would be told by Python."""
    # What the caller ignores stays ignored: nohup, and jobs in the background of a shell without job control.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)


def _interrupt_the_command() -> None:
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _leave_behind_modules(code: int) -> None:
    """End the process without taking its modules apart one by one, which takes a tenth of a status."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):  # the usual way out knows what to do
        return
    os._exit(code)


def _leave(*_: object) -> None:
    os._exit(_INTERRUPTED)  # nothing is open: no command runs
