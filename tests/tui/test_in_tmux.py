"""The console in a real tmux: it comes, goes, and leaves the terminal as it was, whatever happens."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.rig.engines import Engine
from tests.rig.nvml import NvmlBox
from tests.rig.tmux import Tmux
from tests.tui.in_tmux import CALM, LEFT, PATIENCE_S, Seat, alive, below, seat, signalled, wait

ANSWERS = "while read -r line; do echo got-${line##*round }; done"
"""What a container runs that answers each line."""


@pytest.fixture
def person(tmux: Tmux, engine_modern: Engine, nvml_box: NvmlBox, tmp_path: Path) -> Seat:
    """Give a terminal of 80×24 on the rig."""
    return seat(tmux, engine_modern.host, nvml_box, tmp_path)


def test_it_opens_and_leaves_the_terminal_as_it_was(person: Seat) -> None:
    before = person.sane()
    person.type("echo what was there before")
    person.start()
    shown = person.pane.wait_for("0 H200")
    assert "what was there before" not in shown
    person.pane.keys("q")
    assert person.left() == 0
    assert person.modes == CALM
    assert person.sane() == before
    wait(lambda: not below(person.shell), what="the end of all that was started")


def test_attach_and_detach_ten_times_in_windows_of_their_own(person: Seat, engine_modern: Engine, tmux: Tmux) -> None:
    image = engine_modern.load("small")
    engine_modern.docker("run", "-d", "-i", "-t", "--name", "train", image, "sh", "-c", ANSWERS)
    before = person.sane()
    person.start()
    person.pane.wait_for("train")
    for number in range(10):
        person.pane.keys("a")
        wait(lambda: len(tmux.windows()) == 2, what="a window for it")
        window = tmux.run("list-panes", "-s", "-F", "#{pane_id}").split()[-1]
        opened = type(person.pane)(tmux, window)
        opened.wait_for("leaves it running", patience_s=PATIENCE_S)
        opened.send(f"round {number}")
        opened.keys("Enter")
        opened.wait_for(f"got-{number}", patience_s=PATIENCE_S)  # from here on the keys are the container's
        opened.keys("C-]", "C-q")
        wait(lambda: len(tmux.windows()) == 1, what="the window's end")
    assert "true" in engine_modern.docker("inspect", "-f", "{{.State.Running}}", "train").stdout
    person.pane.keys("q")
    assert person.left() == 0
    assert person.modes == CALM
    assert person.sane() == before


def test_attach_and_detach_ten_times_without_tmux(
    tmux: Tmux, engine_modern: Engine, nvml_box: NvmlBox, tmp_path: Path
) -> None:
    image = engine_modern.load("small")
    engine_modern.docker("run", "-d", "-i", "-t", "--name", "train", image, "sh", "-c", ANSWERS)
    person = seat(tmux, engine_modern.host, nvml_box, tmp_path)
    person.type("unset TMUX TMUX_PANE")
    before = person.sane()
    person.start()
    person.pane.wait_for("train")
    for number in range(10):
        person.pane.keys("a")
        person.pane.wait_for("leaves it running", patience_s=PATIENCE_S)
        person.pane.send(f"round {number}")
        person.pane.keys("Enter")
        person.pane.wait_for(f"got-{number}", patience_s=PATIENCE_S)
        person.pane.keys("C-]", "C-q")
        person.pane.wait_for("enter goes back", patience_s=PATIENCE_S)
        person.pane.keys("Enter")
        person.pane.wait_for("[Containers", patience_s=PATIENCE_S)
    person.pane.keys("q")
    assert person.left() == 0
    assert person.modes == CALM
    assert person.sane() == before
    wait(lambda: not below(person.shell), what="the end of all that was started")


@pytest.mark.parametrize("key", ["a", "s", "y"])
def test_ctrl_c_while_the_terminal_is_lent_is_not_the_consoles(
    tmux: Tmux, engine_modern: Engine, nvml_box: NvmlBox, tmp_path: Path, key: str
) -> None:
    image = engine_modern.load("small")
    engine_modern.docker("run", "-d", "-i", "-t", "--name", "train", image, "sh", "-c", ANSWERS)
    person = seat(tmux, engine_modern.host, nvml_box, tmp_path)
    person.type("unset TMUX TMUX_PANE")
    before = person.sane()
    person.start()
    person.pane.wait_for("train")
    person.pane.keys(key)
    if key == "y":
        person.pane.wait_for("enter copies", patience_s=PATIENCE_S)
        person.pane.keys("v")
    elif key == "a":
        person.pane.wait_for("leaves it running", patience_s=PATIENCE_S)
        # The line stands a moment before the terminal is the container's, and keys typed in it are lost.
        person.pane.send("ready")
        person.pane.keys("Enter")
        person.pane.wait_for("got-ready", patience_s=PATIENCE_S)
        person.pane.keys("C-]", "C-q")
    else:
        person.pane.wait_for("#", patience_s=PATIENCE_S)
        person.pane.send("exit")
        person.pane.keys("Enter")
    person.pane.wait_for("enter goes back", patience_s=PATIENCE_S)
    person.pane.keys("C-c")
    person.pane.wait_for("^C", patience_s=PATIENCE_S)
    person.pane.keys("Enter")
    if key == "y":
        person.pane.wait_for("enter copies", patience_s=PATIENCE_S)
        person.pane.keys("Escape")
    person.pane.wait_for("[Containers", patience_s=PATIENCE_S)
    engine_modern.docker("rm", "-f", "train")
    wait(lambda: "train" not in person.pane.capture(), what="the console to look again", shown=person.pane.capture)
    person.pane.keys("q")
    assert person.left() == 0
    assert person.modes == CALM
    assert person.sane() == before


def _width(person: Seat) -> int:
    """Columns of the console's first line, at whose end the clock stands."""
    return len(person.pane.capture().splitlines()[0].rstrip()) + 1


