"""The account of a GPU's memory: it adds up whatever the driver says, and each part has its owner or its reason."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuconsole.gpu.model import Gpu, GpuProcess, Mig, ProcessKind
from gpuconsole.host.account import LISTED, Account, MemoryOf, Part, PartKind, by_container, by_user
from gpuconsole.host.accounting import (
    DEFUNCT,
    UNATTRIBUTED_FROM,
    SystemMemory,
    account_in,
    account_of,
    account_of_instance,
    distinct,
)
from gpuconsole.host.model import Holder
from gpuconsole.host.processes import BLIND, ENDED, ENDED_OR_HIDDEN, FIELDS, REUSED
from gpuconsole.services.replayfile import load

GIB = 2**30
MIB = 2**20
A, B = "a1" * 32, "b2" * 32


def gpu(**changes: Any) -> Gpu:
    figures: dict[str, Any] = {"memory_total_bytes": 100 * GIB, "memory_used_bytes": 40 * GIB,
                               "memory_reserved_bytes": GIB, "memory_free_bytes": 59 * GIB}  # fmt: skip
    return Gpu(0, "GPU-0", "NVIDIA H200", **figures | changes)


def holder(pid: int, memory_bytes: int | None, **changes: Any) -> Holder:
    known: dict[str, Any] = {"user": "ada", "uid": 1000, "started_at": 1.0, "state": "alive"}
    return Holder(pid=pid, gpu_index=0, gpu_uuid="GPU-0", memory_bytes=memory_bytes, **known | changes)


def unseen(pid: int, memory_bytes: int | None, reason: str) -> Holder:
    return Holder(pid=pid, gpu_index=0, gpu_uuid="GPU-0", memory_bytes=memory_bytes,
                  unknown=dict.fromkeys(FIELDS, reason))  # fmt: skip


def account(card: Gpu, *holders: Holder, system: SystemMemory | None = None) -> Account:
    return account_of(card, holders, why=lambda count: f"{count} bytes of nobody", system=system)


def told(made: Account) -> list[tuple[PartKind, int]]:
    return [(part.kind, part.bytes) for part in made.parts]


def test_every_byte_has_its_place() -> None:
    made = account(gpu(), holder(7, 10 * GIB), holder(8, 25 * GIB))
    assert told(made) == [
        (PartKind.PROCESS, 25 * GIB), (PartKind.PROCESS, 10 * GIB), (PartKind.UNATTRIBUTED, 5 * GIB),
        (PartKind.RESERVE, GIB), (PartKind.FREE, 59 * GIB),
    ]  # fmt: skip
    assert made.parts[2].reason == f"{5 * GIB} bytes of nobody"
    assert made.notes == ()
    assert made.of is MemoryOf.GPU


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        (ENDED, PartKind.ENDED), (REUSED, PartKind.ENDED), (ENDED_OR_HIDDEN, PartKind.HIDDEN), (BLIND, PartKind.HIDDEN),
        ("this user may not look at it", PartKind.HIDDEN),
    ],
)  # fmt: skip
def test_a_process_that_is_not_shown_here_keeps_its_bytes_and_says_why(reason: str, kind: PartKind) -> None:
    made = account(gpu(), unseen(7, 40 * GIB, reason))
    assert made.parts[0] == Part(kind, 40 * GIB, (7,), None, reason)
    (share,) = by_user(made, [unseen(7, 40 * GIB, reason)])
    assert (share.name, share.bytes, share.visible) == (None, 40 * GIB, False)


def test_a_process_that_has_ended_unnoticed_still_holds_and_is_called_so() -> None:
    (part, *_) = account(gpu(), holder(7, 40 * GIB, state="defunct")).parts
    assert (part.kind, part.reason) == (PartKind.PROCESS, DEFUNCT)


def test_processes_without_a_share_hold_the_rest_together() -> None:
    """WSL, and drivers that do not tell: the sum is right, and nobody is said to hold nothing."""
    made = account(gpu(), holder(7, 10 * GIB), holder(8, None), holder(9, None))
    part = made.parts[1]
    assert (part.kind, part.bytes, part.pids) == (PartKind.UNDIVIDED, 30 * GIB, (8, 9))
    assert "2 processes" in (part.reason or "")
    (share,) = by_user(made, [holder(7, 10 * GIB), holder(8, None), holder(9, None)])
    assert (share.bytes, share.pids, share.complete) == (10 * GIB, (7, 8, 9), False)


def test_processes_that_claim_more_than_is_in_use_are_cut_and_it_is_said() -> None:
    made = account(gpu(), holder(7, 30 * GIB), holder(8, 15 * GIB))
    assert told(made)[:2] == [(PartKind.PROCESS, 25 * GIB), (PartKind.PROCESS, 15 * GIB)]
    assert "5 GiB more" in made.notes[0]


def test_figures_of_a_driver_that_contradict_each_other_still_add_up() -> None:
    made = account(gpu(memory_free_bytes=90 * GIB))
    assert made.bytes_of(PartKind.FREE) == 59 * GIB
    assert "31 GiB more than the total" in made.notes[0]
    less = account(gpu(memory_free_bytes=9 * GIB))
    assert less.bytes_of(PartKind.UNTOLD) == 50 * GIB


def test_what_is_in_use_is_found_from_what_is_free_where_the_driver_tells_only_that() -> None:
    made = account(gpu(memory_used_bytes=None), holder(7, 30 * GIB))
    assert made.bytes_of(PartKind.UNATTRIBUTED) == 10 * GIB


def test_without_a_total_there_is_no_account_but_a_reason() -> None:
    made = account(gpu(memory_total_bytes=None, unknown={"memory_total_bytes": "the GPU is lost"}))
    assert (made.total_bytes, made.parts, made.reason) == (None, (), "the GPU is lost")


def test_a_process_in_a_gpus_list_and_in_that_of_its_instance_counts_once() -> None:
    mig = Mig("MIG-1", "3g.20gb", 1, 0, 20 * GIB, 9 * GIB, memory_free_bytes=10 * GIB, memory_reserved_bytes=GIB)
    twice = [holder(7, 5 * GIB), holder(7, 5 * GIB, mig_uuid="MIG-1"), holder(8, GIB)]
    made = account(gpu(migs=(mig,), mig_enabled=True), *twice)
    assert [part.pids for part in made.parts if part.kind is PartKind.PROCESS] == [(7,), (8,)]
    unexplained = [part for part in made.parts if part.kind is PartKind.UNATTRIBUTED]
    assert [(part.bytes, part.mig_uuid) for part in unexplained] == [(4 * GIB, "MIG-1"), (30 * GIB, None)]
    inside = account_of_instance(mig, twice, why=str)
    assert told(inside) == [
        (PartKind.PROCESS, 5 * GIB), (PartKind.UNATTRIBUTED, 4 * GIB), (PartKind.RESERVE, GIB),
        (PartKind.FREE, 10 * GIB),
    ]  # fmt: skip


def test_an_instance_whose_processes_cannot_be_listed_says_so_in_the_gpus_account() -> None:
    mig = Mig("MIG-1", "3g.20gb", 1, 0, 20 * GIB, 9 * GIB, processes=None, unknown={"processes": "no permission"})
    (part, *_) = account(gpu(migs=(mig,), memory_used_bytes=9 * GIB)).parts
    assert (part.mig_uuid, part.bytes) == ("MIG-1", 9 * GIB)
    assert "no permission" in (part.reason or "")


def test_a_shared_memory_is_the_machines_and_says_so() -> None:
    """GB10, Jetson: no figures of the driver; those of the kernel, with the GPU's processes out of them."""
    chip = Gpu(0, "GPU-0", "NVIDIA GB10", unified_memory=True, processes=())
    system = SystemMemory(128 * GIB, 50 * GIB)
    made = account(chip, holder(7, 60 * GIB), holder(8, None), system=system)
    assert made.of is MemoryOf.SYSTEM
    assert told(made) == [
        (PartKind.PROCESS, 60 * GIB), (PartKind.UNDIVIDED, 0), (PartKind.SYSTEM, 18 * GIB), (PartKind.FREE, 50 * GIB),
    ]  # fmt: skip
    assert "share the machine's memory" in made.notes[0]
    assert account(chip).total_bytes is None


