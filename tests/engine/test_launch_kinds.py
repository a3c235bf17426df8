"""Kinds of work on a real engine: torchrun over the chosen GPUs from a profile, Jupyter's token, what is saved."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from gpuconsole.core.paths import state_dir
from gpuconsole.services.notebooks import sweep_tokens
from gpuconsole.services.session import Session
from tests.engine.launching import names
from tests.rig.engines import Engine
from tests.rig.gpus import TWO_GPUS
from tests.rig.nvml.presets import h200
from tests.rig.nvml.simulated import NvmlBox
from tests.rig.nvml.state import NvmlState

pytestmark = pytest.mark.engine
COMMAND = [sys.executable, "-m", "gpuconsole"]
UID, GID = 12345, 12300
TRAIN = """
import os, sys, torch, torch.distributed as dist
dist.init_process_group("gloo")
value = torch.tensor([float(dist.get_rank() + 1)])
dist.all_reduce(value)
seen = sorted(name for name in os.listdir("/dev") if name.startswith("nvidia") and name[6:].isdigit())
open(f"/out/rank{dist.get_rank()}", "w").write(f"{dist.get_world_size()} {value.item():g} {sys.argv[1:]} {seen}")
open("/ckpt/last", "a").write("x")
assert open("/data/x").read() == "data"
dist.destroy_process_group()
"""
PROFILE = """
[profiles.base]
image = "{image}"
volumes = [".:/workspace:ro", "./data:/data:ro"]
workdir = "/workspace"

