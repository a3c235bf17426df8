"""B11 and B12 by gloo on two processes of this machine, and their formulas."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from gpuconsole.probes import archive
from gpuconsole.probes.payload.bench import allreduce, ddp, training
from gpuconsole.probes.payload.bench.context import BenchContext
from gpuconsole.probes.payload.bench.measurement import ERROR, OK, SKIPPED, TIMEOUT, WRONG
from gpuconsole.probes.payload.bench.ranks import RanksFailed, RanksLate

STAT = {"median_ms": 2.0, "p20": 2.0, "p80": 2.0, "min": 2.0, "max": 2.0, "n": 20, "riqr": 0.0}
GIB = 1 << 30


def context(place: Path, *, mode: str, budget_s: float) -> BenchContext:
    """A context without GPUs."""
    (place / "payload.pyz").write_bytes(archive.build().data)
    config = {"mode": mode, "archive": str(place / "payload.pyz"), "folder": str(place), "options": {"slice_s": 0.1}}
    made = BenchContext(config, lambda text: None, torch, device="cpu", gpus=0)
    made.begin(budget_s)
    return made


def figure(**fields: Any) -> dict[str, Any]:
    """What a rank tells of a collective."""
    told = {"rank": 0, "stat": STAT, "noisy": False, "began": 1.0, "ended": 2.0, "cold_s": 0.1, "backend": "nccl"}
    return told | {"peak_reserved_bytes": None} | fields


def test_two_processes_do_every_collective_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allreduce, "CPU_SIZES", (8, 1 << 16))
    found = list(allreduce.run(context(tmp_path, mode="full", budget_s=60.0)))
    assert [one.status for one in found] == [OK] * 8, [one.why for one in found]
    operations = [one.params["operation"] for one in found]
    assert operations == ["all_reduce"] * 4 + ["all_gather"] * 2 + ["reduce_scatter"] * 2
    (headline,) = (one for one in found if one.headline)
    assert headline.params == {"operation": "all_reduce", "dtype": "fp32", "bytes": 1 << 16, "ranks": 2}
    assert headline.values["backend"] == "gloo"
    assert headline.stat is not None
    speed = (1 << 16) / headline.stat["median_ms"] / 1e6
    assert headline.score == headline.values["busbw_gb_per_s"] == pytest.approx(speed, rel=1e-2)
    assert found[0].unit == "us"
    assert headline.unit == "GB/s"


@pytest.mark.parametrize(
    ("operation", "count", "factor"),
    [("all_reduce", 2, 1.0), ("all_reduce", 8, 1.75), ("all_gather", 8, 0.875), ("reduce_scatter", 4, 0.75)],
)
def test_bus_bandwidth_is_that_of_nccl_tests(operation: str, count: int, factor: float) -> None:
    assert allreduce.bus_factor(operation, count) == factor


def test_the_slowest_rank_counts() -> None:
    params = {"operation": "all_reduce", "dtype": "fp32", "bytes": GIB}
    slow = figure(rank=1, stat=dict(STAT, median_ms=4.0), nccl_version="2.21.5", ended=3.0, peak_reserved_bytes=GIB)
    told = allreduce.measurement_of(params, [figure(), slow], on_gpu=True, largest=GIB)
    assert told.score == told.values["algbw_gb_per_s"] == pytest.approx(GIB / 0.004 / 1e9, rel=1e-5)
    assert (told.values["slowest_rank"], told.values["slowest_over_fastest"]) == (1, 2.0)
    assert (told.values["nccl_version"], told.gpu, told.headline, told.ended) == ("2.21.5", [0, 1], True, 3.0)
    assert told.peak_reserved_bytes == GIB


def test_a_wrong_sum_has_no_speed() -> None:
    params = {"operation": "all_reduce", "dtype": "fp32", "bytes": 8}
    why = "3 of 4 elements are wrong on rank 1"
    parts = [{"rank": 0, "why": ""}, {"rank": 1, "why": why}]
    told = allreduce.measurement_of(params, parts, on_gpu=True, largest=8)
    assert (told.status, told.why, told.score, told.headline) == (WRONG, why, None, True)


class Alone:
    """One process that is two: what it sums is doubled, as if the other had told the same."""

    def __init__(self, spoilt: int) -> None:
        self.torch: Any = self
        self.rank, self.count, self.device = 0, 2, "cpu"
        self.distributed = self
        self._spoilt = spoilt

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)

    def synchronize(self) -> None:
        """Nothing to wait for."""

    def all_reduce(self, tensor: torch.Tensor) -> None:
        tensor.mul_(2).add_(1)  # the other rank has told one more
        tensor[: self._spoilt] += 1


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
@pytest.mark.parametrize("spoilt", [0, 1, 64])
def test_every_element_of_a_sum_is_looked_at(dtype: str, spoilt: int) -> None:
    world: Any = Alone(spoilt)
    fault = allreduce.Collective(world, {"operation": "all_reduce", "dtype": dtype, "bytes": 4096}).fault()
    assert fault == (
        f"{spoilt} of {4096 // (4 if dtype == 'fp32' else 2)} elements are wrong on rank 0" if spoilt else ""
    )


def test_a_collective_that_gloo_has_not_is_skipped() -> None:
    class Lacking:
        def fault(self) -> str:
            raise RuntimeError("ProcessGroupGloo does not support reduce_scatter\nmore")

    lacking: Any = Lacking()
    assert allreduce.fault_of(lacking) == ("", "ProcessGroupGloo does not support reduce_scatter")


def test_when_they_hang_the_first_that_was_due_and_the_headline_tell_it(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = allreduce.plan(list(allreduce.SIZES), full=True)
    assert len(wanted) == 8 + 6 + 6
    monkeypatch.delenv("NCCL_P2P_DISABLE", raising=False)
    late = RanksLate("rank 1 of 2 did not end within 17 s, at joining")
    told = list(allreduce.failures(wanted, late, on_gpu=True, count=2, largest=GIB))
    assert [(one.status, one.headline) for one in told] == [(TIMEOUT, False), (TIMEOUT, True)]
    assert all("NCCL_P2P_DISABLE=1" in one.why for one in told)
    full = RanksFailed("rank 1 of 2: OutOfMemoryError: CUDA out of memory")
    told = list(allreduce.failures(wanted[3:], full, on_gpu=True, count=2, largest=GIB))
    assert [(one.status, one.headline) for one in told] == [(SKIPPED, True)]


def test_training_on_one_and_on_two(tmp_path: Path) -> None:
    found = list(ddp.run(context(tmp_path, mode="full", budget_s=60.0)))
    hows = [(one.params["how"], one.params["ranks"], one.headline) for one in found]
    assert hows == [("plain", 1, False), ("ddp", 2, True), ("fsdp2", 2, False)]
    assert [one.status for one in found] == [OK] * 3, [one.why for one in found]
    plain, both, _ = found
    assert plain.score
    assert both.score
    assert "efficiency" not in plain.values
    assert both.values["efficiency"] == pytest.approx(both.score / 2 / plain.score, abs=1e-3)
    assert both.values["exposed_communication"] == pytest.approx(1 - both.values["efficiency"], abs=1e-3)
    assert both.values["loss_last"] < both.values["loss_first"]
    assert [path.name for path in tmp_path.iterdir()] == ["payload.pyz"]


@pytest.mark.parametrize(
    ("count", "numbers"), [(1, [1]), (2, [1, 2]), (3, [1, 2, 3]), (4, [1, 2, 4]), (6, [1, 2, 4, 6]), (8, [1, 2, 4, 8])]
)
def test_any_number_of_gpus_can_be_scaled_over(count: int, numbers: list[int]) -> None:
    assert [one["ranks"] for one in ddp.plan(count, full=False)] == numbers
    assert ddp.plan(count, full=True)[-1]["how"] == ("fsdp2" if count > 1 else "plain")


def test_weights_that_drift_apart_and_losses_that_do_not_fall_are_wrong() -> None:
    part = {"rank": 0, "stat": STAT, "noisy": False, "began": 1.0, "ended": 2.0, "cold_s": 0.1, "tokens": 128}
    part |= {"fault": "", "norm": 10.0, "loss_first": 6.0, "loss_last": 5.0, "peak_reserved_bytes": None}
    wanted = {"how": "ddp", "ranks": 2}
    done = {"plain": 100_000.0}

    def told(**other: Any) -> Any:
        parts = [part, dict(part, rank=1, **other)]
        return ddp.measurement_of(wanted, parts, dict(done), on_gpu=True, count=2)

    good = told()
    assert (good.score, good.values["efficiency"], good.gpu) == (128_000.0, 0.64, [0, 1])
    drifted = told(norm=10.5)
    assert (drifted.status, drifted.score, drifted.headline) == (WRONG, None, True)
    assert "the weights differ between ranks" in drifted.why
    assert [told(norm=norm).status for norm in (float("nan"), None)] == [WRONG, WRONG]
    assert told(fault=training.fault_of([6.0, float("nan")], 6.0)).status == WRONG
    told_of = list(ddp.failures(ddp.plan(4, full=True)[1:], RanksFailed("rank 3 of 4: no"), on_gpu=True, count=4))
    assert [(one.params["ranks"], one.status, one.headline) for one in told_of] == [(2, ERROR, False), (4, ERROR, True)]
