"""Opening the console: the terminal taken and given back, whatever happens in between."""

from __future__ import annotations

import signal
import sys
from types import FrameType
from typing import TYPE_CHECKING

from gpuconsole.core.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from gpuconsole.services.session import Session


def open_console(session: Session, *, readonly: bool) -> int:
    """Run the console until it is left; returns the exit code.

    Raises:
        UsageError: There is no terminal to draw on.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(
            "The console needs a terminal, and this is none.",
            hint="Use 'gpuconsole status' or 'gpuconsole ps' in scripts and pipes.",
        )
    from gpuconsole.services.desk import Desk
    from gpuconsole.tui.app import ConsoleApp

    app = ConsoleApp(Desk(session), readonly=readonly)

    def leave(number: int, frame: FrameType | None) -> None:
        app.call_later(app.exit, return_code=128 + number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, leave)
    app.run()
    return app.return_code if app.return_code is not None else int(ExitCode.OK)
