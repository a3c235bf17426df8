"""Who holds the GPUs: the driver's pids joined with real processes, on the simulated driver."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
import time
from dataclasses import fields
from pathlib import Path

import pytest

from gpuconsole.gpu.model import Gpu, GpuProcess, GpuSnapshot, ProcessKind
from gpuconsole.host.holders import HolderTable
from gpuconsole.host.processes import ProcessFacts, ProcessTable
from gpuconsole.services.overview import Overview, overview
from gpuconsole.services.session import Session
from tests.rig.client import EngineClient
from tests.rig.nvml import GIB, MIB, NvmlBox, NvmlState, a100_mig, busy, h200
from tests.rig.nvml import GpuProcess as Simulated
from tests.unit.test_host_processes import fake_proc

A = "a1" * 32


HERTZ = os.sysconf("SC_CLK_TCK")
"""Ticks of a second in the kernel's figures."""


def of_process_7(tmp_path: Path, cgroup: str) -> HolderTable:
    return HolderTable(ProcessTable(fake_proc(tmp_path, cgroup=cgroup)))


def snapshot(*processes: GpuProcess, used_bytes: int | None = 5 * GIB) -> GpuSnapshot:
    gpu = Gpu(index=3, uuid="GPU-3", name="NVIDIA H200", memory_used_bytes=used_bytes, processes=processes)
    return GpuSnapshot(taken_at=time.time(), gpus=(gpu,))


def test_a_process_in_a_container_carries_its_id_and_the_name_that_is_known(tmp_path: Path) -> None:
    table = of_process_7(tmp_path, f"0::/docker/{A}\n")
    seen = snapshot(GpuProcess(7, 2 * GIB))
    (view,) = table.view(seen, names={A: "llama\x1b[2J-ft", "b2" * 32: "other"}).gpus
    (holder,) = view.holders
    assert (holder.container_id, holder.container_name) == (A, "llama-ft")
    assert (holder.gpu_index, holder.gpu_uuid, holder.memory_bytes) == (3, "GPU-3", 2 * GIB)
    assert holder.command == "python train.py"
    assert view.unattributed_bytes == 3 * GIB
    assert view.unknown == {}


def test_a_holder_carries_all_that_the_host_knows_of_its_process(tmp_path: Path) -> None:
    seen, table = snapshot(GpuProcess(7, GIB)), ProcessTable(fake_proc(tmp_path, cgroup="0::/user.slice\n"))
    (tmp_path / "stat").write_text("btime 1700000000\n")
    (facts,) = table.look({7}, listed_at=seen.taken_at).values()
    (holder,) = HolderTable(ProcessTable(tmp_path)).view(seen).gpus[0].holders
    for field in fields(ProcessFacts):
        assert getattr(holder, field.name) == getattr(facts, field.name), field.name


def test_a_container_whose_name_nobody_told_is_its_id(tmp_path: Path) -> None:
    (view,) = of_process_7(tmp_path, f"0::/docker/{A}\n").view(snapshot(GpuProcess(7, 1))).gpus
    (holder,) = view.holders
    assert holder.container_name is None
    assert "container_name" in holder.unknown


def test_a_process_of_the_host_is_in_no_container(tmp_path: Path) -> None:
    (view,) = of_process_7(tmp_path, "0::/user.slice\n").view(snapshot(GpuProcess(7, 1))).gpus
    (holder,) = view.holders
    assert holder.container_id is None
    assert "container_id" not in holder.unknown


@pytest.mark.parametrize(
    ("seen", "reason"),
    [
        (snapshot(GpuProcess(7, None), GpuProcess(7, 5)), "does not tell the share of 1 of its processes"),
        (snapshot(used_bytes=None), "the memory in use is unknown"),
    ],
)
def test_why_unattributed_memory_is_unknown(tmp_path: Path, seen: GpuSnapshot, reason: str) -> None:
    (view,) = of_process_7(tmp_path, "0::/\n").view(seen).gpus
    assert view.unattributed_bytes is None
    assert reason in view.unknown["unattributed_bytes"]


def test_real_processes_on_simulated_gpus(nvml: NvmlBox) -> None:
    with subprocess.Popen(["sleep", "600"]) as sleeper:
        card = busy(a100_mig(1), Simulated(os.getpid(), 3 * GIB))
        lost = h200(2, lost=True)
        nvml.write(
            NvmlState(gpus=(h200(0, processes=(Simulated(sleeper.pid, 40 * GIB),), used_bytes=41 * GIB), card, lost))
        )
        session = Session()
        try:
            view = overview(session)
        finally:
            session.close()
            sleeper.kill()
    first, second, third = view.gpus
    (holder,) = first.holders
    assert (holder.pid, holder.command, holder.memory_bytes) == (sleeper.pid, "sleep 600", 40 * GIB)
    assert holder.user == pwd.getpwuid(os.getuid()).pw_name
    assert holder.kind is ProcessKind.COMPUTE
    assert first.unattributed_bytes == GIB
    (tenant,) = second.holders
    assert (tenant.pid, tenant.mig_uuid) == (os.getpid(), card.mig_instances[0].uuid)
    assert second.unattributed_bytes == 0
    assert third.holders == ()
    assert third.unattributed_bytes is None
    assert third.unknown == {"unattributed_bytes": "the GPU is lost"}
    assert view.notes == ()


