"""The processes of a GPU and of its MIG instances, from NVML's three lists. Run on the simulated driver."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuconsole.gpu.model import Gpu, GpuProcess, GpuSnapshot, ProcessKind
from gpuconsole.gpu.nvml.processes import PID_LIMIT, Entry, merge, sift
from gpuconsole.gpu.nvml.source import NvmlSource
from gpuconsole.launch.gpus import choose_gpus
from gpuconsole.launch.units import units_of, withheld_of
from gpuconsole.launch.wish import parse_gpus
from tests.rig.nvml import GIB, MIB, NvmlBox, NvmlState, a100_mig, h200, rtx4090
from tests.rig.nvml import GpuProcess as Simulated
from tests.rig.nvml.fixtures import load

COMPUTE, GRAPHICS, MPS = ProcessKind.COMPUTE, ProcessKind.GRAPHICS, ProcessKind.MPS


def the_gpu(nvml: NvmlBox, *processes: Simulated, **changes: object) -> Gpu:
    nvml.write(NvmlState(gpus=(h200(processes=processes).with_(**changes),)))
    source = NvmlSource()
    (gpu,) = source.snapshot().gpus
    source.close()
    return gpu


def test_processes_with_their_memory_the_largest_first(nvml: NvmlBox) -> None:
    gpu = the_gpu(nvml, Simulated(100, 2 * GIB), Simulated(200, 5 * GIB), Simulated(300, GIB, kind="G"))
    assert gpu.processes == (
        GpuProcess(200, 5 * GIB, COMPUTE),
        GpuProcess(100, 2 * GIB, COMPUTE),
        GpuProcess(300, GIB, GRAPHICS),
    )
    assert gpu.unattributed_bytes == 0


def test_a_process_in_several_lists_counts_once(nvml: NvmlBox) -> None:
    gpu = the_gpu(nvml, Simulated(100, 2 * GIB, kind="CG"), Simulated(200, GIB, kind="MC"))
    assert gpu.processes == (GpuProcess(100, 2 * GIB, COMPUTE), GpuProcess(200, GIB, MPS))
    assert gpu.unattributed_bytes == 0


def test_an_unknown_share_is_not_sixteen_exbibytes(nvml: NvmlBox) -> None:
    """The driver gives all ones for the memory of a process: it is unknown, and no sum is made with it."""
    gpu = the_gpu(nvml, Simulated(100, None), Simulated(200, GIB), used_bytes=3 * GIB)
    assert gpu.processes is not None
    assert {process.pid: process.memory_bytes for process in gpu.processes} == {100: None, 200: GIB}
    assert gpu.unattributed_bytes is None


def test_memory_that_no_process_explains_is_unattributed(nvml: NvmlBox) -> None:
    """20 GB are used, the processes hold 3: a zombie, a stuck process or another namespace has the rest."""
    gpu = the_gpu(nvml, Simulated(100, 3 * GIB), used_bytes=20 * GIB)
    assert gpu.unattributed_bytes == 17 * GIB


def test_nonsense_pids_are_left_out_with_a_note(nvml: NvmlBox) -> None:
    """A driver of another generation fills its list differently: pids that cannot be are dropped, and it is said."""
    gpu = the_gpu(nvml, Simulated(100, GIB), Simulated(PID_LIMIT + 1, GIB), Simulated(0, 7), Simulated(4294967295, 1))
    assert gpu.processes == (GpuProcess(100, GIB, COMPUTE),)
    assert gpu.notes == ("3 listed processes with an impossible pid left out: driver and its library do not fit.",)


def test_a_process_that_seems_to_hold_more_than_there_is(nvml: NvmlBox) -> None:
    gpu = the_gpu(nvml, Simulated(100, 999 * GIB), used_bytes=GIB)
    assert gpu.processes == (GpuProcess(100, None, COMPUTE),)
    assert "share is unknown" in gpu.notes[0]


@pytest.mark.parametrize("oldest", ["_v2", ""])
def test_an_old_driver_with_older_lists(nvml: NvmlBox, monkeypatch: pytest.MonkeyPatch, oldest: str) -> None:
    newer = ["_v3"] if oldest == "_v2" else ["_v3", "_v2"]
    kinds = ("Compute", "Graphics", "MPSCompute")
    load(monkeypatch, omit=[f"nvmlDeviceGet{kind}RunningProcesses{version}" for kind in kinds for version in newer])
    gpu = the_gpu(nvml, Simulated(100, GIB))
    if oldest == "_v2":
        assert gpu.processes == (GpuProcess(100, GIB, COMPUTE),)
    else:  # nvidia-ml-py has no way to ask for the first form of the list
        assert gpu.processes is None
        assert gpu.unknown["processes"] == "this driver is too old for it"


def test_a_list_of_another_kind_that_fails_is_noted(nvml: NvmlBox) -> None:
    gpu = the_gpu(nvml, Simulated(100, GIB), errors={"nvmlDeviceGetGraphicsRunningProcesses_v3": 999})
    assert gpu.processes == (GpuProcess(100, GIB, COMPUTE),)
    assert gpu.notes == ("The list of graphics processes could not be read: the driver failed without saying why.",)


def test_instances_have_memory_and_processes_of_their_own(nvml: NvmlBox) -> None:
    """MIG is on: no utilization of the whole (never 0 %), each instance with its memory, nothing counted twice."""
    card = a100_mig()
    first = card.mig_instances[0].__class__(
        uuid="MIG-x", profile="3g.20gb", gpu_instance=2, total_bytes=20 * GIB, used_bytes=9 * GIB,
        processes=(Simulated(100, 4 * GIB), Simulated(101, GIB)),
    )  # fmt: skip
    card = card.with_(mig_instances=(first, *card.mig_instances[1:]), used_bytes=12 * GIB)
    nvml.write(NvmlState(gpus=(card, rtx4090(1))))
    source = NvmlSource()
    gpu, other = source.snapshot().gpus
    source.close()
    assert gpu.mig_enabled is True
    assert gpu.utilization_pct is None
    assert "MIG" in gpu.unknown["utilization_pct"]
    assert gpu.migs[0].name == "NVIDIA A100-SXM4-40GB MIG 3g.20gb"
    assert [(mig.gpu_instance, mig.compute_instance) for mig in gpu.migs] == [(2, 0), (3, 0), (9, 0), (10, 0)]
    mig = gpu.migs[0]
    assert (mig.memory_total_bytes, mig.memory_used_bytes, mig.unattributed_bytes) == (20 * GIB, 9 * GIB, 4 * GIB)
    assert [(process.pid, process.mig_uuid) for process in mig.processes or ()] == [(100, "MIG-x"), (101, "MIG-x")]
    assert gpu.processes == ()
    assert gpu.unattributed_bytes == 7 * GIB
    assert other.mig_enabled is False
    assert other.migs == ()


def divided(nvml: NvmlBox, errors: dict[str, int], *, parent: tuple[Simulated, ...] = ()) -> Gpu:
    """An A100 in four instances, the first of which fails in some calls."""
    card = a100_mig()
    broken = replace(card.mig_instances[0], uuid="MIG-x", errors=errors)
    nvml.write(NvmlState(gpus=(card.with_(mig_instances=(broken, *card.mig_instances[1:]), processes=parent),)))
    source = NvmlSource()
    (gpu,) = source.snapshot().gpus
    source.close()
    return gpu


def test_an_instance_that_does_not_answer_hides_no_other(nvml: NvmlBox) -> None:
    gpu = divided(nvml, {"nvmlDeviceGetMemoryInfo_v2": 999, "nvmlDeviceGetComputeRunningProcesses_v3": 4})
    mig = gpu.migs[0]
    assert mig.memory_used_bytes is None
    assert mig.unknown["memory_used_bytes"] == "the driver failed without saying why"
    assert mig.unknown["processes"] == "this user may not read it"
    assert mig.unattributed_bytes is None
    assert gpu.unattributed_bytes is None
    assert len(gpu.migs) == 4


@pytest.mark.parametrize("code", [4, 999, 15])
def test_a_list_of_an_instance_that_cannot_be_read_is_unknown_and_not_empty(nvml: NvmlBox, code: int) -> None:
    """Nobody may take it for free: its processes are None with the reason, and it ranks after one known to be free."""
    gpu = divided(nvml, {"nvmlDeviceGetComputeRunningProcesses_v3": code})
    assert gpu.migs[0].processes is None
    assert gpu.migs[0].unknown["processes"]
    assert [mig.processes for mig in gpu.migs[1:]] == [()] * 3
    choice = choose_gpus(parse_gpus("3"), GpuSnapshot(0.0, (gpu,)))
    assert [unit.index for unit in choice.units] == ["0:1", "0:2", "0:3"]


@pytest.mark.parametrize("code", [4, 999])
def test_an_instance_that_gives_no_uuid_has_none(nvml: NvmlBox, code: int) -> None:
    gpu = divided(nvml, {"nvmlDeviceGetUUID": code})
    assert [mig.uuid is None for mig in gpu.migs] == [True, False, False, False]
    assert gpu.migs[0].unknown["uuid"]
    assert gpu.migs[0].memory_total_bytes is not None
    snapshot = GpuSnapshot(0.0, (gpu,))
    assert [unit.index for unit in units_of(snapshot)] == ["0:1", "0:2", "0:3"]
    (withheld,) = withheld_of(snapshot)
    assert gpu.migs[0].unknown["uuid"] in withheld.message


def test_an_instance_without_a_handle_is_shown_and_keeps_the_places_of_the_others(nvml: NvmlBox) -> None:
    card = a100_mig()
    nvml.write(NvmlState(gpus=(card.with_(errors={"nvmlDeviceGetMigDeviceHandleByIndex": 4}),)))
    source = NvmlSource()
    (gpu,) = source.snapshot().gpus
    source.close()
    assert gpu.migs
    assert all((mig.uuid, mig.processes) == (None, None) for mig in gpu.migs)
    assert {mig.unknown["uuid"] for mig in gpu.migs} == {"this user may not read it"}
    assert units_of(GpuSnapshot(0.0, (gpu,))) == ()


def test_a_process_outside_of_mig_is_not_of_the_instance_whose_number_is_unknown(nvml: NvmlBox) -> None:
    errors = {"nvmlDeviceGetGpuInstanceId": 999, "nvmlDeviceGetComputeInstanceId": 999}
    gpu = divided(nvml, errors, parent=(Simulated(77, GIB),))
    assert gpu.migs[0].gpu_instance is None
    assert gpu.processes == (GpuProcess(77, GIB, COMPUTE),)


entries = st.lists(
    st.builds(
        Entry,
        pid=st.integers(0, 6) | st.integers(PID_LIMIT - 1, PID_LIMIT + 2),
        memory_bytes=st.none() | st.integers(0, 2**64 - 2),
        kind=st.sampled_from(list(ProcessKind)),
        gpu_instance=st.none() | st.integers(0, 2),
        compute_instance=st.none() | st.integers(0, 1),
    )
)


@given(entries)
def test_merged_lists_hold_each_process_once_with_its_largest_known_share(listed: list[Entry]) -> None:
    def key(entry: Entry) -> tuple[int, int | None, int | None]:
        return entry.pid, entry.gpu_instance, entry.compute_instance

    merged = merge(listed)
    assert sorted(map(repr, {key(entry) for entry in listed})) == sorted(repr(key(entry)) for entry in merged)
    for entry in merged:
        shares = [other.memory_bytes for other in listed if key(other) == key(entry) and other.memory_bytes is not None]
        assert entry.memory_bytes == (max(shares) if shares else None)


@given(entries, st.none() | st.integers(1, 200 * GIB))
def test_no_process_that_is_kept_is_impossible(listed: list[Entry], total_bytes: int | None) -> None:
    kept, notes = sift(listed, total_bytes=total_bytes)
    assert all(0 < entry.pid <= PID_LIMIT for entry in kept)
    if total_bytes is not None:
        assert all(entry.memory_bytes is None or entry.memory_bytes <= total_bytes for entry in kept)
    assert bool(notes) == (len(kept) < len(listed) or any(a != b for a, b in zip(kept, listed, strict=True)))


def test_small_shares_are_kept_as_they_are(nvml: NvmlBox) -> None:
    assert the_gpu(nvml, Simulated(100, 3 * MIB)).processes == (GpuProcess(100, 3 * MIB, COMPUTE),)
