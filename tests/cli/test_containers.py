"""`ps` on real engines and a simulated driver."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from tests.cli.engines import (
    environment,
    gpuconsole,
    pid_of,
    run_to_end,
    start,
    wait_until,
)
from tests.rig.engines import Engine
from tests.rig.kinds import RUNTIMES
from tests.rig.nvml import GIB, GpuProcess, NvmlBox
from tests.rig.terminal import Terminal

pytestmark = pytest.mark.engine(*RUNTIMES)


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


def test_the_table_fits_eighty_columns(engine_modern: Engine, open_terminal: Callable[..., Terminal]) -> None:
    long = "a-very-long-name-for-a-container-of-an-experiment-with-many-parameters"
    engine_modern.docker("tag", engine_modern.load("small"), "pytorch/pytorch:2.9.0-cuda12.8-cudnn9-runtime")
    start(engine_modern, long, "--label", "gpuconsole.user=somebody-with-a-long-name", *with_gpu(engine_modern, 1))
    engine_modern.docker(
        "run", "-d", "--name", "torch", "pytorch/pytorch:2.9.0-cuda12.8-cudnn9-runtime", "sleep", "1000"
    )
    terminal = open_terminal(engine_modern, "ps")
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
