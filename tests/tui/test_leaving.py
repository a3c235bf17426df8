"""A console that is told to end ends, whatever holds it."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from tests.rig.owner import wait_until

HELD = """
import pathlib, sys, threading
from gpuconsole.services.session import Session
from gpuconsole.tui import app, start
start._LEAVING_S = 1.0
def hold(self):
    pathlib.Path(sys.argv[1]).touch()
    threading.Event().wait()
app.ConsoleApp.on_mount = hold
sys.exit(start.open_console(Session(host="unix:///nowhere.sock"), readonly=False))
"""


def _take_terminal() -> None:
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@pytest.mark.parametrize("how", ["SIGTERM", "SIGHUP", "terminal gone"])
def test_it_ends_also_when_its_own_thread_is_held(tmp_path: Path, how: str) -> None:
    held = tmp_path / "held"
    ours, its = pty.openpty()
    console = subprocess.Popen(
        [sys.executable, "-c", HELD, str(held)], stdin=its, stdout=its, stderr=its, preexec_fn=_take_terminal,
        env={**os.environ, "TERM": "xterm-256color", "XDG_STATE_HOME": str(tmp_path)},
    )  # fmt: skip
    os.close(its)
    try:
        wait_until(held.exists, what="the console's thread is held")
        if how == "terminal gone":
            os.close(ours)
        else:
            console.send_signal(getattr(signal, how))
        number = signal.SIGTERM if how == "SIGTERM" else signal.SIGHUP
        assert console.wait(timeout=60) == 128 + number
    finally:
        console.kill()
        console.wait()
