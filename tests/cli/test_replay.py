"""``gpuconsole --replay FILE`` from the command line, in a terminal of its own."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from gpuconsole.cli import front
from gpuconsole.core.errors import ExitCode
from gpuconsole.gpu.model import Gpu, GpuSnapshot
from gpuconsole.host.model import GpuView, HostView
from gpuconsole.host.recording import RecordingWriter
from tests.rig.terminal import Terminal

BEGAN = 1_750_000_000.0
HEAD = {"type": "header", "format": "gpuconsole-recording", "version": 1}


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    path = tmp_path / "a recording.jsonl"
    gpu = Gpu(index=0, uuid="GPU-1", name="NVIDIA H200", memory_total_bytes=140 * 2**30, memory_used_bytes=77 * 2**30)
    snapshot = GpuSnapshot(taken_at=BEGAN, gpus=(gpu,), driver_version="580.159.04")
    writer = RecordingWriter(path)
    writer.header(snapshot, began_at=BEGAN, interval_s=1.0, host="gpu-box", user="me")
    writer.line("host", 0.0, {"view": HostView(snapshot, (GpuView(gpu),))})
    writer.line("link", 0.0, {"link": {"connected": True, "endpoint": "unix:///var/run/docker.sock"}})
    writer.close()
    return path


def opened(folder: Path, *arguments: str) -> Terminal:
    environment = os.environ | {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
    return Terminal([sys.executable, "-m", "gpuconsole", *arguments], env=environment, folder=folder)


def test_it_shows_the_recording_in_the_console_and_leaves_by_q(recording: Path, tmp_path: Path) -> None:
    terminal = opened(tmp_path, "--replay", str(recording))
    try:
        terminal.wait_for("gpu-box")
        terminal.wait_for("recording")
        terminal.wait_for("77.0/140.0")
        terminal.send("q")
        assert terminal.wait() == 0
    finally:
        terminal.close()


@pytest.mark.parametrize(
    ("content", "code", "words"),
    [
        (None, ExitCode.NOT_FOUND, "There is no file"),
        ("no recording", ExitCode.BAD_FILE, "is no recording"),
        ("", ExitCode.BAD_FILE, "it is empty"),
        ("a pipe", ExitCode.BAD_FILE, "is a pipe"),
        (json.dumps(HEAD | {"version": 9}), ExitCode.BAD_FILE, "version 9"),
        (json.dumps(HEAD), ExitCode.BAD_FILE, "holds nothing the console could show"),
    ],
)
def test_what_cannot_be_shown_is_said_before_the_screen_is_taken(
    content: str | None, code: ExitCode, words: str, tmp_path: Path
) -> None:
    path = tmp_path / "x.jsonl"
    if content == "a pipe":
        os.mkfifo(path)
    elif content is not None:
        path.write_text(content)
    terminal = opened(tmp_path, "--replay", str(path))
    try:
        terminal.wait_for(words)
        assert terminal.wait() == code
        assert "→" in terminal.text
        assert "\x1b[?1049h" not in terminal.text
    finally:
        terminal.close()


def test_no_command_goes_with_it(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert front.main(["--replay", str(recording), "ps"]) == ExitCode.USAGE
    assert "no command goes with it" in capsys.readouterr().err


@pytest.mark.parametrize("missing", ["stdin", "stdout", "stderr"])
def test_one_stream_that_is_no_terminal_is_enough_to_refuse(recording: Path, missing: str, tmp_path: Path) -> None:
    """Without stderr nothing would ever be drawn, and the person would sit before an empty screen."""
    ours, theirs = pty.openpty()
    told = tmp_path / "told"
    try:
        with told.open("w+") as file:
            streams = dict.fromkeys(("stdin", "stdout", "stderr"), theirs) | {missing: file.fileno()}
            done = subprocess.run(
                [sys.executable, "-m", "gpuconsole", "--replay", str(recording)],
                stdin=streams["stdin"], stdout=streams["stdout"], stderr=streams["stderr"], timeout=60, check=False,
            )  # fmt: skip
    finally:
        os.close(theirs)
        os.close(ours)
    assert done.returncode == ExitCode.USAGE
    assert missing != "stderr" or "needs a terminal" in told.read_text()


def test_without_a_terminal_it_is_refused(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert front.main(["--replay", str(recording)]) == ExitCode.USAGE
    assert "needs a terminal" in capsys.readouterr().err