def test_shares_by_container_and_user_take_all_processes_of_each() -> None:
    """A container's sum: its main process, children, and what was started in it later."""
    holders = [
        holder(7, 10 * GIB, container_id=A, container_name="llama"),
        holder(8, 5 * GIB, container_id=A, container_name="llama"),
        holder(9, 4 * GIB, container_id=B, user="mei", uid=1001),
        holder(10, GIB, user=None, uid=54321),
        unseen(11, GIB, ENDED_OR_HIDDEN),
    ]
    made = account(gpu(), *holders)
    shares = by_container(made, holders)
    assert [(one.name, one.bytes, one.pids, one.visible) for one in shares] == [
        ("llama", 15 * GIB, (7, 8), True), (B[:12], 4 * GIB, (9,), True), (None, GIB, (10,), True),
        (None, GIB, (11,), False),
    ]  # fmt: skip
    users = by_user(made, holders)
    assert [(one.name, one.uid, one.bytes) for one in users] == [
        ("ada", 1000, 15 * GIB), ("mei", 1001, 4 * GIB), ("54321", 54321, GIB), (None, None, GIB),
    ]  # fmt: skip


RECORDINGS = Path(__file__).parents[1] / "fixtures"


@pytest.mark.parametrize("name", ["console-h200.jsonl.gz", "two-tenants-h200.jsonl.gz"])
def test_the_memory_of_a_real_gpu_is_accounted_for_to_the_byte(name: str) -> None:
    """A recorded H200 with two containers at work: total, used, free and reserve of the driver fit each other exactly,
    and what its processes do not explain is its own."""
    views = [event.body for event in load(RECORDINGS / name).events if event.kind == "host"]
    assert len(views) > 10
    for view in (each for seen in views for each in seen.gpus):
        made = account_in(view)
        check(made, view.holders)
        assert made.bytes_of(PartKind.FREE) == view.gpu.memory_free_bytes
        assert made.bytes_of(PartKind.RESERVE) == view.gpu.memory_reserved_bytes
        assert made.bytes_of(PartKind.UNTOLD) == 0
    busiest = max((account_in(each) for seen in views for each in seen.gpus), key=lambda made: made.bytes_of(*LISTED))
    assert busiest.bytes_of(PartKind.UNATTRIBUTED) < UNATTRIBUTED_FROM
    assert busiest.notes == ()