def test_it_fits_itself_to_every_size_and_to_a_terminal_attached_later(person: Seat, tmux: Tmux) -> None:
    person.start()
    person.pane.wait_for("0 H200")
    person.pane.resize(120, 36)
    wait(lambda: _width(person) == 120, what="the wide screen")
    person.pane.resize(20, 5)
    person.pane.wait_for("Too small", patience_s=PATIENCE_S)
    person.pane.resize(80, 24)
    wait(lambda: "Too small" not in person.pane.capture() and _width(person) == 80, what="the screen of before")
    tmux.run("set-option", "-w", "-t", person.pane.id, "window-size", "latest")
    for columns, rows in ((200, 50), (100, 30)):
        client = tmux.attach(person.pane, columns=columns, rows=rows)
        wait(lambda columns=columns: _width(person) == columns, what=f"the screen {columns} columns wide")  # type: ignore[misc]
        client.close()
    person.pane.keys("q")
    assert person.left() == 0
    assert person.modes == CALM


def test_keys_that_come_in_one_piece_with_the_filters_are_typed(person: Seat) -> None:
    pid = person.start()
    person.pane.wait_for("0 H200", patience_s=PATIENCE_S)
    person.pane.send("/nq?x1:d4")
    wait(lambda: "nq?x1:d4" in person.pane.capture(), what="the words of the filter", shown=person.pane.capture)
    assert "[Containers" in person.pane.capture()
    assert alive(pid)
    person.pane.keys("Escape")
    wait(lambda: "nq?x1:d4" not in person.pane.capture(), what="every row again")
    person.pane.keys("q")
    assert person.left() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_and_the_terminal_is_sane(person: Seat, number: signal.Signals) -> None:
    before = person.sane()
    pid = person.start()
    person.pane.wait_for("0 H200")
    took = signalled(pid, number)
    print(f"{number.name}: ended after {took:.2f} s")
    assert person.left() == 128 + number
    assert person.modes == CALM
    assert person.sane() == before
    wait(lambda: not below(person.shell), what="the end of all that was started")


