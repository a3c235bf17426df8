"""B10 on GPUs that are pretended: each pair is compared and measured, and the slowest of them tells."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from gpuconsole.probes.payload.bench import p2p
from gpuconsole.probes.payload.bench.context import BenchContext
from gpuconsole.probes.payload.bench.measurement import ERROR, OK, SKIPPED, WRONG, Measurement, Skip
from tests.payload.bench.pretended import GIB, pretended


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Buffers of 64 KiB; every pair is reached directly but the last."""
    monkeypatch.setattr(p2p, "BYTES", 1 << 16)
    monkeypatch.setattr(p2p, "_LATENCY_N", 10)
    monkeypatch.setattr(torch.cuda, "can_device_access_peer", lambda one, other: 2 not in (one, other))


def context(gpus: int) -> BenchContext:
    """So many GPUs, and a second for all."""
    made = BenchContext({}, lambda text: None, torch, device="cuda:0", gpus=gpus)
    made.begin(1.0)
    return made


def test_every_ordered_pair_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    with pretended(monkeypatch, count=3):
        found: list[Any] = list(p2p.run(context(3)))
    pairs = [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]
    assert [(one.params["from"], one.params["to"]) for one in found[:-1]] == pairs
    assert [one.gpu for one in found[:-1]] == [list(pair) for pair in pairs]
    assert [one.values["direct"] for one in found[:-1]] == [True, False, True, False, False, False]
    for one in found[:-1]:
        assert one.status == OK
        assert one.score > 0
        assert one.values["latency_us"] > 0
        assert one.values["both_gb_per_s"] > 0
    both = {tuple(one.gpu): one.values["both_gb_per_s"] for one in found[:-1]}
    assert both[0, 1] == both[1, 0]
    headline = found[-1]
    assert headline.headline
    assert headline.score == min(one.score for one in found[:-1])
    assert (headline.values["pairs"], headline.values["pairs_direct"], headline.gpu) == (6, 2, [0, 1, 2])


def test_the_slowest_pair_is_named() -> None:
    def pair(source: int, target: int, score: float | None) -> Measurement:
        return Measurement({"from": source, "to": target, "bytes": 1}, score=score, values={"direct": True})

    told = p2p.worst_of([pair(0, 1, 400.0), pair(1, 0, 50.0), pair(0, 2, None)], [0, 1, 2])
    assert (told.score, told.values["worst_from"], told.values["worst_to"]) == (50.0, 1, 0)
    assert (told.values["best_over_worst"], told.values["pairs"]) == (8.0, 3)


def test_what_arrives_changed_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = p2p.sums

    def sums(buffer: Any) -> tuple[int, int]:
        buffer[3] = 0  # as if a link lost it, on either side of the copy
        return whole(buffer)

    with pretended(monkeypatch, count=2):
        torch.manual_seed(0)
        monkeypatch.setattr(torch.Tensor, "copy_", lambda self, other, non_blocking=False: self)
        found = list(p2p.run(context(2)))
    assert [one.status for one in found] == [WRONG, WRONG]
    assert all(one.score is None for one in found)


def test_a_pair_that_fails_does_not_keep_the_others_from_running(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = p2p.pair

    def pair(torch: Any, source: Any, target: Any, params: Any, slice_s: float) -> Measurement:
        if params["from"] == 1:
            raise RuntimeError("CUDA error: peer access is not supported\nmore")
        return whole(torch, source, target, params, slice_s)

    monkeypatch.setattr(p2p, "pair", pair)
    with pretended(monkeypatch, count=2):
        good, bad, headline = p2p.run(context(2))
    assert (good.status, bad.status, headline.score) == (OK, ERROR, good.score)
    assert bad.why == "RuntimeError: CUDA error: peer access is not supported"


def test_one_gpu_or_too_little_memory_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    (alone,) = p2p.run(context(1))
    assert alone.status == SKIPPED
    with pretended(monkeypatch, count=2, free=GIB), pytest.raises(Skip, match="memory"):
        list(p2p.run(context(2)))
