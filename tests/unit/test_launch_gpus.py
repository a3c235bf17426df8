"""Which GPUs a container gets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuconsole.core.errors import ExitCode, GpuNotFound
from gpuconsole.gpu.model import Gpu, GpuProcess, GpuSnapshot, GpuStatus, Mig, ProcessKind
from gpuconsole.launch.gpus import GpuChoice, choose_gpus, units_of
from gpuconsole.launch.spec import GpuWish
from gpuconsole.launch.wish import parse_gpus

GIB = 2**30
BUSY = (GpuProcess(pid=7, memory_bytes=60 * GIB),)
DESKTOP = (GpuProcess(pid=8, memory_bytes=GIB // 4, kind=ProcessKind.GRAPHICS),)


def uuid(index: int) -> str:
    return f"GPU-{index}a000000-0000-0000-0000-000000000000"


def gpu(
    index: int,
    *,
    used: int | None = 0,
    util: int | None = 0,
    processes: tuple[GpuProcess, ...] | None = (),
    status: GpuStatus = GpuStatus.OK,
    migs: tuple[Mig, ...] = (),
    mig_enabled: bool | None = None,
    compute_mode: str | None = "default",
    identity: str | None = "given",
) -> Gpu:
    return Gpu(
        index=index,
        uuid=uuid(index) if identity == "given" else identity,
        name="NVIDIA H200",
        status=status,
        problem="the driver lost it" if status is not GpuStatus.OK else None,
        memory_total_bytes=140 * GIB,
        memory_used_bytes=used,
        utilization_pct=util,
        processes=processes,
        migs=migs,
        mig_enabled=mig_enabled,
        compute_mode=compute_mode,
    )


def mig(number: int, *, used: int = 0, processes: tuple[GpuProcess, ...] = ()) -> Mig:
    return Mig(
        uuid=f"MIG-{number}b000000-0000-0000-0000-000000000000",
        name="1g.18gb",
        gpu_instance=number,
        compute_instance=0,
        memory_total_bytes=18 * GIB,
        memory_used_bytes=used,
        processes=processes,
    )


def box(*gpus: Gpu) -> GpuSnapshot:
    return GpuSnapshot(taken_at=0.0, gpus=gpus)


def chosen(wish: str, *gpus: Gpu) -> list[str]:
    return [unit.index for unit in choose_gpus(parse_gpus(wish), box(*gpus)).units]


def refused(wish: str, *gpus: Gpu) -> GpuNotFound:
    with pytest.raises(GpuNotFound) as caught:
        choose_gpus(parse_gpus(wish), box(*gpus))
    assert caught.value.exit_code is ExitCode.NO_GPU
    assert caught.value.hint
    return caught.value


def test_the_freest_is_taken_by_memory_then_by_utilisation() -> None:
    assert chosen("auto", gpu(0, used=500), gpu(1, used=100), gpu(2, used=300)) == ["1"]
    assert chosen("1", gpu(0, used=100, util=90), gpu(1, used=100, util=10)) == ["1"]
    assert chosen("1", gpu(0), gpu(1)) == ["0"]


def test_one_without_compute_process_comes_before_one_with_less_memory_used() -> None:
    light = (GpuProcess(pid=1, memory_bytes=100),)
    assert chosen("auto", gpu(0, used=100, processes=light), gpu(1, used=200)) == ["1"]


def test_a_desktop_does_not_make_a_gpu_busy() -> None:
    assert chosen("auto", gpu(0, used=GIB // 4, processes=DESKTOP), gpu(1, used=50 * GIB, processes=BUSY)) == ["0"]


def test_memory_that_no_process_explains_makes_a_gpu_busy() -> None:
    held_unseen = gpu(0, used=40 * GIB, processes=())
    assert chosen("auto", held_unseen, gpu(1, used=100, processes=None)) == ["1"]


def test_what_is_unknown_comes_after_what_is_known_to_be_free() -> None:
    assert chosen("auto", gpu(0, used=None), gpu(1, used=5)) == ["1"]
    assert chosen("auto", gpu(0, util=None), gpu(1, util=50)) == ["1"]
    assert chosen("auto", gpu(0, processes=None), gpu(1)) == ["1"]
    assert chosen("auto", gpu(0, status=GpuStatus.ERROR, used=None), gpu(1, processes=BUSY)) == ["1"]
    assert chosen("auto", gpu(0, compute_mode="prohibited"), gpu(1, processes=BUSY)) == ["1"]


def test_a_count_takes_the_freest_in_the_order_of_their_indices() -> None:
    three = (gpu(0, used=9), gpu(1, processes=BUSY, used=60 * GIB), gpu(2, used=1))
    choice = choose_gpus(parse_gpus("2"), box(*three))
    assert [unit.index for unit in choice.units] == ["0", "2"]
    assert choice.uuids == (uuid(0), uuid(2))
    assert "GPU 0 (NVIDIA H200)" in choice.reason
    assert "Next freest is GPU 1" in choice.reason
    assert "held by 1 process" in choice.reason
    assert not choice.every


def test_a_busy_choice_is_noted() -> None:
    choice = choose_gpus(parse_gpus("device=0"), box(gpu(0, used=60 * GIB, processes=BUSY), gpu(1)))
    assert choice.notes == ("GPU 0 (NVIDIA H200) is busy: held by 1 process, 60.0 of 140.0 GiB used.",)
    assert choose_gpus(parse_gpus("device=1"), box(gpu(0), gpu(1))).notes == ()


def test_devices_by_index_uuid_and_the_start_of_a_uuid() -> None:
    pair = (gpu(0), gpu(1))
    assert chosen("device=1,0", *pair) == ["1", "0"]
    assert chosen(f"device={uuid(1)}", *pair) == ["1"]
    assert chosen(f"device={uuid(1).lower()}", *pair) == ["1"]
    assert chosen("device=GPU-1a", *pair) == ["1"]
    assert chosen("device=1,GPU-1a", *pair) == ["1"]
    assert chosen("device=01", *pair) == ["1"]


def test_the_start_of_two_uuids_is_refused() -> None:
    error = refused("device=GPU-3fe1", gpu(0, identity="GPU-3fe1aaaa"), gpu(1, identity="GPU-3fe1bbbb"))
    assert "GPU-3fe1aaaa, GPU-3fe1bbbb" in error.message


def test_an_absent_device_is_refused_with_what_exists() -> None:
    error = refused("device=0,5,GPU-ffff", gpu(0), gpu(1))
    assert "5, GPU-ffff" in error.message
    assert f"0 ({uuid(0)}), 1 ({uuid(1)})" in error.message


def test_more_gpus_than_exist_are_refused() -> None:
    error = refused("3", gpu(0), gpu(1))
    assert "3 GPUs were asked for" in error.message
    assert "2 to give" in error.message


def test_a_lost_gpu_is_never_given() -> None:
    pair = (gpu(0, status=GpuStatus.LOST), gpu(1, processes=BUSY, used=60 * GIB))
    assert chosen("auto", *pair) == ["1"]
    assert chosen("all", *pair) == ["1"]
    assert not choose_gpus(parse_gpus("all"), box(*pair)).every
    assert "is lost" in refused("device=0", *pair).message
    assert f"{uuid(0)}" not in refused("2", *pair).message
    assert "Lost: GPU 0" in refused("2", *pair).message


def test_a_gpu_without_uuid_is_never_given() -> None:
    assert chosen("all", gpu(0, identity=None), gpu(1)) == ["1"]
    assert "does not tell its UUID" in refused("device=0", gpu(0, identity=None), gpu(1)).message


def test_in_mig_mode_the_instances_are_given() -> None:
    sliced = gpu(0, mig_enabled=True, migs=(mig(1, processes=BUSY, used=17 * GIB), mig(2)), util=None)
    assert chosen("auto", sliced) == ["0:1"]
    assert chosen("all", sliced, gpu(1)) == ["0:0", "0:1", "1"]
    assert chosen("device=0:1", sliced) == ["0:1"]
    assert chosen("device=0", sliced) == ["0:0", "0:1"]
    assert chosen("device=MIG-2b", sliced) == ["0:1"]
    assert chosen(f"device={uuid(0)}", sliced) == ["0:0", "0:1"]
    assert choose_gpus(parse_gpus("device=0:1"), box(sliced)).uuids == (mig(2).uuid,)


def test_mig_mode_without_instances_is_refused() -> None:
    assert "MIG mode" in refused("auto", gpu(0, mig_enabled=True)).message
    assert "MIG mode" in refused("device=0", gpu(0, mig_enabled=True), gpu(1)).message


def test_a_machine_without_gpus_says_why() -> None:
    nothing = GpuSnapshot(taken_at=0.0, problem="The driver is not loaded.", hint="Load it.")
    with pytest.raises(GpuNotFound) as caught:
        choose_gpus(parse_gpus("all"), nothing)
    assert "The driver is not loaded." in caught.value.message
    assert caught.value.hint == "Load it."
    assert "none" in refused("1").message


def test_none_asks_nothing_of_the_machine() -> None:
    assert choose_gpus(parse_gpus("none"), box()) == GpuChoice()


MACHINES = st.lists(
    st.builds(
        lambda used, util, busy, status: (used, util, busy, status),
        st.one_of(st.none(), st.integers(0, 140 * GIB)),
        st.one_of(st.none(), st.integers(0, 100)),
        st.sampled_from([(), BUSY, DESKTOP, None]),
        st.sampled_from(list(GpuStatus)),
    ),
    max_size=8,
)


@given(MACHINES, st.integers(1, 8))
def test_a_count_gives_so_many_different_living_gpus_or_refuses(
    machine: list[tuple[int | None, int | None, tuple[GpuProcess, ...] | None, GpuStatus]], count: int
) -> None:
    gpus = [
        gpu(index, used=used, util=util, processes=processes, status=status)
        for index, (used, util, processes, status) in enumerate(machine)
    ]
    living = {one.uuid for one in gpus if one.status is not GpuStatus.LOST}
    wish: GpuWish = parse_gpus(str(count))
    if count > len(units_of(box(*gpus))):
        refused(str(count), *gpus)
        return
    choice = choose_gpus(wish, box(*gpus))
    assert len(set(choice.uuids)) == count
    assert set(choice.uuids) <= living
    free = [one for one in gpus if one.uuid in living and one.status is GpuStatus.OK and one.processes == ()]
    free = [one for one in free if one.memory_used_bytes is not None and one.memory_used_bytes < GIB]
    taken_free = [one for one in free if one.uuid in choice.uuids]
    assert len(taken_free) == min(count, len(free)) or any(one.processes == DESKTOP for one in gpus)
