"""The data of the benchmarks: nothing that a cache holds, nothing that is all alike, no more memory than is due."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuconsole.probes.payload import environment
from gpuconsole.probes.payload.bench import data, mem, mm, placement
from gpuconsole.probes.payload.bench.measurement import Skip
from tests.payload.bench.pretended import GIB, pretended

torch = pytest.importorskip("torch")
MIB = 1 << 20
L2 = {"GTX 1080": 2, "A100": 40, "H200": 50, "RTX 4090": 72, "RTX 5090": 96, "B200": 126}
"""MiB of the second cache; a copy within one looks four times as quick as memory is."""


@pytest.mark.parametrize("card", L2)
def test_what_measures_memory_is_sixteen_times_beyond_the_cache(card: str) -> None:
    cache = L2[card] * MIB
    each = data.buffer_bytes(cache, on_gpu=True, allowed=200 * GIB, buffers=3)
    assert each >= 16 * cache
    assert each >= GIB


@given(st.integers(1, 1 << 31), st.integers(0, 1 << 40), st.integers(1, 4))
def test_buffers_are_beyond_the_cache_and_within_what_is_allowed_or_not_there(
    cache: int, allowed: int, buffers: int
) -> None:
    try:
        each = data.buffer_bytes(cache, on_gpu=True, allowed=allowed, buffers=buffers)
    except Skip:
        return
    assert each * buffers <= allowed
    assert each >= 16 * cache


def test_on_a_cpu_two_buffers_are_beyond_the_cache() -> None:
    for cache in (8 * MIB, 64 * MIB, 200 * MIB):
        assert 2 * data.buffer_bytes(cache, on_gpu=False, allowed=GIB, buffers=3) > cache


def test_at_most_two_fifths_of_what_is_free_are_taken_and_at_least_a_gib_and_a_half(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pretended(monkeypatch, free=10 * GIB):
        assert data.allowance(torch, "cuda:0") == 4 * GIB
        data.need(torch, "cuda:0", 4 * GIB)
        with pytest.raises(Skip, match="it takes 5 GiB, and 4 GiB may be taken"):
            data.need(torch, "cuda:0", 5 * GIB)
    with pretended(monkeypatch, free=3 * GIB), pytest.raises(Skip, match="memory: 3 GiB are free"):
        data.allowance(torch, "cuda:0")


def test_the_cache_is_emptied_with_twice_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    assert data.flusher(torch, "cpu") is None
    with pretended(monkeypatch):
        monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: SimpleNamespace(L2_cache_size=40 * MIB))
        flush = data.flusher(torch, "cuda:0")
        assert flush is not None
        wiped = flush()
        assert isinstance(wiped, torch.Tensor)
        assert wiped.numel() * wiped.element_size() == 80 * MIB
        monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: SimpleNamespace())
        assert data.cache_bytes(torch, "cuda:0") == 128 * MIB  # where torch does not tell: the largest there is


def test_numbers_are_random_and_the_same_each_time() -> None:
    """Zeros are quicker than anything real: a card that multiplies them takes less power, and clocks higher."""
    one = mm.Product(torch, "fp32", (64, 64, 64), device="cpu")
    other = mm.Product(torch, "fp32", (64, 64, 64), device="cpu")
    assert torch.equal(one.a, other.a)
    for matrix in (one.a, one.b):
        assert matrix.unique().numel() > 0.99 * matrix.numel()
    buffers = mem.Buffers(torch, 64 * MIB, device="cpu")
    buffers.prepare("triad")
    assert not torch.equal(buffers.a, buffers.b)
    for buffer in (buffers.a, buffers.b):
        assert 0.9 < float(buffer.std()) < 1.1
        assert float(buffer.abs().max()) > 3
        assert torch.equal(buffer[: 1 << 20], buffer[1 << 20 : 2 << 20])
    zeros = mm.Product(torch, "fp32", (64, 64, 64), device="cpu", zeros=True)
    assert float(zeros.a.abs().max()) == float(zeros.b.abs().max()) == 0.0


def test_a_processors_largest_cache_is_read(tmp_path: Path) -> None:
    for index, size in enumerate(("48K", "2048K", "32M", "what")):
        (tmp_path / f"index{index}").mkdir()
        (tmp_path / f"index{index}" / "size").write_text(size + "\n")
    assert data.host_cache_bytes(str(tmp_path)) == 32 * MIB
    assert data.host_cache_bytes(str(tmp_path / "nowhere")) == 32 * MIB  # an assumption


def test_a_limit_of_the_container_counts_more_than_what_the_host_has(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        "/proc/meminfo": "MemTotal: 99 kB\nMemAvailable:   10485760 kB\n",
        "/sys/fs/cgroup/memory.current": str(GIB),
        "/sys/fs/cgroup/memory.max": str(3 * GIB),
    }
    monkeypatch.setattr(environment, "read", files.get)
    assert data.host_free_bytes() == 2 * GIB
    files["/sys/fs/cgroup/memory.max"] = "max"
    assert data.host_free_bytes() == 10 * GIB


def test_the_node_a_gpu_hangs_on_is_told_with_how_near_the_processors_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "0000:3b:00.0").mkdir()
    (tmp_path / "0000:3b:00.0" / "numa_node").write_text("1\n")
    (tmp_path / "node1").mkdir()
    (tmp_path / "node1" / "cpulist").write_text("4-7,12\n")
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 4, 12})

    def told(**known: int) -> dict[str, object]:
        monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: SimpleNamespace(**known))
        return placement.placement(torch, "cuda:0", devices=str(tmp_path), nodes=str(tmp_path))

    assert told(pci_bus_id=0x3B) == {"numa_node": 1, "cpus_on_node_share": 0.5}
    assert told(pci_bus_id=0x3C) == {}
    assert told() == {}  # an older torch
    (tmp_path / "0000:3b:00.0" / "numa_node").write_text("-1\n")
    assert told(pci_bus_id=0x3B) == {}
