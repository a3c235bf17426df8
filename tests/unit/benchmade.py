"""Benchmark runs made by hand: an H200, a second one beside it, a CPU."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gpuconsole.probes.benchrecords import BenchGpu, BenchMachine, BenchRecord, BenchRun, DeviceUse, Spread
from gpuconsole.probes.benchresults import BenchStatus
from gpuconsole.probes.records import Environment, RunEnd, SeenGpu

MM = {"dtype": "bf16", "m": 8192, "n": 8192, "k": 8192, "data": "randn", "flush": True}
NOW = 1_800_000_000.0


def record(bench: str = "bench.mm", score: float | None = 787.0, **fields: Any) -> BenchRecord:
    """A result of one H200; the bf16 matrix product if nothing else is said."""
    known: dict[str, Any] = {
        "code": {"bench.mm": "B01", "bench.mem": "B02", "bench.train": "B06"}.get(bench, "B99"),
        "params": MM if bench == "bench.mm" else {},
        "gpu": (0,),
        "unit": "TFLOP/s",
        "headline": True,
        "stat": {"median_ms": 1.4, "riqr": 0.006, "n": 120},
        "contended": False,
        "began": NOW + 1,
        "ended": NOW + 2,
    }
    return BenchRecord(bench, score=score, **(known | fields))


def gpu(position: int = 0, name: str | None = "NVIDIA H200", **fields: Any) -> BenchGpu:
    known: dict[str, Any] = {
        "uuid": f"GPU-{position}aaaaaaa-1111-2222-3333-444444444444",
        "multiprocessors": 132,
        "memory_total_bytes": 150 << 30,
        "power_limit_w": 700.0,
        "ecc": True,
        "mig": False,
        "pcie_generation": 5,
        "pcie_width": 16,
        "pcie_max_generation": 5,
        "pcie_max_width": 16,
    }
    return BenchGpu(position, name=name, **(known | fields))


def run(*records: BenchRecord, gpus: tuple[BenchGpu, ...] | None = None, **fields: Any) -> BenchRun:
    """A run on one H200."""
    gpus = (gpu(),) if gpus is None else gpus
    environment = Environment(
        where="container llama-ft",
        torch="2.9.0+cu128",
        torch_cuda="12.8",
        driver="580.159.04",
        python="3.12.3",
        cpus=64,
        gpus=tuple(SeenGpu(each.position, each.uuid, each.name) for each in gpus),
    )
    known: dict[str, Any] = {
        "run": "0000aaaa",
        "mode": "quick",
        "end": RunEnd.COMPLETE,
        "environment": environment,
        "machine": BenchMachine(cpu="EPYC 9654", driver="580.159.04", gpus=gpus),
        "benchmarks": records,
        "taken_at": NOW,
        "seconds": 52.0,
        "subject": "llama-ft",
        "subject_id": "c" * 64,
    }
    return BenchRun(**(known | fields))


def held(mhz: float, position: int = 0, **fields: Any) -> DeviceUse:
    return DeviceUse(position, samples=20, sm_mhz=Spread(mhz - 50, mhz, mhz + 50), **fields)


def with_torch(one: BenchRun, torch: str) -> BenchRun:
    return replace(one, environment=replace(one.environment, torch=torch))


SKIPPED: dict[str, Any] = {"status": BenchStatus.SKIPPED, "score": None, "unit": "", "stat": {}}
