"""What a GPU is doing at one moment, as one word."""

from __future__ import annotations

from enum import StrEnum

from gpuconsole.gpu.model import Gpu, GpuStatus, ProcessKind

PACKED_SHARE = 0.95
"""From this share of its memory on a GPU counts as packed."""
HELD_SHARE = 0.05
HELD_BYTES = 2**30
"""Memory in use beyond both of these means that somebody holds the GPU, even when no process is listed."""
STIR_PCT = 5
"""A desktop keeps a GPU busy to less than this."""


class GpuState(StrEnum):
    """One word for a GPU, from the best to the worst for whoever needs one."""

    FREE = "free"
    """Nobody computes on it and nearly all of its memory is free."""
    ASLEEP = "asleep"
    """It has powered itself down."""
    IDLE = "idle"
    """Somebody holds it, and it does nothing."""
    HELD = "held"
    """Somebody holds it; the driver does not tell how busy it is (MIG)."""
    BUSY = "busy"
    """It computes."""
    UNKNOWN = "unknown"
    """It answers, but tells neither use nor holders."""
    PACKED = "packed"
    """Its memory is nearly full."""
    FAILED = "failed"
    """It is lost or cannot be read."""

    @property
    def rank(self) -> int:
        """Higher is worse."""
        return list(GpuState).index(self)


def state_of(gpu: Gpu) -> GpuState:
    """The word for ``gpu``; it says what is, not what will be."""
    if gpu.status is not GpuStatus.OK:
        return GpuState.FAILED
    if gpu.asleep:
        return GpuState.ASLEEP
    if _fullest_share(gpu) >= PACKED_SHARE:
        return GpuState.PACKED
    held = _held(gpu)
    if gpu.utilization_pct is None:
        if held:
            return GpuState.HELD
        return GpuState.FREE if gpu.processes is not None else GpuState.UNKNOWN
    if gpu.utilization_pct >= STIR_PCT or (held and gpu.utilization_pct > 0):
        return GpuState.BUSY
    return GpuState.IDLE if held else GpuState.FREE


def _fullest_share(gpu: Gpu) -> float:
    """Used share of the memory, of the fullest instance where the GPU is divided; 0 when unknown."""
    pools = [(gpu.memory_used_bytes, gpu.memory_total_bytes)]
    pools += [(mig.memory_used_bytes, mig.memory_total_bytes) for mig in gpu.migs]
    return max((used / total for used, total in pools if used is not None and total), default=0.0)


def _held(gpu: Gpu) -> bool:
    listed = [*(gpu.processes or ()), *(process for mig in gpu.migs for process in mig.processes)]
    if any(process.kind is not ProcessKind.GRAPHICS for process in listed):
        return True
    used, total = gpu.memory_used_bytes, gpu.memory_total_bytes
    return used is not None and total is not None and used > max(HELD_BYTES, total * HELD_SHARE)
