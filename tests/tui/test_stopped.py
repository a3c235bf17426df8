"""The console stopped by somebody and gone on with, and a terminal that goes while nobody is told."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from gpuconsole.core.errors import ExitCode
from tests.rig.engines import Engine
from tests.rig.nvml import NvmlBox
from tests.rig.terminal import Terminal
from tests.rig.tmux import Tmux
from tests.tui.in_tmux import CALM, PATIENCE_S, Seat, alive, below, seat, wait

STOPPED = "T"
SELECTS = ("23", "270", "72")
"""select and pselect6, as x86-64 and aarch64 number them: nothing else in the console waits by these."""


@pytest.fixture
def person(tmux: Tmux, engine_modern: Engine, nvml_box: NvmlBox, tmp_path: Path) -> Seat:
    """Give a terminal of 80×24 on the rig."""
    return seat(tmux, engine_modern.host, nvml_box, tmp_path)


def shell(person: Seat) -> None:
    """Have a shell that reads its lines itself, as the one of a person does."""
    person.type("exec bash --norc --noprofile")
    person.type("clear; echo shell-$((40+1))")
    person.pane.wait_for("shell-41", patience_s=PATIENCE_S)


def state(pid: int) -> str:
    """How the process is, in the kernel's letter."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def readers(pid: int) -> int:
    """Threads that wait for what is typed."""
    calls = [path.read_text().split()[0] for path in Path(f"/proc/{pid}/task").glob("*/syscall")]
    return sum(each in SELECTS for each in calls)


def pressed(person: Seat, key: str, heard: Callable[[], bool]) -> bool:
    """Press a key; whether it was heard within a second."""
    person.pane.keys(key)
    end = time.monotonic() + 1
    while not heard() and time.monotonic() < end:
        time.sleep(0.05)
    return heard()


def shows(person: Seat, text: str) -> bool:
    """Whether the pane shows it."""
    return text in person.pane.capture()


@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGTSTP], ids=["STOP", "TSTP"])
def test_stopped_and_gone_on_with_as_often_as_wanted_it_hears_and_leaves(person: Seat, number: signal.Signals) -> None:
    shell(person)
    before = person.sane()
    pid = person.start()
    person.pane.wait_for("No containers yet", patience_s=PATIENCE_S)  # all is drawn
    for _ in range(4):
        os.kill(pid, number)
        person.pane.wait_for("Stopped", patience_s=PATIENCE_S)
        person.type("clear; echo shell-$((40+2))")
        person.pane.wait_for("shell-42", patience_s=PATIENCE_S)
        person.type("fg")
        person.pane.wait_for("[Containers", patience_s=PATIENCE_S)
        # What is typed before it has the terminal again is dropped, as by other programs: a person presses once more.
        for key, heard in (("3", "[Processes"), ("1", "[Containers")):
            wait(partial(pressed, person, key, partial(shows, person, heard)), what=f"{key} is heard")
        wait(lambda: readers(pid) == 1, what="one reader, not one more with each stop")
    wait(lambda: pressed(person, "q", lambda: not alive(pid)), what="its end", shown=person.pane.capture)
    wait(lambda: person.modes == CALM, what="the terminal as it was")
    assert person.sane() == before


def test_sent_to_the_background_it_waits_there(person: Seat) -> None:
    shell(person)
    pid = person.start()
    person.pane.wait_for("No containers yet", patience_s=PATIENCE_S)  # all is drawn
    os.kill(pid, signal.SIGSTOP)
    person.pane.wait_for("Stopped", patience_s=PATIENCE_S)
    person.type("bg; clear; echo shell-$((40+2))")
    person.pane.wait_for("shell-42", patience_s=PATIENCE_S)
    wait(lambda: state(pid) == STOPPED, what="it to wait", shown=person.pane.capture)
    person.type("fg")
    person.pane.wait_for("[Containers", patience_s=PATIENCE_S)
    wait(lambda: pressed(person, "q", lambda: not alive(pid)), what="its end", shown=person.pane.capture)
    wait(lambda: not below(person.shell), what="the end of all below it")


def test_stopped_while_the_terminal_is_lent_it_waits_as_before(person: Seat, engine_modern: Engine) -> None:
    engine_modern.docker("run", "-d", "--name", "train", engine_modern.load("small"), "sleep", "9999")
    shell(person)
    person.type("unset TMUX TMUX_PANE")
    before = person.sane()
    pid = person.start()
    person.pane.wait_for("train", patience_s=PATIENCE_S)
    person.pane.keys("s")
    person.pane.wait_for("#", patience_s=PATIENCE_S)
    person.pane.send("exit")
    person.pane.keys("Enter")
    person.pane.wait_for("enter goes back", patience_s=PATIENCE_S)
    person.pane.keys("C-z")
    person.pane.wait_for("Stopped", patience_s=PATIENCE_S)
    person.type("clear; fg")
    wait(lambda: state(pid) != STOPPED, what="it to go on", shown=person.pane.capture)
    person.pane.keys("Enter")
    person.pane.wait_for("[Containers", patience_s=PATIENCE_S)
    wait(lambda: readers(pid) == 1, what="one reader")
    wait(lambda: pressed(person, "q", lambda: not alive(pid)), what="its end", shown=person.pane.capture)
    assert person.sane() == before


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-"])
def test_with_a_closed_stream_it_says_that_this_is_no_terminal(tmp_path: Path, closed: str) -> None:
    terminal = Terminal(
        ["sh", "-c", f"{shlex.join([sys.executable, '-m', 'gpuconsole'])} {closed}"], env=os.environ, folder=tmp_path
    )
    try:
        assert terminal.wait(patience_s=PATIENCE_S) == ExitCode.USAGE
        if "2" not in closed:
            terminal.wait_for("needs a terminal")
    finally:
        terminal.close()


@pytest.mark.parametrize("ignored", [{signal.SIGHUP}, {signal.SIGHUP, signal.SIGTERM}], ids=["HUP", "HUP and TERM"])
def test_without_its_terminal_it_ends_whatever_the_caller_ignores(
    nvml_box: NvmlBox, tmp_path: Path, ignored: set[signal.Signals]
) -> None:
    ignoring = "import os, signal, sys\n" + "".join(
        f"signal.signal({int(number)}, signal.SIG_IGN)\n" for number in ignored
    )
    terminal = Terminal(
        [sys.executable, "-c", f"{ignoring}os.execv(sys.executable, [sys.executable, '-m', 'gpuconsole'])"],
        env={**os.environ, **nvml_box.env(), "DOCKER_HOST": f"unix://{tmp_path}/none.sock", "TERM": "xterm-256color"},
        folder=tmp_path,
    )
    terminal.wait_for("H200")
    terminal.hang_up()
    try:
        assert terminal.wait(patience_s=PATIENCE_S) in (128 + signal.SIGTERM, 128 + signal.SIGHUP)
    finally:
        terminal.close()
