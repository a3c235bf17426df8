"""``gpuconsole check`` as people run it: what it prints where, its exit codes, and signals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from gpuconsole.cli.main import main
from gpuconsole.core.errors import ExitCode
from gpuconsole.probes import suite
from tests.rig.engines import Engine
from tests.rig.owner import wait_until

COMMAND = [sys.executable, "-m", "tests.rig.fewchecks"]
TRAP = """
import sys
class Trap:
    def find_spec(self, name, path=None, target=None):
        if name == "gpuconsole.probes.payload.checks.workspace":
            import time; time.sleep(600)
sys.meta_path.insert(0, Trap())
"""
CHECKS = [
    "check.torch", "check.cuda-available", "check.devices", "check.driver", "check.kernel", "check.numerics",
    "check.shm", "check.gpu-memory", "check.workspace", "check.gpu-health", "check.gpu-clocks", "check.environment",
]  # fmt: skip


def run(*arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments],
        env=os.environ | {"LC_ALL": "C.UTF-8"} | (env or {}),
        capture_output=True,
        text=True,
        check=False,
        timeout=150,
    )


def start(engine: Engine, name: str, *options: str, image: str = "pytorch") -> str:
    engine.docker("run", "-d", "--name", name, *options, engine.load(image), "sleep", "1000")
    return name


@pytest.mark.engine
def test_a_container_that_is_fit(engine_modern: Engine, tmp_path: Path) -> None:
    name = start(engine_modern, "fit", "--shm-size", "1g", "-v", f"{tmp_path}:/workspace")
    done = run("--host", engine_modern.host, "check", name)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines[0].startswith("✓ ok   torch ")
    assert any(line.startswith("– skip kernel ") for line in lines)
    assert lines[-1] == "✓ torch works here on the CPU only: it is a CPU build; nothing stands out."


@pytest.mark.engine
def test_the_document(engine_modern: Engine) -> None:
    name = start(engine_modern, "documented")
    done = run("--host", engine_modern.host, "check", name, "--json")
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    assert document["schema"] == "gpuconsole.check/1"
    assert [check["id"] for check in document["checks"]] == CHECKS
    shm = next(check for check in document["checks"] if check["id"] == "check.shm")
    assert shm.keys() == {"id", "code", "status", "value", "why", "fix", "seconds"}
    assert (shm["code"], shm["status"], shm["value"]["shm_bytes"]) == ("C15", "warn", 64 << 20)
    assert document["verdict"]["status"] == "warn"
    assert document["verdict"]["check"] == "check.shm"
    assert document["environment"]["image"] == "gpuconsole-test/pytorch:cpu"
    assert document["environment"]["torch"]
    assert document["end"] == "complete"


@pytest.mark.engine
def test_a_failure_is_exit_code_1_and_names_its_fix(engine_modern: Engine) -> None:
    name = start(engine_modern, "unfit", image="small")
    done = run("--host", engine_modern.host, "check", name)
    assert done.returncode == ExitCode.FAILED
    assert "✗ fail python" in done.stdout
    assert "→ Take an image with PyTorch" in done.stdout
    assert done.stdout.splitlines()[-1] == "✗ Not fit for training: there is no Python in the container."
    shown = run("--host", engine_modern.host, "check", name, env={"LC_ALL": "C"}).stdout
    assert shown.isascii()
    assert "x fail python" in shown


@pytest.mark.engine
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_check_inside(engine_modern: Engine, tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "sitecustomize.py").write_text(TRAP)
    name = start(engine_modern, "stopped", "-v", f"{tmp_path}:/modules:ro", "-e", "PYTHONPATH=/modules")
    process = subprocess.Popen(
        [*COMMAND, "--host", engine_modern.host, "check", name],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while "payload.pyz work" not in engine_modern.docker("top", name).stdout:
        assert process.poll() is None
        time.sleep(0.1)
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == ExitCode.INTERRUPTED
    assert stdout == ""
    assert f"The check of container {name} was cancelled" in stderr
    assert "payload.pyz" not in engine_modern.docker("top", name).stdout
    assert "gpuconsole" not in engine_modern.docker("exec", name, "ls", "-A", "/tmp", "/dev/shm").stdout


@pytest.mark.engine
def test_an_image(engine_modern: Engine) -> None:
    image = engine_modern.load("pytorch")
    done = run("--host", engine_modern.host, "check", "--image", image, "--gpus", "none", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["environment"]["where"] == f"image {image}"
    assert document["verdict"]["status"] == "ok"
    assert engine_modern.docker("ps", "-aq").stdout == ""


@pytest.mark.engine
def test_a_signal_while_an_image_is_checked_removes_its_container(engine_modern: Engine) -> None:
    image = engine_modern.load("pytorch")
    process = subprocess.Popen(
        [*COMMAND, "--host", engine_modern.host, "check", "--image", image], stderr=subprocess.PIPE, text=True
    )
    while not engine_modern.docker("ps", "-q").stdout:
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == ExitCode.INTERRUPTED, stderr
    assert engine_modern.docker("ps", "-aq").stdout == ""


@pytest.mark.engine
def test_what_cannot_be_checked(engine_modern: Engine) -> None:
    name = start(engine_modern, "ended", image="small")
    engine_modern.docker("kill", name)
    host = ("--host", engine_modern.host)
    ended = run(*host, "check", name)
    assert ended.returncode == ExitCode.CONFLICT
    assert f"→ Start it: gpuconsole start {name}" in ended.stderr
    unknown = run(*host, "check", "endd")
    assert unknown.returncode == ExitCode.NOT_FOUND
    assert f"→ Did you mean {name}?" in unknown.stderr
    refused = run(*host, "--readonly", "check", name)
    assert refused.returncode == ExitCode.REFUSED
    assert refused.stdout == ""


def test_no_engine(tmp_path: Path) -> None:
    done = run("--host", f"unix://{tmp_path}/none.sock", "check", "train")
    assert done.returncode == ExitCode.NO_ENGINE
    assert done.stdout == ""


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("train", "--local"),
        ("--image", "a", "--local"),
        ("train", "--gpus", "1"),
        ("--local", "--only", ","),
        *(
            ("--local", "--timeout", text)
            for text in ("0", "-1", "0.99", "nan", "NaN", "inf", "-inf", "1e400", "1e9", "x", "")
        ),
    ],
)
def test_usage(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", *arguments]) == ExitCode.USAGE
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("Usage: gpuconsole check")


def test_some_checks_alone(capsys: pytest.CaptureFixture[str]) -> None:
    done = run("check", "--local", "--only", "gpu-health,C25", "--only", "Workspace", "--json")
    document = json.loads(done.stdout)
    assert [check["code"] for check in document["checks"]] == ["C20", "C23", "C25"]
    assert document["verdict"]["sentence"].startswith("Nothing failed of what was checked")
    assert main(["check", "--local", "--only", "shmm"]) == ExitCode.USAGE
    assert "There is no check shmm" in capsys.readouterr().err


def test_time_that_runs_out_has_an_exit_code_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(TRAP)
    done = run("check", "--local", "--timeout", "8", env={"PYTHONPATH": f"{tmp_path}:{os.getcwd()}"})
    assert done.returncode == ExitCode.TIMEOUT, done.stderr
    assert "when the 8 s for the whole check were over" in " ".join(done.stdout.split())


def test_this_machine_with_every_check() -> None:
    command = [sys.executable, "-m", "gpuconsole", "check", "--local", "--json", "--timeout", "240"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=280)
    document = json.loads(done.stdout)
    assert done.returncode == (1 if any(check["status"] == "fail" for check in document["checks"]) else 0)
    assert [check["id"] for check in document["checks"]] == [check.id for check in suite.in_order()]
    assert document["environment"]["where"] == "this machine"
    assert document["environment"]["python_path"] == sys.executable
    assert not [check for check in document["checks"] if "container" in check["why"] + check["fix"]]


def test_this_machine_on_a_terminal_shows_the_step_it_is_at(tmp_path: Path) -> None:
    import pty

    leader, follower = pty.openpty()
    process = subprocess.Popen([*COMMAND, "check", "--local"], stdout=subprocess.PIPE, stderr=follower, text=True)
    os.close(follower)
    shown = b""
    try:
        while piece := os.read(leader, 65536):
            shown += piece
    except OSError:
        pass  # the other end was closed
    stdout, _ = process.communicate()
    os.close(leader)
    assert b"[1/10] torch" in shown
    assert shown.endswith(b"\r\x1b[K")
    assert "ok   torch" in stdout


def test_this_machine_interrupted(tmp_path: Path) -> None:
    reached = tmp_path / "reached"
    (tmp_path / "sitecustomize.py").write_text(TRAP.replace("import time", f"open({str(reached)!r}, 'w'); import time"))
    process = subprocess.Popen(
        [*COMMAND, "check", "--local"],
        env=os.environ | {"PYTHONPATH": f"{tmp_path}:{os.getcwd()}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until(reached.exists, what="the check that hangs")
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == ExitCode.INTERRUPTED
    assert "The check of this machine was cancelled" in stderr
    assert stdout == ""


def test_this_machine_without_torch_is_told_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')\n")
    done = run("check", "--local", env={"PYTHONPATH": f"{tmp_path}:{os.getcwd()}"})
    assert done.returncode == ExitCode.FAILED, done.stderr
    told = " ".join(done.stdout.split())
    assert "✗ fail torch there is no torch for" in told
    assert "-m pip install torch" in told
    assert "doctor" not in told
