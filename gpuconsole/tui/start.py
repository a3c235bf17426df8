"""Opening the console: the terminal taken and given back, whatever happens in between."""

from __future__ import annotations

import functools
import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from types import FrameType
from typing import TYPE_CHECKING

from gpuconsole.core.config import Config, Mistake, read_config
from gpuconsole.core.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from gpuconsole.services.desk import Desk
    from gpuconsole.services.session import Session

_WATCH_S = 2.0
_LEAVING_S = 5.0
"""A console told to end has so long: where the terminal is gone, its own writing may hold it for ever."""
_STARTED_S = 3.0
"""After so long the console has started, and collects garbage as any program."""


def configuration() -> Config:
    """The user's configuration.

    Raises:
        BadFile: It cannot be read, or holds mistakes.
    """

    def check(config: Config) -> list[Mistake]:
        if not config.keys and config.theme is None:
            return []  # every screen is imported to look at keys
        from gpuconsole.tui.keymapcheck import check

        return check(config)

    return read_config(check=check)


def _later(seconds: float, act: Callable[[], None]) -> None:
    timer = threading.Timer(seconds, act)
    timer.daemon = True
    timer.start()


def _collect_again() -> None:
    gc.freeze()
    gc.enable()


def open_console(session: Session, *, readonly: bool, bell: bool = True, replay: Path | None = None) -> int:
    """Run the console until it is left; returns the exit code.

    Args:
        session: The GPUs and the engine.
        readonly: Take away everything that changes something.
        bell: Let the terminal's bell ring, unless the configuration silences it.
        replay: A recording to be played in the place of GPUs and engine.

    Raises:
        UsageError: There is no terminal to draw on.
        BadFile: The configuration cannot be read, or holds mistakes; or the recording is none.
        NotFound: There is no such recording.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(
            "The console needs a terminal, and this is none.",
            hint="Use 'gpuconsole status' or 'gpuconsole ps' in scripts and pipes.",
        )
    # What is imported and made now stays: looking through it for garbage again and again costs a tenth of the start.
    gc.disable()
    _later(_STARTED_S, _collect_again)
    config = configuration()
    desk = _desk(session, config) if replay is None else _recorded(replay)
    from gpuconsole.tui.app import ConsoleApp

    app = ConsoleApp(desk, readonly=readonly, config=replace(config, bell=config.bell and bell))

    def leave(number: int, frame: FrameType | None = None) -> None:
        app.call_later(app.exit, return_code=128 + number)
        _later(_LEAVING_S, functools.partial(os._exit, 128 + number))

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, leave)
    threading.Thread(target=_watch_terminal, args=(leave,), name="terminal-watch", daemon=True).start()
    app.run()
    return app.return_code if app.return_code is not None else int(ExitCode.OK)


def _watch_terminal(leave: Callable[[int], None]) -> None:
    """End the console when its terminal is gone: the signal that says so can reach a thread that does not hear it."""
    while os.isatty(0):
        time.sleep(_WATCH_S)
    leave(signal.SIGHUP)


def _desk(session: Session, config: Config) -> Desk:
    from gpuconsole.services.desk import Desk

    desk = Desk(session)
    # The driver takes its time to start: it may do so while the screen is made.
    desk.look_ahead(config.refresh_s or 1.0)
    return desk


def _recorded(replay: Path) -> Desk:
    from gpuconsole.services.replaydesk import ReplayDesk
    from gpuconsole.services.replayfile import load

    return ReplayDesk(load(replay))
