"""The terminal lent to something else: to a shell inside a container, or to a text that is to be marked."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from textual.app import SuspendNotSupported

from gpuconsole.core.errors import ConsoleError, Refused
from gpuconsole.services import tmux
from gpuconsole.tui.failures import tell_failure

if TYPE_CHECKING:
    from gpuconsole.engine.model import Container
    from gpuconsole.tui.app import ConsoleApp


@contextmanager
def terminal_lent(app: ConsoleApp) -> Iterator[None]:
    """The terminal as it was before the console, for the block; ctrl+c in it is for whoever has it now.

    Raises:
        SuspendNotSupported: The console does not draw on a terminal that it could give back.
    """
    app.desk.pause()
    try:
        with app.suspend(), _interrupts_passed_over():
            yield
    finally:
        app.desk.resume()
    app.refresh(layout=True)


@contextmanager
def _interrupts_passed_over() -> Iterator[None]:
    """Ctrl+c reaches all programs of the terminal, and would end the console once it has the terminal again."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # Not SIG_IGN: that would be inherited by the programs that are started.
    before = signal.signal(signal.SIGINT, lambda number, frame: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def wait_for_enter() -> None:
    """A message that stays only as long as the console takes to draw over it is none."""
    if sys.stdin.isatty():
        os.write(1, b"\r\n[enter goes back to the console]")
        sys.stdin.readline()


def enter(app: ConsoleApp, verb: str, container: Container) -> None:
    """Open a shell or the container's own terminal: in a tmux window inside tmux, else here, the console waiting."""
    arguments = [verb, "--here", container.name]
    try:
        arguments = ["--host", app.desk.address(), *arguments]
        if tmux.inside():
            tmux.show_window(container.name, tmux.our_command([*arguments, "--hold"]), mark=f"{verb}:{container.id}")
            return
        with terminal_lent(app):
            os.write(1, b"\x1b[2J\x1b[H")
            subprocess.run([sys.executable, "-P", "-m", "gpuconsole", *arguments], check=False)
            wait_for_enter()
    except SuspendNotSupported:
        tell_failure(app, Refused("This console has no terminal to lend.", hint=f"gpuconsole {verb} {container.name}"))
    except ConsoleError as error:
        tell_failure(app, error)
