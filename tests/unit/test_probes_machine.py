"""What the checks of limits, memory, processors and clock make of their readings."""

from __future__ import annotations

from typing import Any

import pytest

from gpuconsole.probes.payload.checks import clock, cpu, host_memory, limits

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


@pytest.mark.parametrize(
    ("changes", "problem", "gpus", "status", "why"),
    [
        ({}, "", 1, "ok", "locked memory unlimited, stack unlimited, open files unlimited, 256 MiB pinned"),
        ({"pinned_bytes": None}, "", 0, "ok", "open files unlimited"),
        ({}, "CUDA error: out of memory", 1, "fail", "cannot be pinned: CUDA error"),
        ({"memlock_bytes": 64 * KIB}, "", 0, "ok", "locked memory 64 KiB"),
        ({"memlock_bytes": 64 * KIB}, "", 1, "ok", "locked memory 64 KiB"),
        ({"memlock_bytes": 8 * MIB}, "", 2, "warn", "only 8 MiB may be locked in memory, little for several GPUs"),
        ({"memlock_bytes": 8 * MIB, "infiniband": True}, "", 0, "warn", "little for InfiniBand"),
        ({"memlock_bytes": 64 * GIB}, "", 8, "ok", "64 GiB"),
        ({"stack_bytes": MIB}, "", 0, "warn", "the stack is limited to 1 MiB"),
        ({"stack_bytes": 8 * MIB}, "", 0, "ok", "stack 8 MiB"),
        ({"open_files": 1023}, "", 0, "warn", "only 1023 files"),
        ({"open_files": 1024}, "", 0, "ok", "open files 1024"),
    ],
)
def test_limits(changes: dict[str, Any], problem: str, gpus: int, status: str, why: str) -> None:
    value = {
        "memlock_bytes": None, "stack_bytes": None, "open_files": None, "pinned_bytes": 256 * MIB, "infiniband": False
    } | changes  # fmt: skip
    found = limits.judge(value, problem=problem, gpus=gpus)
    assert found.status == status
    assert why in found.why
    assert ("ulimit" in found.fix) is (status != "ok")


@pytest.mark.parametrize(
    ("changes", "status", "why"),
    [
        ({}, "ok", "128 GiB of memory, 100 GiB free, no swap"),
        ({"swap_total_bytes": GIB}, "ok", "128 GiB of memory, 100 GiB free"),
        ({"limit_bytes": 64 * GIB}, "ok", "64 GiB of memory allowed"),
        ({"limit_bytes": 256 * GIB}, "ok", "128 GiB of memory, "),
        ({"oom_kills": 1}, "warn", "1 process was killed for lack of memory"),
        ({"oom_kills": 3}, "warn", "3 processes were killed"),
        ({"oom_kills": None}, "ok", "128 GiB"),
        ({"available_bytes": GIB}, "warn", "only 1 GiB of memory are left"),
        ({"available_bytes": None}, "ok", "128 GiB of memory, no swap"),
        ({"gpu_bytes": 140 * GIB}, "warn", "less than the 140 GiB of one GPU"),
        ({"gpu_bytes": 80 * GIB, "limit_bytes": 64 * GIB}, "warn", "64 GiB of memory are allowed, less than"),
        ({"gpu_bytes": 80 * GIB}, "ok", "128 GiB"),
        ({"total_bytes": None}, "skip", "cannot be told"),
    ],
)
def test_memory_of_the_host(changes: dict[str, Any], status: str, why: str) -> None:
    value = {
        "total_bytes": 128 * GIB, "limit_bytes": None, "available_bytes": 100 * GIB, "swap_total_bytes": 0,
        "swap_free_bytes": 0, "oom_kills": 0, "gpu_bytes": None,
    } | changes  # fmt: skip
    found = host_memory.judge(value)
    assert found.status == status
    assert why in found.why
    assert bool(found.fix) is (status == "warn")


def test_what_the_kernel_s_files_say_of_memory() -> None:
    text = "MemTotal:       32000000 kB\nMemAvailable:   16000000 kB\nSwapTotal:   8 kB\n"
    assert host_memory.of_meminfo(text, "SwapTotal") == 8 * KIB
    assert host_memory.of_meminfo(text, "SwapFree") is None
    assert host_memory.available(text, None, None) == 16000000 * KIB
    assert host_memory.available(text, 4 * GIB, GIB) == 3 * GIB
    assert host_memory.available(text, 4 * GIB, 5 * GIB) == 0
    assert host_memory.available("", 4 * GIB, GIB) == 3 * GIB
    assert host_memory.available("", None, None) is None
    assert host_memory.oom_kills("low 0\noom 3\noom_kill 2\noom_group_kill 0\n") == 2
    assert host_memory.oom_kills("oom_kill_disable 0\nunder_oom 0\noom_kill 5\n") == 5
    assert host_memory.oom_kills("") is None


@pytest.mark.parametrize(
    ("cpus", "quota", "gpus", "far", "status", "why"),
    [
        (8, None, 2, [], "ok", "8 processors for 2 GPUs"),
        (7, None, 2, [], "warn", "7 processors for 2 GPUs, less than 4 each"),
        (64, 3.5, 1, [], "warn", "time of 3.5 processors for 1 GPU"),
        (64, 4.0, 1, [], "ok", "time of 4 processors for 1 GPU"),
        (1, None, 0, [], "ok", "1 processor"),
        (8, 0.5, 0, [], "warn", "the time of 0.5 processors only"),
        (8, None, 1, [1], "warn", "NUMA node 1"),
        (None, None, 1, [], "skip", "cannot be told"),
    ],
)
def test_processors(cpus: int | None, quota: float | None, gpus: int, far: list[int], status: str, why: str) -> None:
    found = cpu.judge({"cpus": cpus, "cpu_quota": quota, "gpus": gpus, "numa_nodes": [], "far": far})
    assert found.status == status
    assert why in found.why
    assert bool(found.fix) is (status == "warn")


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("0-3,8\n", {0, 1, 2, 3, 8}), ("5", {5}), ("", set()), ("x", set()), ("1-x", set()), ("3-1", set())],
)
def test_lists_of_processors(text: str, numbers: set[int]) -> None:
    assert cpu.cpu_list(text) == numbers


@pytest.mark.parametrize(
    ("changes", "status", "why"),
    [
        ({}, "ok", "the clock is synchronised"),
        ({"synchronised": None}, "ok", "may not be asked"),
        ({"synchronised": False}, "warn", "not synchronised"),
        ({"year": 1970}, "warn", "the year 1970"),
        ({"zone": "Mars/Base", "zone_known": False}, "warn", "'Mars/Base' is not known"),
    ],
)
def test_the_clock(changes: dict[str, Any], status: str, why: str) -> None:
    found = clock.judge({"synchronised": True, "year": 2026, "zone": None, "zone_known": True} | changes)
    assert found.status == status
    assert why in found.why


def test_asking_the_kernel_for_its_clock_changes_nothing_and_answers() -> None:
    assert clock.synchronised() in (True, False, None)
    for zone in ("", "UTC", "CET-1CEST", ":UTC", "<+03>-3"):
        assert clock.zone_known(zone)
    assert not clock.zone_known("Mars/Base")
    assert not clock.zone_known("/no/such/file")