[profiles.train]
extends = "base"
kind = "torchrun"
gpus = 2
volumes = ["./runs:/out", "./ckpt:/ckpt"]
command = ["train.py", "--lr", "${{LR:-0.1}}", "two words"]
env = {{ OMP_NUM_THREADS = 1, WANDB_API_KEY = "${{WANDB_API_KEY}}" }}
secrets = {{ netrc = "netrc" }}
"""
JUPYTER = """#!/bin/sh
# Stands in for Jupyter: serves the token it was given to who knows where to ask.
echo "args: $*"
case "$*" in *--once*) exit 0 ;; esac
mkdir -p /tmp/www; id -u > /tmp/www/id; cp "$JUPYTER_TOKEN_FILE" /tmp/www/token
exec httpd -f -p 8888 -h /tmp/www
"""


def run(engine: Engine, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "DOCKER_HOST": engine.host, "SUDO_UID": str(UID), "SUDO_GID": str(GID), **env}
    return subprocess.run(
        [*COMMAND, *arguments], env=environment, capture_output=True, text=True, check=False, timeout=120,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip


def owned(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    os.chown(path, UID, GID)
    return path


def test_a_profile_trains_on_the_chosen_gpus_and_the_caller_owns_what_it_writes(
    engine_modern: Engine, nvml: NvmlBox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nvml.write(NvmlState(gpus=tuple(h200(gpu.index, uuid=gpu.uuid, minor=gpu.minor) for gpu in TWO_GPUS)))
    project = owned(tmp_path / "project")
    for name in ("data", "runs", "ckpt"):
        owned(project / name)
    (project / "data/x").write_text("data")
    (project / "netrc").write_text("machine api.wandb.ai login user password hush")
    (project / "train.py").write_text(TRAIN)
    (project / "gpuconsole.toml").write_text(PROFILE.format(image=engine_modern.load("pytorch")))
    monkeypatch.chdir(project)

    asked = run(engine_modern, "launch", "train", WANDB_API_KEY="hush")
    assert asked.returncode == 7, asked.stderr
    assert "passes WANDB_API_KEY of this shell" in asked.stderr
    assert "--force outside-project" in asked.stderr
    assert names(engine_modern) == []

    options = ("--name", "train", "--force", "outside-project", "--wait")
    done = run(engine_modern, "launch", "train", *options, WANDB_API_KEY="hush", LR="0.5")
    assert done.returncode == 0, done.stdout + done.stderr
    for rank in (0, 1):
        made = project / f"runs/rank{rank}"
        assert made.read_text() == "2 3 ['--lr', '0.5', 'two words'] ['nvidia0', 'nvidia1']"
        assert (made.stat().st_uid, made.stat().st_gid) == (UID, GID)
    assert (project / "ckpt/last").read_text() == "xx"

    inspected = engine_modern.get("/containers/train/json")
    assert "hush" not in json.dumps(inspected["Config"]["Labels"])
    assert "NETRC=/run/secrets/netrc" in inspected["Config"]["Env"]

    saved = run(engine_modern, "profiles", "save", "again", "train")
    assert saved.returncode == 0, saved.stderr
    assert "hush" not in saved.stdout + saved.stderr + (project / "gpuconsole.toml").read_text().split("again]")[1]
    assert run(engine_modern, "profiles", "save", "again", "train").returncode == 6
    shown = run(engine_modern, "profiles", "show", "again", "--json", WANDB_API_KEY="hush")
    assert shown.returncode == 0, shown.stderr
    fields = json.loads(shown.stdout)["profile"]["fields"]
    fields["volumes"].sort()  # the engine lists mounts in any order
    assert fields == {
        "image": engine_modern.load("pytorch"),
        "kind": "torchrun",
        "command": ["train.py", "--lr", "0.5", "two words"],
        "gpus": 2,
        "volumes": sorted([f"{project}:/workspace:ro", f"{project}/data:/data:ro", f"{project}/runs:/out",
                           f"{project}/ckpt:/ckpt"]),
        "env": {"OMP_NUM_THREADS": "1", "WANDB_API_KEY": "${WANDB_API_KEY}"},
        "secrets": {"netrc": f"{project}/netrc"},
        "user": "me",
    }  # fmt: skip


def test_jupyters_token_is_shown_once_and_stands_nowhere_else(
    engine_modern: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(owned(tmp_path / "work"))
    (tmp_path / "jupyter").write_text(JUPYTER)
    (tmp_path / "jupyter").chmod(0o755)
    stand_in = ("-v", f"{tmp_path}/jupyter:/bin/jupyter:ro", "--gpus", "none", "--kind", "jupyter")
    image = engine_modern.load("small")
    done = run(
        engine_modern, "launch", image, *stand_in, "--name", "notes", "-v", ".:/w", "-w", "/w", "--", "--LabApp.x=1"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "notes\n"
    found = re.search(r"JupyterLab: http://127\.0\.0\.1:(\d+)/lab\?token=(\S+)\n", done.stderr)
    assert found, done.stderr
    port, token = found.groups()
    assert done.stderr.count(token) == 1
    assert re.search(rf"ssh -N -L {port}:127\.0\.0\.1:{port} ", done.stderr)
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/token", timeout=30) as answer:
        assert answer.read().decode() == token
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/id", timeout=30) as answer:
        assert answer.read().decode() == f"{UID}\n"

    logs = run(engine_modern, "logs", "notes").stdout
    assert "args: lab --ip=0.0.0.0 --port=8888 --port-retries=0 --no-browser --allow-root --LabApp.x=1" in logs
    inspected = engine_modern.get("/containers/notes/json")
    assert inspected["NetworkSettings"]["Ports"]["8888/tcp"] == [{"HostIp": "127.0.0.1", "HostPort": port}]
    for place in (json.dumps(inspected), logs, subprocess.run(["ps", "axeww"], capture_output=True, text=True).stdout):
        assert token not in place
    (file,) = state_dir().glob("jupyter/*/jupyter_token")
    assert file.read_text() == token
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700

    second = run(engine_modern, "launch", image, *stand_in, "--name", "more", "--json")
    url = json.loads(second.stdout)["access"]["url"]
    assert f":{port}/" not in url, "the next free port is taken"
    assert url.partition("token=")[2] not in second.stderr

    followed = run(engine_modern, "launch", image, *stand_in, "--rm", "--wait", "--", "--once")
    assert followed.returncode == 0, followed.stderr
    assert len(re.findall(r"JupyterLab: http://127\.0\.0\.1:\d+/lab\?token=\S{20,}\n", followed.stderr)) == 1
    assert "--once" in followed.stdout
    assert "token=" not in followed.stdout

    failed = run(engine_modern, "launch", image, "--gpus", "none", "--kind", "jupyter", "--name", "none")
    assert failed.returncode == 5
    assert "no program jupyter" in failed.stderr
    assert names(engine_modern) == ["more", "notes"]
    assert len(list(state_dir().glob("jupyter/*"))) == 3, "the token of what failed is gone"
    engine_modern.docker("rm", "--force", "notes")
    for folder in state_dir().glob("jupyter/*"):
        os.utime(folder, (0, 0))
    session = Session(host=engine_modern.host)
    sweep_tokens(session.engine, endpoint=session.engine.info().endpoint)
    session.close()
    assert [folder.name == file.parent.name for folder in state_dir().glob("jupyter/*")] == [False]
