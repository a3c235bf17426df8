"""Which GPUs a container gets."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuconsole.core.errors import ExitCode, GpuNotFound
from gpuconsole.engine.model import Container, ContainerState, GpuClaim, GpuRequestKind
from gpuconsole.engine.request import CreateRequest
from gpuconsole.gpu.model import Gpu, GpuProcess, GpuSnapshot, GpuStatus, Mig, ProcessKind
from gpuconsole.launch.claims import Claimant, Claims, claims_of
from gpuconsole.launch.gpus import GpuChoice, choose_gpus
from gpuconsole.launch.labels import USER
from gpuconsole.launch.preflight import Facts
from gpuconsole.launch.preflight_gpu import busy
from gpuconsole.launch.spec import GpuWish, LaunchSpec
from gpuconsole.launch.units import units_of, withheld_of
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


def mig(
    number: int,
    *,
    used: int = 0,
    processes: tuple[GpuProcess, ...] | None = (),
    named: bool = True,
    unknown: dict[str, str] | None = None,
) -> Mig:
    return Mig(
        uuid=f"MIG-{number}b000000-0000-0000-0000-000000000000" if named else None,
        name="1g.18gb",
        gpu_instance=number,
        compute_instance=0,
        memory_total_bytes=18 * GIB,
        memory_used_bytes=used,
        processes=processes,
        unknown=unknown or {},
    )


def box(*gpus: Gpu) -> GpuSnapshot:
    return GpuSnapshot(taken_at=0.0, gpus=gpus)


def given_to(*names: str) -> tuple[Claimant, ...]:
    return tuple(Claimant(name) for name in names)


def chosen(wish: str, *gpus: Gpu, claims: Claims | None = None) -> list[str]:
    return [unit.index for unit in choose_gpus(parse_gpus(wish), box(*gpus), claims).units]


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


def busy_words(choice: GpuChoice) -> list[str]:
    facts = Facts(LaunchSpec("image"), CreateRequest("image"), choice=choice)
    return [finding.sentence for finding in busy(facts)]


def test_a_busy_choice_is_noted() -> None:
    choice = choose_gpus(parse_gpus("device=0"), box(gpu(0, used=60 * GIB, processes=BUSY), gpu(1)))
    assert busy_words(choice) == ["GPU 0 (NVIDIA H200) is busy: held by 1 process, 60.0 of 140.0 GiB used."]
    assert busy_words(choose_gpus(parse_gpus("device=1"), box(gpu(0), gpu(1)))) == []


@pytest.mark.parametrize("wish", ["auto", "1", "2", "all", "device=0"])
def test_what_holds_a_gpu_is_said_once(wish: str) -> None:
    choice = choose_gpus(parse_gpus(wish), box(*(gpu(index, used=60 * GIB, processes=BUSY) for index in (0, 1))))
    said = " ".join((choice.reason, *choice.notes, *busy_words(choice)))
    assert "GPU 0 (NVIDIA H200) is busy" in said
    assert said.count("GPU 0 (NVIDIA H200): held by") + said.count("GPU 0 (NVIDIA H200) is busy: held by") == 1


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


def test_instances_that_cannot_be_listed_are_not_called_absent() -> None:
    unlisted = replace(gpu(0, mig_enabled=True), unknown={"migs": "this user may not read it"})
    error = refused("device=0", unlisted, gpu(1))
    assert "cannot be listed: this user may not read it" in error.message
    assert "no instances" not in error.message


def test_a_gpu_of_which_it_is_unknown_whether_it_is_divided_comes_after_one_that_is_free() -> None:
    unclear = replace(gpu(0, mig_enabled=None), unknown={"mig_enabled": "the driver failed without saying why"})
    assert chosen("auto", unclear, gpu(1, used=GIB // 2)) == ["1"]


REFUSED = {"processes": "this user may not read it"}


def test_an_instance_whose_processes_cannot_be_listed_is_not_free() -> None:
    unclear, busy = mig(1, processes=None, unknown=REFUSED), mig(3, processes=BUSY, used=17 * GIB)
    sliced = gpu(0, mig_enabled=True, migs=(unclear, mig(2, used=100), busy), util=None)
    assert chosen("auto", sliced) == ["0:1"]
    assert chosen("2", sliced) == ["0:0", "0:1"]
    state = units_of(box(sliced))[0].state
    assert state == "its processes cannot be listed (this user may not read it), 0.0 of 18.0 GiB used"


def test_a_process_that_only_the_whole_gpu_lists_makes_its_instance_busy() -> None:
    seen = (GpuProcess(9, 100, mig_uuid=mig(1).uuid),)
    unread = mig(1, processes=None, unknown=REFUSED), mig(2, processes=None, used=200, unknown=REFUSED)
    sliced = gpu(0, mig_enabled=True, processes=seen, util=None, migs=unread)
    assert [unit.compute_processes for unit in units_of(box(sliced))] == [seen, None]
    assert chosen("auto", sliced) == ["0:1"]


def test_an_instance_without_uuid_is_withheld_with_its_reason_and_the_others_keep_their_places() -> None:
    nameless = mig(1, named=False, unknown={"uuid": "this user may not read it"})
    sliced = gpu(0, mig_enabled=True, migs=(nameless, mig(2)), util=None)
    assert chosen("auto", sliced) == ["0:1"]
    assert all(unit.uuid for unit in units_of(box(sliced)))
    for wish in ("device=0:0", "device=0", f"device={uuid(0)}"):
        message = refused(wish, sliced, gpu(1)).message
        assert message.startswith("GPU 0:0 (1g.18gb) does not tell its UUID (this user may not read it)"), wish
    everything = choose_gpus(parse_gpus("all"), box(sliced, gpu(1)))
    assert [unit.index for unit in everything.units] == ["0:1", "1"]
    assert not everything.every, "the engine's own word for all would give the nameless one too"
    assert any("GPU 0:0" in note for note in everything.notes)
    assert "Not to be given: GPU 0:0 (1g.18gb)." in refused("3", sliced, gpu(1)).message


@pytest.mark.parametrize(
    ("withheld", "reason"),
    [
        (gpu(0, status=GpuStatus.LOST), "lost"),
        (gpu(0, identity=None), "no UUID"),
        (gpu(0, mig_enabled=True), "no instances"),
        (gpu(0, mig_enabled=True, migs=(mig(1, named=False),)), "no UUID"),
    ],
)
def test_what_is_withheld_is_never_chosen_nor_counted_and_is_said(withheld: Gpu, reason: str) -> None:
    assert [one.reason for one in withheld_of(box(withheld, gpu(1)))] == [reason]
    choice = choose_gpus(parse_gpus("all"), box(withheld, gpu(1)))
    assert [unit.index for unit in choice.units] == ["1"]
    assert not choice.every
    assert choice.notes[0].startswith("Left out: GPU 0")
    refused("2", withheld, gpu(1))
    refused("auto", withheld)
    refused("device=0", withheld, gpu(1))


# Claims of running containers


def test_a_gpu_that_an_idle_container_was_given_comes_after_one_that_nobody_has() -> None:
    held = {uuid(0): given_to("notebook")}
    assert chosen("auto", gpu(0), gpu(1, used=GIB // 2, util=40), claims=held) == ["1"]
    assert chosen("1", gpu(0), gpu(1, processes=None), claims=held) == ["1"]
    assert chosen("auto", gpu(0), gpu(1, processes=BUSY, used=60 * GIB), claims=held) == ["0"]


def test_who_holds_what_is_chosen_is_said() -> None:
    held = {uuid(0): (Claimant("notebook", "anna"),), uuid(1): given_to("a", "b")}
    choice = choose_gpus(parse_gpus("auto"), box(gpu(0, used=900), gpu(1)), held)
    assert choice.uuids == (uuid(0),)
    assert "given to container notebook of anna. Next freest is GPU 1" in choice.reason
    assert "given to containers a, b" in choice.reason
    assert choice.notes == ("GPU 0 (NVIDIA H200) was given to container notebook of anna already, which runs.",)
    named = choose_gpus(parse_gpus("device=1"), box(gpu(0), gpu(1)), held)
    assert named.notes == ("GPU 1 (NVIDIA H200) was given to containers a, b already, which run.",)
    taken = choose_gpus(parse_gpus("device=0"), box(gpu(0, processes=BUSY, used=60 * GIB)), held)
    assert taken.notes == ()
    assert busy_words(taken) == [
        "GPU 0 (NVIDIA H200) is busy: held by 1 process, 60.0 of 140.0 GiB used, given to container notebook of anna."
    ]


def test_among_claimed_gpus_fewer_claims_then_less_memory() -> None:
    held = {uuid(0): given_to("a", "b"), uuid(1): given_to("a"), uuid(2): given_to("a")}
    assert chosen("auto", gpu(0), gpu(1, used=500), gpu(2, used=100), claims=held) == ["2"]


def test_a_claim_on_an_instance_leaves_its_neighbours_free_and_one_on_the_gpu_does_not() -> None:
    sliced = gpu(0, mig_enabled=True, migs=(mig(1), mig(2, used=100)), util=None)
    assert chosen("auto", sliced, claims={mig(1).uuid or "": given_to("a")}) == ["0:1"]
    whole = choose_gpus(parse_gpus("auto"), box(sliced), {uuid(0): given_to("a")})
    assert [unit.claimants for unit in whole.units] == [given_to("a")]


def container(
    name: str, *claims: GpuClaim, state: ContainerState = ContainerState.RUNNING, user: str = ""
) -> Container:
    return Container(id=name * 64, name=name, image="i", image_id="i", state=state, gpu_claims=claims,
                     labels={USER: user} if user else {})  # fmt: skip


def on(*devices: str) -> GpuClaim:
    return GpuClaim(GpuRequestKind.CDI, devices=devices)


def test_claims_are_those_of_containers_that_have_their_gpus_now() -> None:
    machine = (gpu(0), gpu(1), gpu(2, mig_enabled=True, migs=(mig(1), mig(2))))
    everything = GpuClaim(GpuRequestKind.DEVICE_REQUEST, everything=True)
    found = claims_of(
        [
            container("a", on("0"), user="anna"),
            container("b", everything, state=ContainerState.PAUSED),
            container("c", on(uuid(1)), state=ContainerState.RESTARTING),
            container("d", on("0"), state=ContainerState.EXITED),
            container("e", on("0"), state=ContainerState.CREATED),
            container("f"),
            container("g", on("2:1"), on("GPU-of-another-machine"), on("7")),
        ],
        machine,
    )
    assert {key: [str(one) for one in names] for key, names in found.items()} == {
        uuid(0): ["a of anna", "b"],
        uuid(1): ["b", "c"],
        uuid(2): ["b"],
        mig(2).uuid: ["g"],
        "GPU-of-another-machine": ["g"],
    }


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