amounts = st.none() | st.integers(0, 8) | st.integers(0, 2**40)
reasons = st.sampled_from([ENDED, REUSED, ENDED_OR_HIDDEN, BLIND])
uuids = st.sampled_from([None, "MIG-0", "MIG-1", "MIG-2"])
containers = st.sampled_from([None, A, B])
holders_seen = st.builds(
    Holder, pid=st.integers(1, 6), gpu_index=st.just(0), gpu_uuid=st.just("GPU-0"), memory_bytes=amounts,
    kind=st.sampled_from(list(ProcessKind)), mig_uuid=uuids, uid=st.none() | st.integers(0, 2), started_at=st.just(1.0),
    container_id=containers, state=st.sampled_from(["alive", "defunct", "stuck"]),
)  # fmt: skip
holders_unseen = st.builds(unseen, st.integers(1, 6), amounts, reasons)
migs = st.builds(
    Mig, uuids, st.just("1g.5gb"), st.integers(0, 2), st.just(0), amounts, amounts,
    processes=st.none() | st.just(()), memory_free_bytes=amounts, memory_reserved_bytes=amounts,
)  # fmt: skip
gpus = st.builds(
    Gpu, st.just(0), st.just("GPU-0"), st.just(None), memory_total_bytes=amounts, memory_used_bytes=amounts,
    memory_free_bytes=amounts, memory_reserved_bytes=amounts, unified_memory=st.booleans(),
    migs=st.lists(migs, max_size=3).map(tuple), processes=st.none() | st.just((GpuProcess(1, 1),)),
)  # fmt: skip
systems = st.none() | st.builds(SystemMemory, st.integers(0, 2**40), st.integers(0, 2**40))


@given(gpus, st.lists(holders_seen | holders_unseen, max_size=6), systems)
def test_whatever_the_driver_says_the_parts_are_the_total_and_no_byte_is_there_twice(
    card: Gpu, holders: list[Holder], system: SystemMemory | None
) -> None:
    made = account(card, *holders, system=system)
    for each in (made, *(account_of_instance(mig, holders, why=str) for mig in card.migs)):
        check(each, holders)
    if made.parts:
        listed = [(pid, part.mig_uuid) for part in made.parts if part.kind in LISTED for pid in part.pids]
        assert len(listed) == len(set(listed))
        everybody = {pid for part in made.parts for pid in part.pids}
        assert everybody == {one.pid for one in holders}


def check(made: Account, holders: Sequence[Holder]) -> None:
    assert all(part.bytes >= 0 for part in made.parts)
    assert sum(part.bytes for part in made.parts) == (made.total_bytes or 0)
    assert bool(made.reason) == (made.total_bytes is None)
    for part in made.parts:
        assert part.reason or part.kind in (PartKind.PROCESS, PartKind.RESERVE, PartKind.FREE), part
    for shares in (by_container(made, holders), by_user(made, holders)):
        assert sum(share.bytes for share in shares) == made.bytes_of(*LISTED)


@given(st.lists(holders_seen, max_size=8))
def test_distinct_holders_keep_everybody_and_nobody_twice(holders: list[Holder]) -> None:
    kept = distinct(holders)
    assert {one.pid for one in kept} == {one.pid for one in holders}
    keys = [(one.pid, one.mig_uuid) for one in kept]
    assert len(keys) == len(set(keys))
    assert distinct(kept) == kept
    for one in kept:
        twins = [each.memory_bytes or 0 for each in holders if (each.pid, each.mig_uuid) == (one.pid, one.mig_uuid)]
        assert (one.memory_bytes or 0) == max(twins)
