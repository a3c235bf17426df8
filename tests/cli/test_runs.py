"""``gpuconsole runs | rerun | diff``: launches are remembered, how they ended is told, and they are done again."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gpuconsole.cli.main import main
from gpuconsole.core.errors import ExitCode
from gpuconsole.engine.model import EngineInfo, GpuPath
from gpuconsole.engine.request import CreateRequest
from gpuconsole.launch.gpupath import GpuRoute
from gpuconsole.launch.options import LaunchOptions
from gpuconsole.launch.spec import LaunchSpec
from gpuconsole.services.launchrecords import LaunchRecords
from gpuconsole.services.planning import LaunchPlan
from tests.cli.engines import US, Done, environment, gpuconsole, state, wait_until
from tests.rig.engines import Engine
from tests.rig.nvml import NvmlBox, box
from tests.rig.nvml.gpu import stand_in_uuid

_OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.11 GiB "
    "of which 1.25 GiB is free. Of the allocated memory 60.00 GiB is allocated by PyTorch, and 12.00 GiB is reserved "
    "by PyTorch but unallocated."
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(project)
    return project


def launch(engine: Engine, name: str, *options: str, command: tuple[str, ...]) -> Done:
    return gpuconsole(
        engine, "launch", engine.load("small"), "--gpus", "none", "--user", "image", "--name", name, *options, "--",
        *command,
    )  # fmt: skip


@pytest.mark.engine
def test_endings_are_remembered_and_told(engine_modern: Engine, folder: Path) -> None:
    engine = engine_modern
    launch(
        engine, "well", "-v", ".:/workspace", "-e", "LR=0.1", "-e", "HF_TOKEN=hf_abcdefghijklmnop", command=("true",)
    )
    launch(engine, "gpu-full", command=("sh", "-c", f"echo '{_OOM}' >&2; exit 1"))
    launch(engine, "shm-full", command=("sh", "-c", "exit 135"))
    launch(engine, "stopped", command=("sleep", "1000"))
    launch(engine, "going", command=("sleep", "1000"))
    launch(engine, "gone", command=("sleep", "1000"))
    launch(engine, "forced", command=("sleep", "1000"))
    launch(engine, "killed", command=("sleep", "1000"))
    engine.docker("rm", "-f", "forced")
    engine.docker("kill", "killed")
    assert gpuconsole(engine, "stop", "-t", "0", "stopped").code == 0
    assert gpuconsole(engine, "rm", "--yes", "--force", "gone").code == 0
    document = gpuconsole(engine, "runs", "--json").document
    assert document["schema"] == "gpuconsole.runs/1"
    runs = {run["name"]: run for run in document["runs"]}
    assert [run["name"] for run in document["runs"]] == [
        "killed", "forced", "gone", "going", "stopped", "shm-full", "gpu-full", "well",
    ]  # fmt: skip
    causes = {name: run["cause"] for name, run in runs.items()}
    assert causes == {
        "well": None, "gpu-full": "cuda-out-of-memory", "shm-full": "shm-full", "stopped": "stopped", "going": None,
        "gone": "removed", "forced": "removed", "killed": "stopped",
    }  # fmt: skip
    assert [runs[name]["exit_code"] for name in ("well", "gpu-full", "shm-full", "stopped")] == [0, 1, 135, 143]
    assert runs["going"]["ended_at"] is None
    assert "1.2 GiB of 79.1 GiB were free" in runs["gpu-full"]["reason"]
    assert "expandable_segments" in " ".join(runs["gpu-full"]["advice"])
    assert runs["well"]["folder"] == str(folder)
    assert runs["well"]["digest"].startswith("sha256:")
    assert "hf_abcdefghijklmnop" not in str(document)
    assert runs["well"]["options"]["environment"] == ["LR=0.1", "HF_TOKEN"]

    table = gpuconsole(engine, "runs").text
    assert "NO  NAME" in table
    assert "GPU memory of its GPU 0 was over" in table
    one = gpuconsole(engine, "runs", "gpu-full").text
    assert "→ Much is reserved and unused" in one
    assert "| torch.OutOfMemoryError" in one

    # The files are of this user: the secret is in none of them.
    kept = b"".join(path.read_bytes() for path in (folder.parent / "state").rglob("*") if path.is_file())
    assert b"hf_abcdefghijklmnop" not in kept

    told = gpuconsole(engine, "diff", "well", "stopped")
    assert told.code == 0
    assert "environment" in told.text
    differences = gpuconsole(engine, "diff", "well", "stopped", "--json").document["differences"]
    assert {"what": "command", "first": ["true"], "second": ["sleep", "1000"]} in differences
    assert {"what": "volumes", "first": [".:/workspace"], "second": None} in differences
    same = gpuconsole(engine, "diff", "well", "well")
    assert "went alike" in same.talk


@pytest.mark.engine
def test_once_more_by_the_same_digest_and_options(engine_modern: Engine, folder: Path, tmp_path: Path) -> None:
    engine = engine_modern
    (folder / "here.txt").write_text("1")
    options = ("-v", ".:/workspace", "-w", "/workspace", "-e", "LR=0.1", "--shm-size", "1g")
    assert launch(engine, "first", *options, command=("sh", "-c", "ls; sleep 1000")).code == 0
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    os.chdir(elsewhere)
    line = gpuconsole(engine, "rerun", "first", "--dry-run")
    assert line.code == 0, line.talk
    assert f"source={folder},target=/workspace" in line.text
    done = gpuconsole(engine, "rerun", "first")
    assert done.code == 0, done.talk
    assert "The name first is taken, so it gets a new one." in done.talk
    second = done.text.strip()
    assert second.startswith("small-"), "after the image, though it is started by its id"
    same = ("{{.Image}} {{.Config.Env}} {{.Config.Cmd}} {{.HostConfig.ShmSize}} {{.HostConfig.Mounts}} "
            "{{.Config.WorkingDir}} {{.HostConfig.Init}}")  # fmt: skip
    assert len({engine.docker("inspect", "-f", same, name).stdout for name in ("first", second)}) == 1
    runs = gpuconsole(engine, "runs", "--json").document["runs"]
    assert runs[0]["digest"] == runs[1]["digest"]
    assert runs[0]["image"] == runs[1]["image"]
    # Also after it was removed, under its own name again.
    gpuconsole(engine, "rm", "--yes", "--force", "first", second)
    again = gpuconsole(engine, "rerun", str(runs[1]["number"]))
    assert again.code == 0, again.talk
    assert again.text.strip() == "first"

    (folder / "here.txt").unlink()
    folder.rmdir()
    lost = gpuconsole(engine, "rerun", "first")
    assert lost.code == ExitCode.NOT_FOUND
    assert "is gone" in lost.talk


@pytest.mark.engine
def test_a_secret_is_asked_of_the_shell(engine_modern: Engine, folder: Path) -> None:
    launch(engine_modern, "secretive", "-e", "WANDB_API_KEY=0123456789abcdef", command=("sleep", "1000"))
    gpuconsole(engine_modern, "rm", "--yes", "--force", "secretive")
    refused = gpuconsole(engine_modern, "rerun", "secretive")
    assert refused.code == ExitCode.NOT_FOUND
    assert "export WANDB_API_KEY=" in refused.talk
    done = gpuconsole(engine_modern, "rerun", "secretive", WANDB_API_KEY="fedcba9876543210")
    assert done.code == 0, done.talk
    told = engine_modern.docker("inspect", "-f", "{{.Config.Env}}", "secretive").stdout
    assert "WANDB_API_KEY=fedcba9876543210" in told


@pytest.mark.engine
def test_a_secret_in_the_command_is_in_no_record(engine_modern: Engine, folder: Path) -> None:
    launch(engine_modern, "open", command=("sleep", "1000", "--api-key", "0123456789abcdef"))
    gpuconsole(engine_modern, "rm", "--yes", "--force", "open")
    kept = b"".join(path.read_bytes() for path in (folder.parent / "state").rglob("*") if path.is_file())
    assert b"0123456789abcdef" not in kept
    refused = gpuconsole(engine_modern, "rerun", "open")
    assert refused.code == ExitCode.NOT_FOUND
    assert "--secret NAME=FILE" in refused.talk


@pytest.mark.engine
def test_a_killed_console_loses_no_launch(engine_modern: Engine, folder: Path) -> None:
    command = (
        *US,
        "launch",
        engine_modern.load("small"),
        "--gpus",
        "none",
        "--name",
        "long",
        "--wait",
        "--",
        "sleep",
        "9999",
    )
    process = subprocess.Popen(
        command, env=environment(engine_modern), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        wait_until(lambda: state(engine_modern, "long") == "running", "the container runs")
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=30)
        assert state(engine_modern, "long") == "running"
        (run,) = gpuconsole(engine_modern, "runs", "--json").document["runs"]
        assert (run["name"], run["ended_at"]) == ("long", None)
        engine_modern.docker("kill", "long")
        (run,) = gpuconsole(engine_modern, "runs", "--json").document["runs"]
        assert (run["exit_code"], run["cause"]) == (137, "stopped")
    finally:
        process.kill()
        process.wait()


@pytest.mark.engine
def test_an_engine_that_was_restarted_under_a_launch_is_named(engine_modern: Engine, folder: Path) -> None:
    launch(engine_modern, "first", command=("sleep", "9999"))
    engine_modern.stop()
    done = gpuconsole(engine_modern, "runs")
    assert done.code == 0
    assert b"How they ended since is not known" in done.err
    engine_modern.start()
    (run,) = gpuconsole(engine_modern, "runs", "--json").document["runs"]
    assert run["cause"] == "engine-restarted", run


@pytest.mark.engine
def test_what_never_ran_and_what_removed_itself_are_remembered(engine_modern: Engine, folder: Path) -> None:
    never = launch(engine_modern, "never", "--wait", command=("no-such-program",))
    assert never.code == ExitCode.NOT_FOUND
    (run,) = gpuconsole(engine_modern, "runs", "--json").document["runs"]
    assert (run["name"], run["exit_code"], run["cause"]) == ("never", 127, "not-started")
    assert state(engine_modern, "never") == ""
    removed = launch(engine_modern, "brief", "--rm", "--wait", command=("sh", "-c", "exit 3"))
    assert removed.code == 3
    run = gpuconsole(engine_modern, "runs", "--json").document["runs"][0]
    assert (run["name"], run["exit_code"], run["ended_at"] is not None) == ("brief", 3, True)


def test_gpus_are_told_by_the_index_that_they_have_now(
    nvml: NvmlBox, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{folder}/no.sock")
    nvml.write(box(2))
    here = tuple(stand_in_uuid(index) for index in range(2))
    gone = "GPU-deadbeef-0000-4000-8000-00000000000f"
    records = LaunchRecords()
    for name, uuids in (("none", ()), ("some", (*here, gone))):
        request = CreateRequest("busybox:1", name=name, labels={})
        choice: Any = SimpleNamespace(uuids=uuids)
        plan = LaunchPlan(LaunchSpec("busybox:1"), request, EngineInfo(endpoint="unix:///x"), choice,
                          GpuRoute(GpuPath.NONE, ""))  # fmt: skip
        records.begin(plan, LaunchOptions("busybox:1"), word=name, folder="/w", command="docker run")
    records.close()
    assert main(["runs"]) == 0
    title, some, none = capsys.readouterr().out.splitlines()
    assert title.split()[3] == "GPU"
    assert "  0,1,GPU-dead  " in some
    assert "  –  " in none


def test_nothing_and_nobody(folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{folder}/no.sock")
    assert main(["runs"]) == 0
    told = capfd.readouterr()
    assert "Nothing was launched yet." in told.err
    assert "How they ended since is not known" in told.err
    assert main(["runs", "nobody"]) == ExitCode.NOT_FOUND
    assert main(["rerun", "7"]) == ExitCode.NOT_FOUND
    assert main(["diff", "7", "8"]) == ExitCode.NOT_FOUND
    assert "Traceback" not in capfd.readouterr().err
