"""`shell` and `attach` inside a real tmux: windows of their own."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.engines import US, environment, start, wait_until
from tests.rig.engines import Engine
from tests.rig.fixtures import Bench
from tests.rig.terminal import Terminal
from tests.rig.tmux import Pane, Tmux

pytestmark = pytest.mark.engine


@pytest.fixture
def desk(engine_modern: Engine, rig_bench: Bench) -> Iterator[Pane]:
    """Give a pane of a tmux whose server knows nothing of the engine."""
    env = environment(engine_modern)
    tmux = Tmux(rig_bench.rig, env={key: value for key, value in env.items() if not key.startswith("DOCKER_")})
    pane = tmux.session("sh", env={"DOCKER_HOST": engine_modern.host, "DOCKER_CONFIG": env["DOCKER_CONFIG"]})
    pane.send("PS1='out> '; clear")
    pane.keys("Enter")
    yield pane
    tmux.close()


def active(tmux: Tmux) -> str:
    listed = tmux.run("list-windows", "-a", "-F", "#{window_active} #{window_name} #{pane_id}")
    return next(line[2:] for line in listed.splitlines() if line.startswith("1 "))


def type_line(pane: Pane, text: str) -> None:
    pane.send(text)
    pane.keys("Enter")


def test_inside_tmux_a_shell_opens_a_window_of_its_own_and_is_found_again(desk: Pane, engine_modern: Engine) -> None:
    start(engine_modern, "llama.ft")
    type_line(desk, f"{' '.join(US)} shell llama.ft; echo code=$?")
    desk.wait_for("code=0")
    wait_until(lambda: active(desk.server).startswith("llama_ft "), "no window")
    window = Pane(desk.server, active(desk.server).split()[1])
    window.wait_for("Shell in llama.ft")
    type_line(window, "echo host=$(hostname)")
    window.wait_for("host=" + engine_modern.docker("inspect", "-f", "{{.Config.Hostname}}", "llama.ft").stdout.strip())
    desk.server.run("select-window", "-t", desk.id)
    type_line(desk, f"clear; {' '.join(US)} shell llama.ft; echo again=$?")
    desk.wait_for("again=0")
    assert active(desk.server).split()[1] == window.id
    assert len(desk.server.windows()) == 2
    window.keys("C-d")
    wait_until(lambda: len(desk.server.windows()) == 1, "the window stays")


def test_the_window_talks_to_the_callers_engine_whatever_the_tmux_server_was_started_with(
    engine_modern: Engine, rig_bench: Bench, tmp_path: Path
) -> None:
    env = environment(engine_modern)
    elsewhere = {"GPUCONSOLE_HOST": f"unix://{tmp_path}/gone.sock", "XDG_RUNTIME_DIR": str(tmp_path)}
    tmux = Tmux(rig_bench.rig, env=env | elsewhere)
    pane = tmux.session("sh")
    start(engine_modern, "box")
    ours = f"env -u GPUCONSOLE_HOST -u XDG_RUNTIME_DIR {' '.join(US)}"
    type_line(pane, f"{ours} shell box")
    wait_until(lambda: active(tmux).startswith("box "), "no window")
    Pane(tmux, active(tmux).split()[1]).wait_for("Shell in box")
    tmux.close()


def test_an_attached_window_shows_how_the_container_ended(desk: Pane, engine_modern: Engine) -> None:
    start(engine_modern, "job", "-it", "--rm", command=("sh",))
    type_line(desk, f"{' '.join(US)} attach job")
    wait_until(lambda: active(desk.server).startswith("job "), "no window")
    window = Pane(desk.server, active(desk.server).split()[1])
    window.wait_for("Attached to job")
    window.wait_for("#")
    type_line(window, "exit 3")
    window.wait_for("exit code 3")
    window.wait_for("Press a key")
    window.keys("q")
    wait_until(lambda: len(desk.server.windows()) == 1, "the window stays")


def test_a_failure_in_the_window_can_be_read(desk: Pane, engine_modern: Engine) -> None:
    start(engine_modern, "box", image="bare", command=("1000000",))
    type_line(desk, f"{' '.join(US)} shell box")
    wait_until(lambda: active(desk.server).startswith("box "), "no window")
    window = Pane(desk.server, active(desk.server).split()[1])
    window.wait_for("no sh in its image")
    window.wait_for("Press a key")


def test_here_stays_in_the_pane(desk: Pane, engine_modern: Engine) -> None:
    start(engine_modern, "box")
    type_line(desk, f"{' '.join(US)} shell --here box")
    desk.wait_for("Shell in box")
    assert len(desk.server.windows()) == 1


def test_a_tmux_that_is_gone_is_no_obstacle(
    engine_modern: Engine, open_terminal: Callable[..., Terminal], tmp_path: Path
) -> None:
    start(engine_modern, "box")
    terminal = open_terminal(engine_modern, "shell", "box", TMUX=f"{tmp_path}/gone,1,0")
    terminal.wait_for("Staying in this terminal")
    terminal.wait_for("#")
    assert re.search(r"tmux did not do it: .+\.", terminal.text)
