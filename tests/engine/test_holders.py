"""Who holds the GPUs, on real engines: all processes of a container, and containers that were only given one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpuconsole.gpu.state import MemoryState
from gpuconsole.host.account import LISTED, by_container
from gpuconsole.host.accounting import account_in
from gpuconsole.host.state import memory_state
from gpuconsole.tui.screens.copying import CopyScreen
from tests.cli.engines import gpuconsole, pid_of, start, wait_until
from tests.rig.engines import Engine
from tests.rig.kinds import RUNTIMES
from tests.rig.nvml import GIB, GpuProcess, NvmlBox
from tests.tui.console import console, shown, until

pytestmark = pytest.mark.engine(*RUNTIMES)
MANY = ("sh", "-c", "sleep 1000000 & sh -c 'sleep 1000000 & wait' & wait")


def inside(engine: Engine, name: str) -> list[int]:
    return [int(row.split()[1]) for row in engine.docker("top", name).stdout.splitlines()[1:]]


def with_gpu(engine: Engine, gpu: int) -> tuple[str, ...]:
    return ("--device", f"nvidia.com/gpu={gpu}") if engine.has_cdi else ("--gpus", f"device={gpu}")


def test_a_container_has_the_sum_of_all_its_processes_children_and_what_was_started_in_it_later(
    engine: Engine, nvml_box: NvmlBox
) -> None:
    start(engine, "train", *with_gpu(engine, 0), command=MANY)
    start(engine, "other", *with_gpu(engine, 0))
    engine.docker("exec", "-d", "train", "sleep", "2000000")
    wait_until(lambda: len(inside(engine, "train")) == 5, "the children, and the process that was started in it")
    held = {pid: (place + 1) * GIB for place, pid in enumerate(inside(engine, "train"))}
    strangers = {pid_of(engine, "other"): 2 * GIB, os.getpid(): GIB}
    nvml_box.change_gpu(0, processes=tuple(GpuProcess(pid, size) for pid, size in (held | strangers).items()))
    listed = json.loads(gpuconsole(engine, "ps", "--json", base=nvml_box.env()).out)["containers"]
    assert {one["name"]: one["gpu_memory_bytes"] for one in listed} == {"train": 15 * GIB, "other": 2 * GIB}
    (gpu, _) = json.loads(gpuconsole(engine, "status", "--json", base=nvml_box.env()).out)["gpus"]
    account = gpu["account"]
    assert sum(part["bytes"] for part in account["parts"]) == account["total_bytes"] == gpu["memory_total_bytes"]
    shares = {one["container_id"]: (one["bytes"], sorted(one["pids"])) for one in account["containers"]}
    ids = {one["name"]: one["id"] for one in listed}
    assert shares[ids["train"]] == (15 * GIB, sorted(held))
    assert shares[ids["other"]] == (2 * GIB, [pid_of(engine, "other")])


def test_a_container_that_a_launch_of_ours_is_remembered_of_has_its_name_in_status(
    engine_modern: Engine, nvml_box: NvmlBox
) -> None:
    """Status asks no engine: the name and the GPU that was given come from the launch, until the container ends."""
    base = nvml_box.env()
    image = engine_modern.load("small")
    done = gpuconsole(
        engine_modern, "launch", image, "--gpus", "device=1", "--name", "mine", "--", "sleep",
        "1000000", base=base,
    )  # fmt: skip
    assert done.code == 0, done.talk
    free, given = json.loads(gpuconsole(engine_modern, "status", "--json", base=base).out)["gpus"]
    assert (free["given_to"], given["given_to"]) == ([], ["mine"])
    lines = gpuconsole(engine_modern, "status", base=base).text.splitlines()
    assert [line.split()[-1] for line in lines[3:5]] == ["free", "idle"]
    assert any(line.split()[:2] == ["1", "mine"] and "given to it" in line for line in lines)
    nvml_box.change_gpu(1, processes=(GpuProcess(pid_of(engine_modern, "mine"), GIB),))
    (_, held) = json.loads(gpuconsole(engine_modern, "status", "--json", base=base).out)["gpus"]
    assert held["holders"][0]["container_name"] == "mine"
    nvml_box.change_gpu(1, processes=())
    engine_modern.docker("rm", "-f", "mine")
    assert "given to it" not in gpuconsole(engine_modern, "status", base=base).text


async def test_the_console_does_not_call_a_gpu_free_that_a_container_was_given(
    engine_modern: Engine, nvml: NvmlBox, tmp_path: Path
) -> None:
    start(engine_modern, "quiet", "--device", "nvidia.com/gpu=1")
    app = console(engine_modern.host, tmp_path)
    async with app.run_test(size=(160, 30)) as pilot:
        await until(pilot, lambda: app.host_view and app.host_view.gpus[1].given_to == ("quiet",))
        await until(pilot, lambda: "quiet (idle)" in shown(app))
        assert app.host_view is not None
        assert [memory_state(view) for view in app.host_view.gpus] == [MemoryState.FREE, MemoryState.IDLE]
        rows = [line for line in shown(app).splitlines() if " H200 " in line]
        assert ["free" in row for row in rows[:2]] == [True, False]
        engine_modern.docker("rm", "-f", "quiet")
        await until(pilot, lambda: app.host_view and not app.host_view.gpus[1].given_to)
        await until(pilot, lambda: "quiet" not in shown(app))


async def test_the_console_shows_who_holds_what_of_a_gpu_and_of_a_container(
    engine_modern: Engine, nvml: NvmlBox, tmp_path: Path
) -> None:
    start(engine_modern, "train", "--device", "nvidia.com/gpu=0", command=MANY)
    wait_until(lambda: len(inside(engine_modern, "train")) == 4, "the children")
    pids = inside(engine_modern, "train")
    nvml.change_gpu(0, processes=tuple(GpuProcess(pid, 3 * GIB) for pid in pids), used_bytes=20 * GIB)
    app = console(engine_modern.host, tmp_path)
    async with app.run_test(size=(100, 60)) as pilot:
        await until(pilot, lambda: "train" in shown(app) and "12.0 G" in shown(app))
        await until(pilot, lambda: app.host_view and app.host_view.gpus[0].holders[0].container_name)
        assert app.host_view is not None
        (view, _) = app.host_view.gpus
        (share,) = by_container(account_in(view), view.holders)
        assert (share.name, share.bytes, sorted(share.pids)) == ("train", 12 * GIB, sorted(pids))
        assert account_in(view).bytes_of(*LISTED) == 12 * GIB
        await pilot.press("enter")
        await until(pilot, lambda: all(str(pid) in shown(app) for pid in pids), what="the container's processes")
        assert "12.0 GiB held by its own processes" in shown(app)
        await pilot.press("y")
        await until(pilot, lambda: isinstance(app.screen, CopyScreen))


def test_in_a_namespace_of_control_groups_a_process_beside_us_is_not_said_to_be_outside_containers() -> None:
    """The console in a container of its own with --pid=host: its neighbours there have no id in their path."""
    code = (
        "import os, time; from gpuconsole.host.processes import ProcessTable;"
        "f = ProcessTable().look([os.getpid()], listed_at=time.time())[os.getpid()];"
        "print(f.container_id, f.unknown.get('container_id'))"
    )
    done = subprocess.run(
        ["unshare", "--cgroup", sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    if done.returncode != 0 and "unshare" in done.stderr:
        pytest.skip(f"no namespace can be made here: {done.stderr.strip()}")
    assert done.stdout.strip() == "None it is in the container gpuconsole runs in, whose id cannot be found"
