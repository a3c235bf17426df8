"""gpuconsole from a prepared interpreter is the program that `python -m gpuconsole` is."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.rig import prepared
from tests.rig.owner import wait_until

COMMANDS = {
    "help": ["--help"], "data": ["catalog", "--all", "--json", "--driver", "570.1", "--cc", "9.0", "--arch", "amd64"],
    "colour": ["--colour", "always", "catalog"], "no engine": ["ps"], "no such command": ["nonsense"],
    "a wrong value": ["logs", "--tail", "x", "box"], "what is no UTF-8": ["logs", "\udcff"], "a folder's file": ["pin"],
    "a traceback": ["--debug", "ps"],
}  # fmt: skip


def both(arguments: list[str], environment: dict[str, str], folder: Path) -> list[subprocess.CompletedProcess[bytes]]:
    really = subprocess.run(
        [sys.executable, "-m", "gpuconsole", *arguments], env=environment, cwd=folder, stdin=subprocess.DEVNULL,
        capture_output=True, check=False,
    )  # fmt: skip
    return [really, prepared.gpuconsole(*arguments, env=environment, folder=folder)]


@pytest.fixture
def ready(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the first run of a setting be a prepared one."""
    monkeypatch.setattr(prepared, "_WORTH_IT", 0)


@pytest.mark.usefixtures("ready")
@pytest.mark.parametrize("command", COMMANDS)
def test_exit_code_and_words_are_the_same(command: str, tmp_path: Path) -> None:
    (tmp_path / "gpuconsole.lock").write_text("not = [toml")
    environment = {**os.environ, "DOCKER_HOST": f"unix://{tmp_path}/none.sock", "LC_ALL": "C.UTF-8"}
    real, ours = both(COMMANDS[command], environment, tmp_path)
    assert (ours.returncode, ours.stdout, ours.stderr) == (real.returncode, real.stdout, real.stderr)
    assert real.stdout + real.stderr


@pytest.mark.usefixtures("ready")
def test_environment_and_folder_are_the_runs_own_and_leave_nothing_behind(tmp_path: Path) -> None:
    told = []
    for name in ("one", "two", "one"):
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        (folder / "gpuconsole.lock").write_text(f"{name} = [")
        environment = {**os.environ, "DOCKER_HOST": f"unix://{folder}/none.sock", "LC_ALL": "C.UTF-8"}
        lost, broken = (prepared.gpuconsole(word, env=environment, folder=folder) for word in ("ps", "pin"))
        assert os.fsencode(folder / "none.sock") in lost.stderr
        told.append((lost.stderr, broken.stderr))
    assert told[0] == told[2]
    assert told[0][0] != told[1][0]


@pytest.mark.usefixtures("ready")
def test_what_does_not_end_is_killed(tmp_path: Path) -> None:
    silent = socket.socket(socket.AF_UNIX)
    silent.bind(str(tmp_path / "silent"))
    silent.listen()
    environment = {**os.environ, "DOCKER_HOST": f"unix://{tmp_path}/silent"}
    with silent, pytest.raises(subprocess.TimeoutExpired):
        prepared.gpuconsole("ps", env=environment, folder=tmp_path, timeout_s=2)
    wait_until(lambda: not any(_leads_to(path, tmp_path) for path in Path("/proc").glob("[0-9]*/cwd")), what="the end")


def _leads_to(path: Path, target: Path) -> bool:
    try:
        return path.readlink() == target
    except OSError:
        return False