def test_a_process_on_two_gpus_holds_both(nvml: NvmlBox) -> None:
    nvml.write(NvmlState(gpus=tuple(h200(i, processes=(Simulated(os.getpid(), MIB * (i + 1)),)) for i in range(2))))
    session = Session()
    view = overview(session)
    session.close()
    assert [[holder.memory_bytes for holder in gpu.holders] for gpu in view.gpus] == [[MIB], [2 * MIB]]
    assert len({gpu.holders[0].started_at for gpu in view.gpus}) == 1


def test_the_second_look_knows_the_cpu_use(nvml: NvmlBox) -> None:
    nvml.change_gpu(0, processes=(Simulated(os.getpid(), MIB),))
    session = Session()
    watcher = Overview(session)
    first = watcher.look()
    time.sleep(0.05)
    second = watcher.look(details=True)
    session.close()
    assert first.gpus[0].holders[0].cpu_pct is None
    assert second.gpus[0].holders[0].cpu_pct is not None


def test_one_look_knows_the_cpu_use_since_each_process_began(nvml: NvmlBox) -> None:
    """As the kernel's own figures have it: of one that worked all the time, and of one that never did."""
    work = "import time\nwhile time.process_time() < 0.4: pass\nprint(flush=True); input()"
    with (
        subprocess.Popen([sys.executable, "-c", work], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as busy_one,
        subprocess.Popen(["sleep", "600"]) as idle_one,
    ):
        try:
            assert busy_one.stdout is not None
            busy_one.stdout.readline()
            ended = Simulated(4_000_000, MIB)
            nvml.change_gpu(0, processes=(Simulated(busy_one.pid, MIB), Simulated(idle_one.pid, MIB), ended))
            session = Session()
            watcher = Overview(session)
            before = time.clock_gettime(time.CLOCK_BOOTTIME)
            first = watcher.look()
            after = time.clock_gettime(time.CLOCK_BOOTTIME)
            seen = {one.pid: one for one in watcher.averaged(first).gpus[0].holders}
            session.close()
            stat = Path(f"/proc/{busy_one.pid}/stat").read_text().rpartition(")")[2].split()
            used_s, began = ((int(stat[11]) + int(stat[12])) / HERTZ, int(stat[19]) / HERTZ)
        finally:
            busy_one.kill()
            idle_one.kill()
    assert used_s >= 0.35
    assert (
        used_s / (after - began) * 100 - 1 <= (seen[busy_one.pid].cpu_pct or 0) <= used_s / (before - began) * 100 + 1
    )
    assert seen[idle_one.pid].cpu_pct is not None
    assert "cpu_pct" not in seen[idle_one.pid].unknown
    assert seen[4_000_000].cpu_pct is None
    assert seen[4_000_000].unknown["cpu_pct"]


def test_seen_from_a_pid_namespace_of_our_own_the_pids_stay_and_the_rest_is_explained(tmp_path: Path) -> None:
    """The tool runs in a container without --pid=host: pids are shown, names are not guessed, the flag is named."""
    proc = fake_proc(tmp_path)
    (proc / "self/ns").mkdir(parents=True)
    (proc / "self/ns/pid").symlink_to("pid:[4026532999]")
    view = HolderTable(ProcessTable(proc)).view(snapshot(GpuProcess(7, GIB)))
    (holder,) = view.gpus[0].holders
    assert (holder.pid, holder.memory_bytes, holder.command) == (7, GIB, None)
    assert "--pid=host" in holder.unknown["command"]
    assert len(view.notes) == 1
    assert "--pid=host" in view.notes[0]
    assert HolderTable(ProcessTable(proc)).view(snapshot()).notes == ()


@pytest.mark.engine
def test_a_real_container_on_a_simulated_gpu(nvml: NvmlBox, engine: EngineClient, small_image: str) -> None:
    """A GPU process inside a container, seen from the host: its container by cgroup, on every engine of the rig."""
    told = engine.docker("run", "-d", "--name", "holder", "--user", "12345", small_image, "sleep", "600")
    container_id = told.stdout.strip()
    pid = int(engine.docker("inspect", "-f", "{{.State.Pid}}", container_id).stdout)
    cgroup = Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8")
    nvml.change_gpu(0, processes=(Simulated(pid, 3 * GIB), Simulated(os.getpid(), GIB)))
    session = Session()
    view = overview(session, names={container_id: "holder"})
    session.close()
    inside, outside = view.gpus[0].holders
    assert (inside.container_id, inside.container_name) == (container_id, "holder"), cgroup
    assert (inside.command, inside.uid) == ("sleep 600", 12345)
    assert outside.container_id != container_id
    engine.docker("rm", "-f", container_id)
    (gone, _) = HolderTable().view(view.snapshot).gpus[0].holders
    assert gone.container_id is None
    assert gone.unknown["container_id"]
