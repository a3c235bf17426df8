"""The one word for a GPU's memory, from a single look."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpuconsole.gpu.model import Gpu, GpuStatus
from gpuconsole.gpu.state import MemoryState
from gpuconsole.host.model import GpuView, Holder
from gpuconsole.host.state import memory_state

GIB = 2**30
AT_REST = Gpu(0, "GPU-0", "NVIDIA H200", memory_total_bytes=140 * GIB, memory_used_bytes=0, utilization_pct=0)
HOLDER = Holder(pid=1, gpu_index=0, gpu_uuid="GPU-0", memory_bytes=50 * GIB)


@pytest.mark.parametrize(
    ("changes", "held", "state"),
    [
        ({}, False, MemoryState.FREE),
        ({"memory_used_bytes": 50 * GIB}, True, MemoryState.IDLE),
        ({"memory_used_bytes": 50 * GIB, "utilization_pct": 90}, True, MemoryState.STEADY),
        ({"memory_used_bytes": 139 * GIB, "utilization_pct": 90}, True, MemoryState.PACKED),
        ({"memory_used_bytes": 17 * GIB}, False, MemoryState.IDLE),
        ({"memory_used_bytes": None, "utilization_pct": None}, True, MemoryState.UNKNOWN),
        ({"memory_used_bytes": None, "unified_memory": True}, False, MemoryState.FREE),
        ({"memory_used_bytes": None, "processes": None}, False, MemoryState.UNKNOWN),
        ({"memory_used_bytes": GIB // 4, "processes": None, "utilization_pct": 95}, False, MemoryState.STEADY),
        ({"memory_used_bytes": GIB // 4, "processes": None, "utilization_pct": None}, False, MemoryState.FREE),
        ({"memory_used_bytes": GIB // 4, "utilization_pct": 40}, False, MemoryState.FREE),  # of who has just ended
        ({"status": GpuStatus.LOST}, False, MemoryState.FAILED),
        ({"status": GpuStatus.ERROR}, True, MemoryState.FAILED),
    ],
)
def test_state(changes: dict[str, object], held: bool, state: MemoryState) -> None:
    gpu = replace(AT_REST, **changes)  # type: ignore[arg-type]
    assert memory_state(GpuView(gpu, (HOLDER,) if held else ())) is state


def test_every_word_has_its_severity_and_failure_is_the_worst() -> None:
    assert max(MemoryState, key=lambda state: state.severity) is MemoryState.FAILED
    assert min(MemoryState, key=lambda state: state.severity) is MemoryState.FREE
