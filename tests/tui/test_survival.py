"""A run outlives everything that looks at it: a cut connection, a killed tmux, a killed console."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from pathlib import Path

import pytest

from tests.cli.engines import gpuconsole, state
from tests.rig.engines import Engine
from tests.rig.nvml import NvmlBox
from tests.rig.ssh import SshServer
from tests.rig.tmux import Tmux
from tests.tui.in_tmux import alive, seat, wait

_TRAINING = "i=0; until [ -e /tmp/enough ]; do i=$((i+1)); echo step $i; sleep 0.05; done; echo the end"
"""Goes on until it is told, however long its watchers take."""
_ROOT = Path(__file__).parents[2]


@pytest.mark.timeout(300)
@pytest.mark.engine
def test_a_run_survives_its_watchers(
    engine_modern: Engine,
    sshd: SshServer,
    tmux: Tmux,
    nvml_box: NvmlBox,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine, records = engine_modern, tmp_path / "state"
    monkeypatch.setenv("XDG_STATE_HOME", str(records))
    program = [sys.executable, "-m", "gpuconsole"]
    variables = [f"DOCKER_HOST={engine.host}", f"PYTHONPATH={_ROOT}", f"XDG_STATE_HOME={records}", "LANG=C.UTF-8"]

    def remote(*arguments: str) -> str:
        return shlex.join(["env", *variables, *program, *arguments])

    def step() -> int:
        lines = engine.docker("logs", "--tail", "1", "train").stdout.split()
        assert lines[:1] == ["step"], lines
        return int(lines[1])

    # The connection is cut while the launch follows it.
    launch = ("launch", engine.load("small"), "--gpus", "none", "--name", "train", "-t", "--wait", "--")
    ssh = sshd.session(remote(*launch, "sh", "-c", _TRAINING))
    try:
        ssh.wait_for("step 5\r", patience_s=60)
        ssh.cut()
    finally:
        ssh.close()
    cut_at = step()
    wait(lambda: step() > cut_at + 5, what="it goes on after the cut")

    # Over a new connection it is joined again, in tmux, and tmux is killed.
    pane = tmux.session("sh", folder=tmp_path, env=dict(pair.split("=", 1) for pair in variables))
    pane.send(shlex.join([*program, "attach", "train"]))
    pane.keys("Enter")
    wait(lambda: "train" in tmux.windows(), what="the window of the container")
    wait(lambda: "step " in tmux.run("capture-pane", "-p", "-t", "=:train"), what="the container in its window")
    tmux.run("kill-server")
    killed_at = step()
    wait(lambda: step() > killed_at + 5, what="it goes on without tmux")
    assert state(engine, "train") == "running"

    (run,) = gpuconsole(engine, "runs", "--json").document["runs"]
    assert (run["name"], run["ended_at"]) == ("train", None)
    engine.docker("exec", "train", "touch", "/tmp/enough")
    assert engine.docker("wait", "train").stdout.strip() == "0"
    said = [line.strip() for line in gpuconsole(engine, "logs", "train").text.split("\n") if line.strip()]
    assert len(said) > killed_at + 5
    assert said == [f"step {n}" for n in range(1, len(said))] + ["the end"]
    (run,) = gpuconsole(engine, "runs", "--json").document["runs"]
    assert (run["exit_code"], run["cause"], run["folder"]) == (0, None, str(sshd.home))


@pytest.mark.timeout(300)
@pytest.mark.engine
def test_a_killed_console_takes_no_container_along(
    engine_modern: Engine, tmux: Tmux, nvml_box: NvmlBox, tmp_path: Path
) -> None:
    engine_modern.only("small")
    desk = seat(tmux, engine_modern.host, nvml_box, tmp_path)
    made = engine_modern.docker("run", "-dit", "--name", "train", engine_modern.load("small"), "sh", "-c", _TRAINING)
    assert made.returncode == 0
    console = desk.start()
    desk.pane.wait_for("train", patience_s=60)
    desk.pane.keys("a")
    wait(lambda: "train" in " ".join(tmux.windows()), what="the window of the container")
    os.kill(console, signal.SIGKILL)
    wait(lambda: not alive(console), what="the end of the console")
    assert state(engine_modern, "train") == "running"
    # The window of the container is tmux's, not the console's: it is there, and the console comes back beside it.
    assert any("train" in name for name in tmux.windows())
    desk.mend()
    desk.start()
    desk.pane.wait_for("train")
