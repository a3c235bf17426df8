"""Why memory has no process: what is seen of it on the simulated driver, with processes that really end, or hang on."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpuconsole.gpu.model import Gpu, GpuProcess, GpuSnapshot
from gpuconsole.host import evidence
from gpuconsole.host.account import LISTED, Account, Part, PartKind
from gpuconsole.host.accounting import DEFUNCT, NOBODY, TOO_LITTLE
from gpuconsole.host.holders import HolderTable, system_memory
from gpuconsole.host.openers import Openers
from gpuconsole.host.processes import WINDOWS, ProcessTable
from gpuconsole.services.overview import Overview
from gpuconsole.services.session import Session
from tests.rig.nvml import GIB, MIB, NvmlBox, NvmlState, a100_mig, gb10, h200, rtx4090
from tests.rig.nvml import GpuProcess as Simulated
from tests.unit.test_host_processes import fake_proc

Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts processes that end with the test."""
    started: list[subprocess.Popen[bytes]] = []

    def starter(*command: str) -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen(command, stdin=subprocess.PIPE))
        return started[-1]

    yield starter
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def overview() -> Iterator[Overview]:
    """Looks at the simulated driver, and remembers."""
    session = Session()
    yield Overview(session)
    session.close()


def account(overview: Overview) -> Account:
    made = overview.look().gpus[0].account
    assert made is not None
    assert sum(part.bytes for part in made.parts) == made.total_bytes
    return made


def unattributed(made: Account) -> Part:
    (part,) = [part for part in made.parts if part.kind is PartKind.UNATTRIBUTED]
    return part


def put(nvml: NvmlBox, *processes: Simulated, used_bytes: int | None = None, **changes: object) -> None:
    nvml.write(NvmlState(gpus=(h200(0, processes=processes, used_bytes=used_bytes, **changes),)))


