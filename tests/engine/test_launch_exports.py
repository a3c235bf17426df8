"""What ``--dry-run`` prints makes what launch makes: docker's line, the compose file, and the profile."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.engine.launching import names
from tests.engine.test_launch import HARD, normalised
from tests.rig.engines import Engine
from tests.rig.gpus import TWO_GPUS
from tests.rig.nvml.presets import h200
from tests.rig.nvml.simulated import NvmlBox
from tests.rig.nvml.state import NvmlState

pytestmark = pytest.mark.engine
UID, GID = 12345, 12300
SECRET = "p4\"s$w`ör d'x\\"


def run(engine: Engine, *arguments: str) -> str:
    environment = {**os.environ, "DOCKER_HOST": engine.host, "SUDO_UID": str(UID), "SUDO_GID": str(GID)}
    environment |= {"HF_TOKEN": "from the shell", "OTHER": "x", "DB_PASSWORD": SECRET}
    done = subprocess.run(
        [sys.executable, "-m", "gpuconsole", *arguments], env=environment, capture_output=True, text=True, check=False,
        timeout=120, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def made(engine: Engine) -> dict[str, Any]:
    """The container named same, without what differs from one making to the next; it is removed."""
    inspected = engine.get("/containers/same/json")
    host = inspected["HostConfig"]
    more = ("Tmpfs", "GroupAdd", "ExtraHosts", "ReadonlyRootfs", "Privileged")
    found = normalised(inspected) | {key: host.get(key) or None for key in more}
    found["ExtraHosts"] = sorted(found["ExtraHosts"] or ())
    del found["Binds"]  # how a mount was written; what is mounted is compared
    found["Labels"] = {key: value for key, value in found["Labels"].items() if not key.startswith("com.docker.compose")}
    engine.docker("rm", "--force", "--volumes", "same")
    return found


def test_each_printed_form_makes_the_same_container(
    engine_modern: Engine, nvml: NvmlBox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nvml.write(NvmlState(gpus=tuple(h200(gpu.index, uuid=gpu.uuid, minor=gpu.minor) for gpu in TWO_GPUS)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_TOKEN", "from the shell")
    monkeypatch.setenv("DB_PASSWORD", SECRET)
    (tmp_path / "a:b,c d").mkdir()
    (tmp_path / "plain.env").write_text("FROM_FILE=x/y\n")
    (tmp_path / "hard.env").write_text("QUOTED='x' # $HOME\n")
    (tmp_path / "key").write_text("hush")
    image = engine_modern.load("small")
    forced = [f"--force={slug}" for slug in ("dangerous-mount", "outside-project", "privileged")]
    cases: dict[str, tuple[list[str], list[str]]] = {
        "wide": (
            [
                "--gpus", "none", "--mount", f'type=bind,"source={tmp_path}/a:b,c d",target=/data set,readonly',
                "-v", "runs:/runs", "-p", "8080/udp", "-p", "127.0.0.1::80", "-e", f"HARD={HARD}", "-e", "EMPTY=",
                "-e", "HF_TOKEN", "-e", f"DB={SECRET}", "-e", f"URL=x://me:{SECRET}@db/'$HOME'", "-l", f"db={SECRET}",
                "--env-file", "plain.env", "--env-file", "hard.env", "-l", f"note={HARD}",
                "-w", "/work dir", "--group-add", "44", "--hostname", "node-1", "--shm-size", "1000001", "-m", "300m",
                "--cpus", "0.25", "--ulimit", "nofile=100:200", "--restart", "on-failure:3", "--ipc", "shareable",
                "--tmpfs", "/scratch:size=1m,exec", "--secret", "key=key", "--device", "/dev/zero:/dev/our-zero:r",
                "--add-host", "node-2:10.1.2.3", "--add-host", "up:host-gateway", "--read-only", "--no-init",
                "--user", "me",
            ],
            ["sh", "-c", "sleep 60", HARD, f"--db=it's {SECRET}", "${OTHER} $OTHER", "", "-x"],
        ),
        "gpus": (
            ["--gpus", "2", "--kind", "torchrun", "--env-file", "plain.env", "--entrypoint", "echo", "--privileged"],
            ["train.py"],
        ),
    }  # fmt: skip
    for name, (options, command) in cases.items():
        given = ("launch", image, "--name", "same", *forced, *options)
        run(engine_modern, *given, "--", *command)
        ours = made(engine_modern)

        line = run(engine_modern, *given, "--dry-run", "--write-files", "--", *command)
        assert SECRET not in line
        environment = {**os.environ, **engine_modern.env()}
        done = subprocess.run(["bash", "-c", line], env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert made(engine_modern) == ours, name

        text = run(engine_modern, *given, "--dry-run", "--format", "compose", "--", *command)
        assert SECRET not in text
        (tmp_path / "compose.yaml").write_text(text)
        engine_modern.docker("compose", "--file", str(tmp_path / "compose.yaml"), "up", "--detach")
        assert made(engine_modern) == ours, name

        text = run(engine_modern, *given, "--dry-run", "--format", "toml", "--", *command)
        assert "from the shell" not in text
        assert SECRET not in text
        (tmp_path / "gpuconsole.toml").write_text(text)
        run(engine_modern, "launch", "small", *forced)
        assert made(engine_modern) == ours, name
    assert names(engine_modern) == []
