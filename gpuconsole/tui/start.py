"""Opening the console: the terminal taken and given back, whatever happens in between."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from gpuconsole.core.config import Config, Mistake, read_config
from gpuconsole.core.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from gpuconsole.services.session import Session
    from gpuconsole.tui.app import ConsoleApp

_WATCH_S = 2.0
_STARTED_S = 3.0
"""After so long the console has started, and collects garbage as any program."""
_ENDING = (signal.SIGTERM, signal.SIGHUP)
_LEAVING_S = 3.0
"""So long may leaving take after a signal: where the terminal is gone, writing to it may hold the console for ever."""
_CALM = b"\x1b[?1000;1002;1003;1006;1004;2004;2048l\x1b[<u\x1b[?25h\x1b[?1049l\x1b[0m"
"""Mouse and focus reports, bracketed paste and the other screen off, the cursor shown."""


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
    # What a look makes is dropped by the next one, and is seldom a circle: looking through it while it is needed
    # finds nothing.
    gc.set_threshold(10_000, 20, 10)
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
    # It is drawn on stderr, which textual leaves to nobody else.
    if not all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        raise UsageError(
            "The console needs a terminal for input, output and errors, and this is none.",
            hint="Use 'gpuconsole status' or 'gpuconsole ps' in scripts and pipes.",
        )
    # What is imported and made now stays: looking through it for garbage again and again costs a tenth of the start.
    gc.disable()
    _later(_STARTED_S, _collect_again)
    config = configuration()
    config = replace(config, bell=config.bell and bell)
    app = _recorded(replay, readonly, config) if replay is not None else _live(session, readonly, config)

    # What the caller has us ignore stays ignored, as under nohup.
    app.leave_at = tuple(each for each in _ENDING if signal.getsignal(each) is not signal.SIG_IGN)
    app.leaving = _backstop(app.leave_at)
    # Nobody would ever see or leave a console without terminal: it ends also where the signal that says so is ignored.
    number = signal.SIGHUP if signal.SIGHUP in app.leave_at else signal.SIGTERM
    threading.Thread(target=_watch_terminal, args=(app.leaving, number), name="terminal-watch", daemon=True).start()
    from gpuconsole.tui.terminal import Terminal

    app.driver_class = Terminal
    app.run()
    if app.failure is not None:
        raise app.failure
    return app.return_code if app.return_code is not None else int(ExitCode.OK)


def _watch_terminal(leaving: Callable[[int], None], number: int) -> None:
    """End the console when its terminal is gone: no signal may say so, or only to a thread that is held by writing."""
    while os.isatty(0):
        time.sleep(_WATCH_S)
    leaving(signal.SIGHUP)
    os.kill(os.getpid(), number)


def _backstop(numbers: Iterable[signal.Signals]) -> Callable[[int], None]:
    """What ends the console at a signal when it does not heed it: at once before it runs, else a little later.

    The terminal is as it was afterwards, as far as there is one any more.
    """
    fd = sys.stdin.fileno()
    before = termios.tcgetattr(fd)

    def end(number: int) -> None:
        with contextlib.suppress(termios.error, OSError):
            termios.tcsetattr(fd, termios.TCSANOW, before)
            os.set_blocking(1, False)  # nobody may be reading
            os.write(1, _CALM)
        os._exit(128 + number)

    def leaving(number: int) -> None:
        _later(_LEAVING_S, lambda: end(number))

    for number in numbers:
        signal.signal(number, lambda number, frame: end(number))
    return leaving


def _live(session: Session, readonly: bool, config: Config) -> ConsoleApp:
    from gpuconsole.services.desk import Desk

    desk = Desk(session)
    # The driver takes its time to start: it may do so while the screen is made.
    desk.look_ahead(config.refresh_s or 1.0)
    from gpuconsole.tui.app import ConsoleApp

    return ConsoleApp(desk, readonly=readonly, config=config)


def _recorded(replay: Path, readonly: bool, config: Config) -> ConsoleApp:
    from gpuconsole.services.replaydesk import ReplayDesk
    from gpuconsole.services.replayfile import load

    recording = load(replay)
    from gpuconsole.tui.replaying import ReplayApp

    return ReplayApp(ReplayDesk(recording), readonly=readonly, config=config)
