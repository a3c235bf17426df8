"""`ps` and `inspect` on real engines and a simulated driver."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.cli.engines import (
    OBEYED,
    US,
    environment,
    gpuconsole,
    pid_of,
    run_to_end,
    start,
    state,
    wait_until,
)
from tests.rig.engines import Engine
from tests.rig.fixtures import Bench
from tests.rig.nvml import GIB, GpuProcess, NvmlBox
from tests.rig.terminal import Terminal

pytestmark = pytest.mark.engine


def listed(engine: Engine, *arguments: str, **options: Any) -> dict[str, dict[str, Any]]:
    done = gpuconsole(engine, "ps", "--json", *arguments, **options)
    assert done.code == 0, done.talk
    assert done.document["schema"] == "gpuconsole.ps/1"
    assert done.document["endpoint"]["url"] == engine.host
    return {entry["name"]: entry for entry in done.document["containers"]}


def with_gpu(engine: Engine, gpu: int) -> tuple[str, ...]:
    return ("--device", f"nvidia.com/gpu={gpu}") if engine.has_cdi else ("--gpus", f"device={gpu}")


def test_a_containers_gpu_and_the_memory_its_processes_hold(engine: Engine, nvml_box: NvmlBox) -> None:
    start(engine, "train", *with_gpu(engine, 1), command=("sh", "-c", "sleep 1000000 & wait"))
    start(engine, "idle", *with_gpu(engine, 0))
    start(engine, "plain")
    inside = [int(row.split()[1]) for row in engine.docker("top", "train").stdout.splitlines()[1:]]
    assert len(inside) == 2
    strangers = GpuProcess(pid=os.getpid(), used_bytes=GIB)
    nvml_box.change_gpu(1, processes=(*(GpuProcess(pid=pid, used_bytes=3 * GIB) for pid in inside), strangers))
    found = listed(engine, base=nvml_box.env())
    assert [(gpu["index"], gpu["uuid"], gpu["name"], gpu["found_by"]) for gpu in found["train"]["gpus"]] == [
        (1, nvml_box.state.gpus[1].uuid or nvml_uuid(nvml_box, 1), "NVIDIA H200", "claim")
    ]
    assert found["train"]["gpu_memory_bytes"] == 6 * GIB
    assert found["idle"]["gpu_memory_bytes"] == 0
    assert found["plain"]["gpus"] == []
    assert found["train"]["cpu_pct"] is not None
    assert 0 < found["train"]["memory_bytes"] < GIB


def nvml_uuid(box: NvmlBox, index: int) -> str:
    program = f"import pynvml as n; n.nvmlInit(); print(n.nvmlDeviceGetUUID(n.nvmlDeviceGetHandleByIndex({index})))"
    return box.python(program)


def test_a_process_on_a_gpu_that_was_not_asked_for_is_shown(engine_modern: Engine, nvml_box: NvmlBox) -> None:
    start(engine_modern, "sly", "--privileged")
    nvml_box.change_gpu(0, processes=(GpuProcess(pid=pid_of(engine_modern, "sly"), used_bytes=GIB),))
    entry = listed(engine_modern, base=nvml_box.env())["sly"]
    assert [(gpu["index"], gpu["found_by"]) for gpu in entry["gpus"]] == [(0, "process")]
    assert entry["gpu_memory_bytes"] == GIB


def test_memory_the_driver_does_not_tell_is_unknown_and_not_zero(engine_modern: Engine, nvml_box: NvmlBox) -> None:
    start(engine_modern, "train", *with_gpu(engine_modern, 0))
    nvml_box.change_gpu(0, processes=(GpuProcess(pid=pid_of(engine_modern, "train"), used_bytes=None),))
    entry = listed(engine_modern, base=nvml_box.env())["train"]
    assert entry["gpu_memory_bytes"] is None
    assert "driver does not tell" in entry["unknown"]["gpu_memory_bytes"]


@pytest.mark.parametrize(("asked", "handed_out"), [("1", "0"), ("2", "0,1")])
def test_a_number_of_gpus_means_the_first_as_the_engine_hands_them_out(
    asked: str, handed_out: str, engine_toolkit: Engine, nvml_box: NvmlBox
) -> None:
    start(engine_toolkit, "train", "--gpus", asked)
    assert engine_toolkit.hook_calls()[-1].environment["NVIDIA_VISIBLE_DEVICES"] == handed_out
    entry = listed(engine_toolkit, base=nvml_box.env())["train"]
    assert ",".join(str(gpu["index"]) for gpu in entry["gpus"]) == handed_out


def test_all_gpus(engine: Engine, nvml_box: NvmlBox) -> None:
    start(engine, "train", *(("--device", "nvidia.com/gpu=all") if engine.has_cdi else ("--gpus", "all")))
    entry = listed(engine, base=nvml_box.env())["train"]
    assert [gpu["index"] for gpu in entry["gpus"]] == [0, 1]
    assert "0,1" in gpuconsole(engine, "ps", base=nvml_box.env()).text


def test_without_a_driver_everything_else_is_there(engine: Engine) -> None:
    start(engine, "train", *with_gpu(engine, 1))
    done = gpuconsole(engine, "ps")
    assert done.code == 0
    assert "train" in done.text
    assert "GPU memory unknown: There is no NVIDIA driver" in done.talk
    entry = listed(engine)["train"]
    assert entry["gpu_memory_bytes"] is None
    assert [gpu["index"] for gpu in entry["gpus"]] == [1]
    assert entry["memory_bytes"] > 0


@pytest.mark.parametrize("code", [9, 18, 999])
def test_with_a_driver_that_fails_everything_else_is_there(code: int, engine_modern: Engine, nvml_box: NvmlBox) -> None:
    start(engine_modern, "train", *with_gpu(engine_modern, 1))
    nvml_box.write(init=code)
    entry = listed(engine_modern, base=nvml_box.env())["train"]
    assert entry["gpu_memory_bytes"] is None
    assert entry["unknown"]["gpu_memory_bytes"]
    assert entry["cpu_pct"] is not None


def test_a_lost_gpu_does_not_hide_the_other(engine_modern: Engine, nvml_box: NvmlBox) -> None:
    start(engine_modern, "train", *with_gpu(engine_modern, 1))
    nvml_box.change_gpu(0, lost=True)
    nvml_box.change_gpu(1, processes=(GpuProcess(pid=pid_of(engine_modern, "train"), used_bytes=GIB),))
    entry = listed(engine_modern, base=nvml_box.env())["train"]
    assert entry["gpu_memory_bytes"] == GIB


def test_states_and_endings_in_words(engine: Engine) -> None:
    start(engine, "alive")
    start(engine, "frozen")
    engine.docker("pause", "frozen")
    run_to_end(engine, "failed", command=("sh", "-c", "exit 3"))
    run_to_end(engine, "well", command=("true",))
    run_to_end(engine, "lacking", command=("no-such-program",))
    run_to_end(engine, "hungry", "--memory", "8m", "--memory-swap", "8m", command=("sh", "-c", "tail /dev/zero"))
    found = listed(engine)
    assert found["alive"]["status"].startswith("up ")
    assert found["frozen"]["status"] == "paused"
    assert found["frozen"]["memory_bytes"] > 0
    assert found["failed"]["status"].startswith("exit 3 ")
    assert found["well"]["status"].startswith("ended ")
    assert found["lacking"]["status"] == "not started"
    assert "no-such-program" in found["lacking"]["ending"]
    assert found["hungry"]["oom_killed"] is True
    assert "memory" in found["hungry"]["ending"]


def test_all_are_listed_and_running_restricts(engine_modern: Engine) -> None:
    start(engine_modern, "alive")
    run_to_end(engine_modern, "over", command=("true",))
    assert set(listed(engine_modern)) == {"alive", "over"}
    assert set(listed(engine_modern, "--all")) == {"alive", "over"}
    assert set(listed(engine_modern, "--running")) == {"alive"}
    assert set(listed(engine_modern, "--filter", "OVE")) == {"over"}
    assert listed(engine_modern, "--no-stats")["alive"]["unknown"]["cpu_pct"] == "not asked for"
    assert gpuconsole(engine_modern, "ps", "-a", "-r").code == 2
    done = gpuconsole(engine_modern, "ps", "--filter", "nothing-like-it")
    assert (done.code, done.out) == (0, b"")
    assert "No container matches" in done.talk


def test_the_user_is_our_label_else_the_main_process(engine: Engine) -> None:
    start(engine, "labelled", "--label", "gpuconsole.user=mei")
    start(engine, "numbered", "--user", "54321")
    start(engine, "rooted")
    found = listed(engine)
    assert [found[name]["user"] for name in ("labelled", "numbered", "rooted")] == ["mei", "54321", "root"]


@pytest.fixture
def terminal_of(rig_bench: Bench) -> Iterator[Callable[..., Terminal]]:
    opened: list[Terminal] = []

    def run(engine: Engine, *arguments: str, columns: int = 80) -> Terminal:
        env = environment(engine, TERM="xterm-256color")
        terminal = Terminal([*US, *arguments], env=env, folder=rig_bench.rig.folder, columns=columns)
        opened.append(terminal)
        return terminal

    yield run
    for terminal in opened:
        terminal.close()


def test_the_table_fits_eighty_columns(engine_modern: Engine, terminal_of: Callable[..., Terminal]) -> None:
    long = "a-very-long-name-for-a-container-of-an-experiment-with-many-parameters"
    engine_modern.docker("tag", engine_modern.load("small"), "pytorch/pytorch:2.9.0-cuda12.8-cudnn9-runtime")
    start(engine_modern, long, "--label", "gpuconsole.user=somebody-with-a-long-name", *with_gpu(engine_modern, 1))
    engine_modern.docker(
        "run", "-d", "--name", "torch", "pytorch/pytorch:2.9.0-cuda12.8-cudnn9-runtime", "sleep", "1000"
    )
    terminal = terminal_of(engine_modern, "ps")
    assert terminal.wait() == 0
    wait_until(lambda: "pytorch" in terminal.text, "no table")
    lines = terminal.text.splitlines()
    assert lines[0].split() == ["NAME", "IMAGE", "GPU", "GPU", "GiB", "CPU", "RAM", "GiB", "STATE", "USER"]
    assert all(len(line) <= 80 for line in lines[:3])
    assert long in gpuconsole(engine_modern, "ps").text  # a pipe gets whole names


def test_an_ascii_terminal_gets_ascii(engine_modern: Engine) -> None:
    start(engine_modern, "plain")
    done = gpuconsole(engine_modern, "ps", LC_ALL="POSIX", LANG="POSIX", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert done.code == 0
    done.out.decode("ascii")


def test_an_engine_that_is_down_is_a_sentence(engine_modern: Engine) -> None:
    for command in (["ps"], ["inspect", "x"], ["logs", "x"], ["stop", "x"], ["shell", "x"], ["images"]):
        done = gpuconsole(engine_modern, "--host", "unix:///nowhere/docker.sock", *command)
        assert (done.code, done.out) == (4, b"")
        assert "Traceback" not in done.talk


def test_containers_that_come_and_go_meanwhile_do_no_harm(engine_modern: Engine) -> None:
    start(engine_modern, "steady")
    image = engine_modern.load("small")
    loop = f"i=0; while :; do i=$((i+1)); docker run -d --rm --name go$i {image} true >/dev/null; done"
    churn = subprocess.Popen(["sh", "-c", loop], env=environment(engine_modern), stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: len(engine_modern.docker("ps", "-aq").stdout.split()) > 1, "nothing comes")
        for _ in range(6):
            assert "steady" in listed(engine_modern)
    finally:
        churn.kill()
        churn.wait()
        wait_until(lambda: len(engine_modern.docker("ps", "-aq").stdout.split()) == 1, "some stay")


@pytest.mark.slow
def test_sixty_running_containers(engine_modern: Engine) -> None:
    image = engine_modern.load("small")
    start_all = f"seq 60 | xargs -P 4 -I N docker run -d --name many-N {image} sleep 1000000"
    subprocess.run(["sh", "-c", start_all], env=environment(engine_modern), stdout=subprocess.DEVNULL, check=True)
    found = listed(engine_modern)
    assert len(found) == 60
    assert all(entry["cpu_pct"] is not None and entry["memory_bytes"] for entry in found.values())


# -- inspect


def inspected(engine: Engine, name: str, **options: Any) -> dict[str, Any]:
    done = gpuconsole(engine, "inspect", name, "--json", **options)
    assert done.code == 0, done.talk
    assert done.document["schema"] == "gpuconsole.inspect/1"
    entry: dict[str, Any] = done.document["container"]
    return entry


SECRETS = ("tok-1-secret", "tok-2-secret", "tok-3-secret", "tok-4-secret", "tok-5-secret")


def test_secrets_are_masked_everywhere(engine: Engine) -> None:
    start(
        engine, "box", "-e", "HF_TOKEN=tok-1-secret", "-e", "DATABASE=postgres://me:tok-2-secret@db/x", "-e", "A=1",
        "--label", "registry.password=tok-3-secret",
        command=("sh", "-c", "WANDB_API_KEY=tok-4-secret sleep 1000000", "x", "--token", "tok-5-secret"),
    )  # fmt: skip
    text = gpuconsole(engine, "inspect", "box").text
    document = json.dumps(inspected(engine, "box"))
    for secret in SECRETS:
        assert secret not in text
        assert secret not in document
    assert "HF_TOKEN=********" in text
    assert "postgres://me:********@db/x" in text
    assert {"name": "A", "value": "1"} in inspected(engine, "box")["environment"]


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


def test_an_image_that_is_gone_does_no_harm(engine: Engine) -> None:
    engine.docker("tag", engine.load("small"), "short-lived:1")
    run_to_end(engine, "box", command=("true",))
    engine.docker("run", "-d", "--name", "orphan", "short-lived:1", "sleep", "1000000")
    engine.docker("rmi", "short-lived:1")
    assert gpuconsole(engine, "inspect", "orphan").code == 0
    assert listed(engine)["orphan"]["image"]


def test_the_nearest_names_are_offered(engine: Engine) -> None:
    start(engine, "llama-finetune")
    done = gpuconsole(engine, "inspect", "lama-finetune")
    assert done.code == 5
    assert "Did you mean llama-finetune?" in done.talk
    assert gpuconsole(engine, "inspect", "finetune").talk.count("llama-finetune") == 1


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


# -- completion


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
