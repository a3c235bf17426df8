"""`attach` on real engines, in real terminals."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.cli.engines import gpuconsole, start, state
from tests.engine.contract import until
from tests.rig.engines import Engine
from tests.rig.kinds import RUNTIMES
from tests.rig.terminal import Terminal

pytestmark = pytest.mark.engine(*RUNTIMES)

LEAVE = "\x1d\x11"


COUNTING = ("sh", "-c", "trap 'echo got-int' INT; i=0; while :; do i=$((i+1)); echo tick-$i; sleep 0.2; done")


def test_attach_without_a_terminal_ctrl_c_leaves_the_container_running(
    engine: Engine, open_terminal: Callable[..., Terminal]
) -> None:
    start(engine, "box", command=COUNTING)
    terminal = open_terminal(engine, "attach", "box")
    terminal.wait_for("tick-")
    assert "ctrl+c leaves it running" in terminal.text
    terminal.send("\x03")
    assert terminal.wait() == 0
    assert "it goes on" in terminal.text
    assert state(engine, "box") == "running"
    assert "got-int" not in engine.docker("logs", "box").stdout


@pytest.mark.parametrize("options", [("-i",), ()])
def test_leaving_does_not_end_a_container_that_reads_its_input(
    options: tuple[str, ...], engine_modern: Engine, open_terminal: Callable[..., Terminal]
) -> None:
    start(engine_modern, "box", *options, command=("sh", "-c", "while :; do echo tick-; sleep 0.2; done & cat; exit 9"))
    if not options:
        until(lambda: state(engine_modern, "box") == "exited", what="the end of cat, which had no input at all")
        return
    terminal = open_terminal(engine_modern, "attach", "box")
    terminal.wait_for("tick-")
    terminal.send("\x03")
    assert terminal.wait() == 0
    said = engine_modern.docker("logs", "box").stdout.count("tick-")
    until(lambda: engine_modern.docker("logs", "box").stdout.count("tick-") > said + 2, what="that it goes on")
    assert state(engine_modern, "box") == "running"


def test_attach_to_a_terminal_joins_the_program_and_the_keys_leave_it(
    engine: Engine, open_terminal: Callable[..., Terminal]
) -> None:
    start(engine, "box", "-it", command=("sh",))
    terminal = open_terminal(engine, "attach", "box", columns=91, rows=33)
    terminal.wait_for("ctrl+] ctrl+q leaves it running")
    terminal.send("echo sum-$((20+3)) $(busybox stty size)\r")
    terminal.wait_for("sum-23 33 91")
    terminal.send("\x03")
    terminal.send("echo still-$((20+4))\r")
    terminal.wait_for("still-24")
    terminal.send(LEAVE)
    assert terminal.wait() == 0
    assert state(engine, "box") == "running"


def test_attach_gives_back_the_containers_exit_code(engine: Engine, open_terminal: Callable[..., Terminal]) -> None:
    start(engine, "box", "-it", "--rm", command=("sh",))
    terminal = open_terminal(engine, "attach", "box")
    terminal.wait_for("#")
    terminal.send("exit 4\r")
    assert terminal.wait() == 4
    assert "ended: exit code 4" in terminal.text


def test_what_a_container_without_a_terminal_writes_is_harmless(
    engine_modern: Engine, open_terminal: Callable[..., Terminal]
) -> None:
    hostile = r"while :; do printf '\033]0;pwned\007\033[2J\302\2332J tick\n'; sleep 0.2; done"
    start(engine_modern, "box", command=("sh", "-c", hostile))
    terminal = open_terminal(engine_modern, "attach", "box")
    terminal.wait_for("tick")
    terminal.send("\x03")
    assert terminal.wait() == 0
    assert "pwned" not in terminal.text
    assert "\x1b[2J" not in terminal.text


def leave(terminal: Terminal) -> None:
    """Leave a shell, once it has the keys: before, the terminal itself would take some of those that leave."""
    terminal.send("echo sum-$((20+3))\r")
    terminal.wait_for("sum-23")
    terminal.send(LEAVE)


def test_the_terminal_of_someone_else_asks_for_the_name(
    engine_modern: Engine, open_terminal: Callable[..., Terminal]
) -> None:
    start(engine_modern, "theirs", "-it", "--label", "gpuconsole.user=mei", command=("sh",))
    assert gpuconsole(engine_modern, "attach", "theirs").code == 7
    terminal = open_terminal(engine_modern, "attach", "theirs")
    terminal.wait_for("Container theirs belongs to mei. Type its name to join it")
    terminal.send("\x03")
    assert terminal.wait() == 130
    assert state(engine_modern, "theirs") == "running"
    terminal = open_terminal(engine_modern, "attach", "theirs")
    terminal.wait_for("Type its name to join it")
    terminal.send("theirs\r")
    leave(terminal)
    assert terminal.wait() == 0
    terminal = open_terminal(engine_modern, "attach", "--yes", "--others", "theirs")
    leave(terminal)
    assert terminal.wait() == 0


@pytest.mark.parametrize("verb", ["attach", "shell"])
def test_where_nothing_is_changed_it_is_only_said_whose_it_is(
    verb: str, engine_modern: Engine, open_terminal: Callable[..., Terminal]
) -> None:
    start(engine_modern, "theirs", "--label", "gpuconsole.user=mei", command=COUNTING)
    start(engine_modern, "mine", "--label", "gpuconsole.user=root", command=COUNTING)
    for name in ("theirs", "mine"):
        terminal = open_terminal(engine_modern, verb, name)
        if verb == "attach":
            terminal.wait_for("tick-")
            terminal.send("\x03")
        else:
            leave(terminal)
        assert ("belongs to mei" in terminal.text) is (name == "theirs")
        assert terminal.wait() == 0