def _kill_pane(seat: Seat) -> None:
    seat.pane.server.run("kill-pane", "-t", seat.pane.id)


def _kill_server(seat: Seat) -> None:
    seat.pane.server.daemon.kill()


@pytest.mark.parametrize("cut", [_kill_pane, _kill_server])
def test_without_its_terminal_it_ends_and_leaves_no_process(
    person: Seat, engine_modern: Engine, cut: Callable[[Seat], None]
) -> None:
    engine_modern.docker("run", "-d", "--name", "train", engine_modern.load("small"), "sleep", "1000")
    pid = person.start()
    person.pane.wait_for("train", patience_s=PATIENCE_S)
    family = [pid, *below(pid)]
    began = time.monotonic()
    cut(person)
    wait(lambda: not any(alive(each) for each in family), what="its end without a terminal")
    print(f"{cut.__name__}: ended after {time.monotonic() - began:.2f} s")
    assert "true" in engine_modern.docker("inspect", "-f", "{{.State.Running}}", "train").stdout


def test_q_is_heeded_while_engine_and_driver_hang(person: Seat, engine_modern: Engine, nvml_box: NvmlBox) -> None:
    engine_modern.docker("run", "-d", "--name", "train", engine_modern.load("small"), "sleep", "1000")
    before = person.sane()
    pid = person.start()
    person.pane.wait_for("train", patience_s=PATIENCE_S)
    engine_modern.freeze()
    hang = {"nvmlDeviceGetMemoryInfo_v2": 600_000, "nvmlDeviceGetMemoryInfo": 600_000, "nvmlShutdown": 600_000}
    nvml_box.change_gpu(0, delays_ms=hang)
    try:
        person.pane.keys("p")  # an action that the engine never answers
        wait(lambda: " s old" in person.pane.capture(), what="the age of what is shown")
        began = time.monotonic()
        person.pane.keys("q")
        wait(lambda: not alive(pid), what="its end")
        took = time.monotonic() - began
    finally:
        engine_modern.thaw()
    print(f"q while engine and driver hang: ended after {took:.2f} s")
    assert took < 5  # aimed at: 1
    assert person.left() == 0
    assert person.modes == CALM
    assert person.sane() == before


_FAULTS = {
    "widget": """
from gpuconsole.tui.widgets.strip import GpuStrip
def render_line(self, y):
    token = "hf_secretsecretsecret"
    raise RuntimeError("a \\x1b[2J[red]fault")
GpuStrip.render_line = render_line
""",
    "handler": """
from gpuconsole.tui.screens.main import MainScreen
def action_sort(self):
    token = "hf_secretsecretsecret"
    raise RuntimeError("a \\x1b[2J[red]fault")
MainScreen.action_sort = action_sort
""",
    "worker": """
from textual import work
from gpuconsole.tui.screens.main import MainScreen
@work(group="questions", description="A question")
async def action_sort(self):
    token = "hf_secretsecretsecret"
    raise RuntimeError("a \\x1b[2J[red]fault")
MainScreen.action_sort = action_sort
""",
}


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("place", list(_FAULTS))
def test_a_fault_of_our_own_can_be_read_afterwards(person: Seat, tmp_path: Path, place: str, debug: bool) -> None:
    script = tmp_path / "faulty.py"
    script.write_text(_FAULTS[place] + "\nfrom gpuconsole.cli.main import run\nrun()\n")
    before = person.sane()
    options = ("--debug",) if debug else ()
    person.type("clear")
    if place == "widget":
        person.start(*options, program=(str(script),), until=LEFT)
    else:
        person.start(*options, program=(str(script),))
        person.pane.keys("o")
    assert person.left() == 70
    shown = "".join(person.history().split())  # lines break where the pane is full
    assert "somethingwentwronginsidegpuconsoleitself(RuntimeError:a[red]fault)" in shown
    assert ("Traceback(mostrecentcalllast)" in shown) is debug
    assert "hf_secret" not in shown
    assert person.modes == CALM
    assert person.sane() == before
