"""The one word for a GPU."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpuconsole.gpu.model import Gpu, GpuProcess, GpuStatus, Mig, ProcessKind
from gpuconsole.gpu.state import GpuState, state_of

GIB = 2**30
AT_REST = Gpu(
    index=0,
    uuid="GPU-0",
    name="NVIDIA H200",
    memory_total_bytes=140 * GIB,
    memory_used_bytes=0,
    utilization_pct=0,
)
TRAINING = GpuProcess(1, 50 * GIB)
DESKTOP = GpuProcess(2, GIB // 2, ProcessKind.GRAPHICS)
INSTANCE = Mig("MIG-0", "1g", 1, 0, 10 * GIB, 0)


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({}, GpuState.FREE),
        ({"processes": (TRAINING,), "memory_used_bytes": 50 * GIB}, GpuState.IDLE),
        ({"processes": (TRAINING,), "memory_used_bytes": 50 * GIB, "utilization_pct": 1}, GpuState.BUSY),
        ({"processes": (TRAINING,), "memory_used_bytes": 133 * GIB, "utilization_pct": 90}, GpuState.PACKED),
        ({"memory_used_bytes": 17 * GIB}, GpuState.IDLE),
        ({"processes": (DESKTOP,), "memory_used_bytes": GIB // 2, "utilization_pct": 2}, GpuState.FREE),
        ({"processes": (DESKTOP,), "memory_used_bytes": GIB // 2, "utilization_pct": 60}, GpuState.BUSY),
        ({"utilization_pct": None, "processes": (TRAINING,)}, GpuState.HELD),
        ({"utilization_pct": None}, GpuState.FREE),
        ({"utilization_pct": None, "processes": None, "memory_used_bytes": None}, GpuState.UNKNOWN),
        ({"utilization_pct": None, "migs": (replace(INSTANCE, processes=(TRAINING,)),)}, GpuState.HELD),
        ({"utilization_pct": None, "migs": (replace(INSTANCE, memory_used_bytes=10 * GIB),)}, GpuState.PACKED),
        ({"asleep": True, "utilization_pct": None}, GpuState.ASLEEP),
        ({"status": GpuStatus.LOST}, GpuState.FAILED),
        ({"status": GpuStatus.ERROR, "asleep": True}, GpuState.FAILED),
    ],
)
def test_state(changes: dict[str, object], state: GpuState) -> None:
    assert state_of(replace(AT_REST, **changes)) is state  # type: ignore[arg-type]


def test_a_failed_gpu_is_worse_than_all_and_a_free_one_better() -> None:
    ranked = sorted(GpuState, key=lambda state: state.rank)
    assert ranked[0] is GpuState.FREE
    assert ranked[-1] is GpuState.FAILED