def test_a_process_that_was_reaped_between_two_looks_and_whose_memory_stays(
    nvml: NvmlBox, overview: Overview, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = start("sleep", "600")
    put(nvml, Simulated(process.pid, 20 * GIB))
    assert account(overview).bytes_of(PartKind.UNATTRIBUTED) == 0
    process.kill()
    process.communicate()
    put(nvml, used_bytes=20 * GIB)
    assert unattributed(account(overview)).reason == f"process {process.pid} ended just now"
    monkeypatch.setattr(evidence, "_LONG_S", 0.0)
    assert (
        unattributed(account(overview)).reason == f"process {process.pid} has ended, and its memory was not given back"
    )
    put(nvml, used_bytes=0)
    assert account(overview).bytes_of(PartKind.UNATTRIBUTED) == 0
    put(nvml, used_bytes=20 * GIB)
    assert unattributed(account(overview)).reason == NOBODY, "what was given back is not blamed on it again"


def test_memory_that_nobody_had_before_is_not_blamed_on_who_ends(
    nvml: NvmlBox, overview: Overview, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evidence, "_LONG_S", 0.0)
    put(nvml, used_bytes=3 * GIB)
    assert unattributed(account(overview)).reason == NOBODY
    for _ in range(3):
        process = start("sleep", "600")
        put(nvml, Simulated(process.pid, 20 * GIB), used_bytes=23 * GIB)
        assert unattributed(account(overview)).bytes == 3 * GIB
        process.kill()
        process.communicate()
        put(nvml, used_bytes=3 * GIB)
        assert unattributed(account(overview)).reason == NOBODY, "it gave all of its own back"
    process = start("sleep", "600")
    put(nvml, Simulated(process.pid, 20 * GIB), used_bytes=23 * GIB)
    overview.look()
    process.kill()
    process.communicate()
    put(nvml, used_bytes=13 * GIB)
    assert f"process {process.pid} has ended" in (unattributed(account(overview)).reason or ""), "10 GiB of it stayed"


def test_a_machine_whose_processes_last_a_moment_costs_no_more_to_look_at(tmp_path: Path) -> None:
    """None of them can be told to have given its memory back, since one does not tell its share."""
    table = HolderTable(ProcessTable(fake_proc(tmp_path, start_ticks=1)))
    looked_up = []
    for pid in range(100, 180):
        shutil.copytree(tmp_path / "7", tmp_path / str(pid))
        table.view(listing(GpuProcess(7, None), GpuProcess(pid, GIB), used=20 * GIB))
        looked_up.append(len(table._evidence.pids))
    assert max(looked_up) <= evidence._MOST_GONE + 3
    assert looked_up[12] > 10, "those that went lately are remembered"


def test_a_process_that_ended_unreaped_is_named_whether_it_is_still_listed_or_not(
    nvml: NvmlBox, overview: Overview, start: Start
) -> None:
    process = start("sleep", "600")
    put(nvml, Simulated(process.pid, 20 * GIB))
    overview.look()
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    (part, *_) = account(overview).parts
    assert (part.kind, part.pids, part.reason) == (PartKind.PROCESS, (process.pid,), DEFUNCT)
    put(nvml, used_bytes=20 * GIB)
    assert "defunct" in (unattributed(account(overview)).reason or "")


def test_a_process_that_the_driver_lists_no_more_and_that_runs_on(
    nvml: NvmlBox, overview: Overview, start: Start
) -> None:
    process = start("sleep", "600")
    put(nvml, Simulated(process.pid, 20 * GIB))
    overview.look()
    put(nvml, used_bytes=20 * GIB)
    assert unattributed(account(overview)).reason == f"process {process.pid} is listed no more, and still runs"
    put(nvml, Simulated(process.pid, 20 * GIB))
    assert account(overview).bytes_of(PartKind.PROCESS) == 20 * GIB
    assert account(overview).bytes_of(PartKind.UNATTRIBUTED) == 0


def test_a_pid_that_is_used_again_is_another_process(tmp_path: Path) -> None:
    """The start time decides: the new one is not what was on the GPU before, and the old one has ended."""
    now = time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK")
    table = HolderTable(ProcessTable(fake_proc(tmp_path, start_ticks=1)))
    first = table.view(listing(GpuProcess(7, 20 * GIB), used=20 * GIB)).gpus[0]
    fake_proc(tmp_path, start_ticks=int(now) - 500)
    second = table.view(listing(GpuProcess(7, GIB), used=20 * GIB)).gpus[0]
    assert first.holders[0].started_at != second.holders[0].started_at
    assert second.account is not None
    assert [part.bytes for part in second.account.parts if part.kind is PartKind.PROCESS] == [GIB]
    assert unattributed(second.account).bytes == 19 * GIB
    assert unattributed(second.account).reason == "process 7 ended just now"


def listing(*processes: GpuProcess, used: int, **changes: object) -> GpuSnapshot:
    figures = {"memory_total_bytes": 140 * GIB, "memory_used_bytes": used, "memory_reserved_bytes": 0,
               "memory_free_bytes": 140 * GIB - used, "processes": processes, "minor": 0}  # fmt: skip
    return GpuSnapshot(time.time(), (Gpu(0, "GPU-0", "NVIDIA H200", **{**figures, **changes}),))  # type: ignore[arg-type]


def test_a_pid_that_stays_listed_though_no_such_process_is_here(
    nvml: NvmlBox, overview: Overview, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(nvml, Simulated(2**22 - 3, 3 * GIB))
    (part, *_) = account(overview).parts
    assert (part.kind, part.bytes) == (PartKind.ENDED, 3 * GIB)
    assert part.reason != evidence.LONG_ENDED
    monkeypatch.setattr(evidence, "_LONG_S", 0.0)
    (part, *_) = account(overview).parts
    assert part.reason == evidence.LONG_ENDED


def test_a_screen_a_virtual_gpu_and_too_little_to_be_a_process(nvml: NvmlBox, overview: Overview, start: Start) -> None:
    drawing = start("sleep", "600")
    nvml.write(NvmlState(gpus=(rtx4090(0, processes=(Simulated(drawing.pid, 100 * MIB, kind="G"),),
                                       used_bytes=700 * MIB),)))  # fmt: skip
    assert f"process {drawing.pid} draws there" in (unattributed(account(overview)).reason or "")
    put(nvml, used_bytes=20 * GIB, virtualization=2, uuid="GPU-b0000001-0000-4000-8000-00000000000a")
    assert "virtual GPU" in (unattributed(account(overview)).reason or "")
    put(nvml, used_bytes=20 * MIB, uuid="GPU-b0000002-0000-4000-8000-00000000000a")
    assert unattributed(account(overview)).reason == TOO_LITTLE


@pytest.mark.parametrize("code", [4, 999])
def test_a_list_that_cannot_be_read_is_the_reason(nvml: NvmlBox, overview: Overview, code: int) -> None:
    put(nvml, used_bytes=20 * GIB, errors={"nvmlDeviceGetComputeRunningProcesses_v3": code})
    part = unattributed(account(overview))
    assert part.bytes == 20 * GIB
    assert "cannot be listed: " in (part.reason or "")


def test_memory_beside_the_instances_of_a_divided_gpu_is_held_for_mig(nvml: NvmlBox, overview: Overview) -> None:
    nvml.write(NvmlState(gpus=(a100_mig(0, used_bytes=GIB),)))
    assert unattributed(account(overview)).reason == "held for MIG, in none of its instances"


def test_every_instance_has_an_account_of_its_own_and_no_byte_is_in_two(nvml: NvmlBox, overview: Overview) -> None:
    card = a100_mig()
    first = card.mig_instances[0].__class__(
        uuid="MIG-x", profile="3g.20gb", gpu_instance=2, total_bytes=20 * GIB, used_bytes=9 * GIB,
        processes=(Simulated(os.getpid(), 4 * GIB),),
    )  # fmt: skip
    nvml.write(NvmlState(gpus=(card.with_(mig_instances=(first, *card.mig_instances[1:]), used_bytes=12 * GIB),)))
    (view,) = overview.look().gpus
    assert [each.total_bytes for each in view.instances] == [mig.memory_total_bytes for mig in view.gpu.migs]
    for each in view.instances:
        assert sum(part.bytes for part in each.parts) == each.total_bytes
    assert view.instances[0].bytes_of(*LISTED) == 4 * GIB
    assert view.account is not None
    assert view.account.bytes_of(*LISTED) == 4 * GIB
    assert view.account.bytes_of(PartKind.UNATTRIBUTED) == 8 * GIB


def test_shared_memory_has_the_machines_figures(nvml: NvmlBox, overview: Overview) -> None:
    nvml.write(NvmlState(gpus=(gb10(processes=(Simulated(os.getpid(), 100 * MIB),)),)))
    made = account(overview)
    total = next(int(line.split()[1]) for line in Path("/proc/meminfo").read_text().splitlines() if "MemTotal" in line)
    assert made.total_bytes == total * 1024
    assert made.bytes_of(PartKind.PROCESS) == 100 * MIB
    assert made.bytes_of(PartKind.FREE) > 0


@pytest.mark.parametrize("content", [None, "", "MemTotal: x kB\n", "MemTotal: 12 kB\n", "MemAvailable: 12 kB\n"])
def test_a_machine_that_does_not_tell_its_memory_has_no_account_but_a_reason(
    tmp_path: Path, content: str | None
) -> None:
    if content is not None:
        (tmp_path / "meminfo").write_text(content)
    assert system_memory(ProcessTable(tmp_path)) is None
    chip = Gpu(0, "GPU-0", "NVIDIA GB10", unified_memory=True, unknown={"memory_total_bytes": "the CPU shares it"})
    (view,) = HolderTable(ProcessTable(tmp_path)).view(GpuSnapshot(time.time(), (chip,))).gpus
    assert view.account is not None
    assert (view.account.parts, view.account.reason) == ((), "the CPU shares it")


def test_under_windows_the_pids_mean_nothing_and_it_is_said_once(tmp_path: Path) -> None:
    """WSL: each Linux has a pid namespace of its own, and Windows' driver lists none or others' processes."""
    proc = fake_proc(tmp_path)
    (proc / "version").write_text("Linux version 6.6.87.2-microsoft-standard-WSL2 (root@x) #1 SMP\n")
    (proc / "self/ns").mkdir(parents=True)
    (proc / "self/ns/pid").symlink_to("pid:[4026532206]")
    view = HolderTable(ProcessTable(proc)).view(listing(GpuProcess(7, None), used=3 * GIB))
    assert view.notes == (f"Who holds the GPUs is not known: {WINDOWS}.",)
    assert view.gpus[0].holders[0].unknown["command"] == WINDOWS
    for processes in ((), None):  # an empty list, or none that could be read
        silent = HolderTable(ProcessTable(proc)).view(listing(used=3 * GIB, processes=processes)).gpus[0].account
        assert silent is not None
        assert unattributed(silent).reason == WINDOWS


def test_in_a_container_without_the_hosts_pids_an_empty_list_says_so(tmp_path: Path) -> None:
    (tmp_path / "self/ns").mkdir(parents=True)
    (tmp_path / "self/ns/pid").symlink_to("pid:[4026532999]")
    made = HolderTable(ProcessTable(tmp_path)).view(listing(used=3 * GIB)).gpus[0].account
    assert made is not None
    assert "--pid=host" in (unattributed(made).reason or "")


def opener(root: Path, pid: int, name: str, *nodes: str) -> None:
    (root / str(pid) / "fd").mkdir(parents=True)
    (root / str(pid) / "comm").write_text(f"{name}\n")
    for number, node in enumerate(nodes):
        (root / str(pid) / "fd" / str(number)).symlink_to(node)


def test_who_has_the_gpu_open_and_is_not_listed_is_named(tmp_path: Path) -> None:
    opener(tmp_path, 11, "python\x1b[2J", "/dev/nvidiactl", "/dev/nvidia0", "/dev/nvidia3")
    opener(tmp_path, 12, "nvidia-persiste", "/dev/nvidia0")
    opener(tmp_path, 13, "bash", "/dev/null", "/dev/nvidia-uvm")
    opener(tmp_path, 14, "listed", "/dev/nvidia0")
    opener(tmp_path, os.getpid(), "ours", "/dev/nvidia0")
    openers = Openers(tmp_path)
    assert [(one.pid, one.name) for one in openers.of(0, listed={14})] == [(11, "python")]
    assert [one.pid for one in openers.of(3, listed=())] == [11]
    assert openers.of(1, listed=()) == ()
    made = HolderTable(ProcessTable(tmp_path)).view(listing(used=20 * GIB)).gpus[0].account
    assert made is not None
    assert unattributed(made).reason == "11 (python), 14 (listed) have the GPU open and are not listed"
