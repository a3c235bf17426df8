"""``gpuconsole record`` and ``demo``: a recording of the console is made, played and forecast; one is shipped."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from gpuconsole.cli.main import main
from gpuconsole.core.errors import ExitCode
from gpuconsole.services.recordings import shipped
from gpuconsole.services.replayfile import load
from tests.cli.engines import US, environment, start
from tests.rig.engines import Engine
from tests.rig.nvml import NvmlBox
from tests.rig.tmux import Tmux
from tests.tui.in_tmux import seat


@pytest.mark.engine
def test_a_recording_is_made_and_played(
    engine_modern: Engine, nvml_box: NvmlBox, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    start(engine_modern, "train", command=("sh", "-c", "while :; do echo step; sleep 0.2; done"))
    path = tmp_path / "run.jsonl.gz"
    command = (*US, "record", "-o", str(path), "--seconds", "6", "--every", "0.5")
    env = environment(engine_modern, None, **nvml_box.env())
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "Recorded 6 s" in done.stderr
    text = gzip.decompress(path.read_bytes()).decode()
    kinds = {json.loads(line).get("type") for line in text.splitlines()[1:]}
    assert {"sample", "host", "container", "log"} <= kinds
    assert re.search(rf'"[^"]*\\b{re.escape(socket.gethostname())}\\b[^"]*"', text) is None
    load(path)
    assert main(["forecast", str(path), "--json"]) == 0
    assert json.loads(capfd.readouterr().out.splitlines()[0])["schema"].startswith("gpuconsole.forecast/")

    again = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=120)
    assert again.returncode == ExitCode.CONFLICT
    assert "--force" in again.stderr


@pytest.mark.engine
def test_ctrl_c_keeps_what_was_recorded(engine_modern: Engine, nvml_box: NvmlBox, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    process = subprocess.Popen(
        (*US, "record", "-o", str(path), "--seconds", "600", "--every", "0.25"),
        env=environment(engine_modern, None, **nvml_box.env()), stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        while not (path.exists() and path.read_text().count("\n") > 4):
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        assert process.returncode == 0, said
        assert "Ended early" in said
        load(path)
    finally:
        process.kill()


def test_where_it_cannot_be_written(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["record", "-o", str(tmp_path / "no" / "run.jsonl"), "--seconds", "1"]) == ExitCode.BAD_FILE
    told = capfd.readouterr().err
    assert "→" in told
    assert "Traceback" not in told
    assert main(["record", "--seconds", "1"]) == ExitCode.USAGE


def test_it_goes_to_standard_output_and_a_reader_that_leaves_is_no_failure(nvml_box: NvmlBox, tmp_path: Path) -> None:
    env = {**os.environ, **nvml_box.env(), "DOCKER_HOST": f"unix://{tmp_path}/none.sock"}
    command = (*US, "record", "-o", "-", "--seconds", "3", "--every", "0.25")
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=60, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "-").exists()
    path = tmp_path / "kept.jsonl"
    path.write_text(done.stdout)
    assert load(path).length_s > 0
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as leaving:
        assert leaving.stdout is not None
        assert leaving.stderr is not None
        leaving.stdout.readline()
        leaving.stdout.close()
        assert leaving.wait(60) == 0, leaving.stderr.read()


def test_names_are_kept_only_when_asked_for_and_that_is_said(nvml_box: NvmlBox, tmp_path: Path) -> None:
    env = {**os.environ, **nvml_box.env(), "DOCKER_HOST": f"unix://{tmp_path}/none.sock"}
    for options, host in (((), "gpu-box"), (("--with-names",), socket.gethostname().partition(".")[0][:24])):
        path = tmp_path / f"{host}.jsonl"
        command = (*US, "record", "-o", str(path), "--seconds", "1", *options)
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, done.stderr
        assert load(path).host == host
        assert ("names of this machine, its users, folders" in done.stderr) is bool(options)


def test_a_full_device_is_a_sentence_and_an_exit_code(nvml_box: NvmlBox, tmp_path: Path) -> None:
    env = {**os.environ, **nvml_box.env(), "DOCKER_HOST": f"unix://{tmp_path}/none.sock"}
    command = (*US, "record", "-o", "/dev/full", "--force", "--seconds", "2")
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == ExitCode.BAD_FILE
    assert "No space left" in done.stderr
    assert "→" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_recording_is_shipped() -> None:
    load(shipped())
    source = Path(__file__).parents[2] / "pyproject.toml"
    assert f"tests/fixtures/{shipped().name}" in source.read_text()


def test_the_demo_plays_it(tmux: Tmux, nvml_box: NvmlBox, tmp_path: Path) -> None:
    desk = seat(tmux, f"unix://{tmp_path}/none.sock", nvml_box, tmp_path)
    desk.start("demo")
    desk.pane.wait_for("H200", patience_s=60)
    desk.pane.keys("q")
    assert desk.left() == 0


def test_the_demo_needs_a_terminal() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gpuconsole", "demo"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
        env={**os.environ}, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == ExitCode.USAGE
    assert "needs a terminal" in done.stderr


@pytest.mark.parametrize("old", [None, "an older recording\n"])
def test_ended_before_the_file_was_begun_nothing_is_said_to_be_kept(
    old: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.jsonl"
    if old:
        path.write_text(old)

    def interrupted(*_: object, **__: object) -> float:
        raise KeyboardInterrupt

    monkeypatch.setattr("gpuconsole.services.recordings.record", interrupted)
    assert main(["record", "-o", str(path), "--force"]) == ExitCode.BAD_FILE
    said = capfd.readouterr().err
    assert "Nothing was recorded" in said
    assert "is kept" not in said
    assert (path.read_text() if path.exists() else None) == old
