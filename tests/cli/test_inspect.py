"""`inspect`, names as people type them, and their completion."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from tests.cli.engines import (
    OBEYED,
    gpuconsole,
    run_to_end,
    start,
    state,
)
from tests.rig.engines import Engine
from tests.rig.kinds import KINDS, NEWEST
from tests.rig.nvml import GIB, NvmlBox

pytestmark = pytest.mark.engine(*NEWEST)


def with_gpu(engine: Engine, gpu: int) -> tuple[str, ...]:
    return ("--device", f"nvidia.com/gpu={gpu}") if engine.has_cdi else ("--gpus", f"device={gpu}")


def inspected(engine: Engine, name: str, **options: Any) -> dict[str, Any]:
    done = gpuconsole(engine, "inspect", name, "--json", **options)
    assert done.code == 0, done.talk
    assert done.document["schema"] == "gpuconsole.inspect/1"
    entry: dict[str, Any] = done.document["container"]
    return entry


SECRETS = ("tok-1-secret", "tok-2-secret", "tok-3-secret", "tok-4-secret", "tok-5-secret")


def test_secrets_are_masked_everywhere(engine_modern: Engine) -> None:
    start(
        engine_modern, "box", "-e", "HF_TOKEN=tok-1-secret", "-e", "DATABASE=postgres://me:tok-2-secret@db/x",
        "-e", "A=1", "--label", "registry.password=tok-3-secret",
        command=("sh", "-c", "WANDB_API_KEY=tok-4-secret sleep 1000000", "x", "--token", "tok-5-secret"),
    )  # fmt: skip
    text = gpuconsole(engine_modern, "inspect", "box").text
    document = json.dumps(inspected(engine_modern, "box"))
    for secret in SECRETS:
        assert secret not in text
        assert secret not in document
    assert "HF_TOKEN=********" in text
    assert "postgres://me:********@db/x" in text
    assert {"name": "A", "value": "1"} in inspected(engine_modern, "box")["environment"]


def test_ports_come_with_the_line_that_brings_them_home(engine: Engine) -> None:
    start(engine, "web", "-p", "127.0.0.1::8888", "-p", "0.0.0.0::9999")
    port = engine.docker("port", "web", "8888").stdout.strip().rpartition(":")[2]
    entry = inspected(engine, "web", SSH_CONNECTION="203.0.113.9 50000 192.0.2.7 2222")
    tunnels = {one["container_port"]: one["tunnel"] for one in entry["ports"] if one["host_ip"] != "::"}
    assert tunnels[8888].startswith(f"ssh -N -L {port}:127.0.0.1:{port} -p 2222 ")
    assert tunnels[8888].endswith("@192.0.2.7")
    assert tunnels[9999] is None
    text = gpuconsole(engine, "inspect", "web").text
    assert f"8888/tcp  at 127.0.0.1:{port}" in text
    assert "ssh -N -L" in text
    assert "open to the network" in text


def test_mounts_limits_and_the_rest(engine: Engine, tmp_path: Any, nvml_box: NvmlBox) -> None:
    start(
        engine, "box", "-v", f"{tmp_path}:/data:ro", "-v", "models:/models", "--memory", "256m", "--cpus", "1.5",
        "--shm-size", "1g", "--restart", "unless-stopped", "-w", "/data", "--user", "54321", *with_gpu(engine, 0),
    )  # fmt: skip
    entry = inspected(engine, "box", base=nvml_box.env())
    assert {(mount["source"], mount["target"], mount["read_only"]) for mount in entry["mounts"]} == {
        (str(tmp_path), "/data", True),
        ("models", "/models", False),
    }
    assert (entry["memory_limit_bytes"], entry["cpu_limit"], entry["shm_bytes"]) == (256 * 2**20, 1.5, GIB)
    assert (entry["restart_policy"], entry["working_dir"], entry["runs_as"]) == ("unless-stopped", "/data", "54321")
    text = gpuconsole(engine, "inspect", "box", base=nvml_box.env()).text
    for part in (
        f"{tmp_path} → /data (read-only)",
        "memory 256 MiB · CPUs 1.5 · shared memory 1 GiB",
        "unless-stopped",
        "NVIDIA H200",
        "0.0 GiB held",
    ):
        assert part in text


def test_hostile_text_is_shown_and_not_obeyed(engine: Engine) -> None:
    start(
        engine, "hostile", "--label", "l=\x1b]0;pwned\x07[/red]\x1b[2J\u202eevil", "-e", "E=a\nFAKE=b\x1b[31m",
        image="hostile", command=("sh", "-c", "sleep 1000000 # \x1b]52;c;aGk=\x07 [@click=app.quit]"),
    )  # fmt: skip
    for arguments in (["ps"], ["ps", "--json"], ["inspect", "hostile"], ["inspect", "hostile", "--json"], ["images"]):
        done = gpuconsole(engine, *arguments)
        assert done.code == 0
        assert not OBEYED & set(done.text), arguments
        assert "pwned" not in done.text
    text = gpuconsole(engine, "inspect", "hostile").text
    assert "[/red]" in text
    assert "[@click=app.quit]" in text
    assert not any(line.strip().startswith("FAKE=") for line in text.splitlines())


@pytest.mark.engine(*KINDS)  # images are what the stores differ in
def test_an_image_that_is_gone_does_no_harm(engine: Engine) -> None:
    engine.docker("tag", engine.load("small"), "short-lived:1")
    run_to_end(engine, "box", command=("true",))
    engine.docker("run", "-d", "--name", "orphan", "short-lived:1", "sleep", "1000000")
    engine.docker("rmi", "short-lived:1")
    assert gpuconsole(engine, "inspect", "orphan").code == 0
    assert "orphan" in gpuconsole(engine, "ps").text


def test_the_nearest_names_are_offered(engine_modern: Engine) -> None:
    start(engine_modern, "llama-finetune")
    done = gpuconsole(engine_modern, "inspect", "lama-finetune")
    assert done.code == 5
    assert "Did you mean llama-finetune?" in done.talk
    assert gpuconsole(engine_modern, "inspect", "finetune").talk.count("llama-finetune") == 1


def test_an_ambiguous_id_is_told(engine: Engine) -> None:
    ids: list[str] = []
    while len({one[0] for one in ids}) == len(ids):
        ids.append(engine.docker("create", engine.load("small")).stdout.strip())
    shared = next(one[0] for one in ids if sum(other[0] == one[0] for other in ids) > 1)
    done = gpuconsole(engine, "inspect", shared)
    assert done.code == 6
    assert "several container ids" in done.talk
    assert gpuconsole(engine, "inspect", ids[0][:12]).code == 0


def test_id_and_name_and_start_of_id_all_work(engine_modern: Engine) -> None:
    full = start(engine_modern, "box")
    for name in ("box", full, full[:12], full[:5]):
        assert inspected(engine_modern, name)["id"] == full


def completed(engine: Engine, words: str) -> list[str]:
    env = {"_GPUCONSOLE_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1)}
    done = gpuconsole(engine, base=os.environ | env)
    assert done.err == b""
    return [line.partition(",")[2] for line in done.text.splitlines() if line]


def test_names_are_completed(engine_modern: Engine) -> None:
    start(engine_modern, "train-a")
    start(engine_modern, "train-b")
    start(engine_modern, "other")
    for command in ("inspect", "logs", "stop", "rm", "shell", "attach", "start", "restart", "pause"):
        assert completed(engine_modern, f"gpuconsole {command} tr") == ["train-a", "train-b"], command
    assert completed(engine_modern, "gpuconsole stop train-a oth") == ["other"]


def test_completion_is_silent_without_an_engine_and_with_one_that_hangs(engine_modern: Engine) -> None:
    start(engine_modern, "train")
    assert completed(engine_modern, "gpuconsole --host unix:///nowhere stop tr") == []
    engine_modern.freeze()
    try:
        assert completed(engine_modern, "gpuconsole stop tr") == []
    finally:
        engine_modern.thaw()
    assert state(engine_modern, "train") == "running"
