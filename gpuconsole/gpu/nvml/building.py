"""From readings to the model of a GPU: one that answers, one that sleeps, one that failed."""

from __future__ import annotations

import time

from gpuconsole.core.records import dataclass
from gpuconsole.gpu.model import Ecc, Gpu, GpuStatus, PcieLink
from gpuconsole.gpu.nvml import codes
from gpuconsole.gpu.nvml.gateway import Failure
from gpuconsole.gpu.nvml.sheet import Sheet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

IDENTITY = ("name", "minor", "pci_bus_id", "compute_capability")
"""Fields that say who a GPU is; they never change."""

_SELDOM = (
    "memory_total_bytes", "power_limit_w", "max_sm_clock_mhz", "max_memory_clock_mhz", "mig_enabled", "compute_mode",
    "persistence", "power_default_w", "recovery_action", "virtualization",
)  # fmt: skip
_FREQUENT = (
    "memory_used_bytes", "memory_free_bytes", "memory_reserved_bytes", "utilization_pct", "memory_utilization_pct",
    "temperature_c", "power_w", "sm_clock_mhz", "memory_clock_mhz", "throttle_reasons", "performance_state", "fan_pct",
    "processes",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Kept:
    """Readings of a GPU that are slow or seldom change, and when they were taken."""

    values: Mapping[str, Any]
    unknown: Mapping[str, str]
    taken_at: float
    """Of the monotonic clock."""


def answering(index: int, kept: Kept, values: dict[str, Any], unknown: dict[str, str], *, notes: list[str]) -> Gpu:
    """A GPU of which was read what could be.

    Args:
        index: NVML's.
        kept: Its readings that seldom change.
        values: What was read now, by field.
        unknown: Why what was asked now has no value, by field.
        notes: What was noticed while reading.
    """
    plain = {field: value for field, value in kept.values.items() if "." not in field}
    return Gpu(
        index=index,
        pcie=PcieLink(**_part(kept.values, "pcie.")),
        ecc=Ecc(**_part(kept.values, "ecc.")),
        age_s=max(0.0, time.monotonic() - kept.taken_at),
        notes=tuple(dict.fromkeys(notes)),
        unknown={**kept.unknown, **unknown},
        **({"uuid": None, "name": None} | plain | values),
    )


def _part(values: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    return {field.removeprefix(prefix): value for field, value in values.items() if field.startswith(prefix)}


def sleeping(index: int, uuid: str | None, kept: Kept) -> Gpu:
    """A GPU that the kernel has powered down, by what is known of it."""
    unknown = dict.fromkeys((*_FREQUENT, "memory_total_bytes"), "the GPU is asleep, and reading it would wake it")
    return answering(index, kept, {"uuid": uuid, "asleep": True, "processes": None}, unknown, notes=[])


def failed(index: int, uuid: str | None, kept: Kept | None, failure: Failure) -> Gpu:
    """A GPU of which nothing can be read now, by the name it last had."""
    known: dict[str, Any] = {"name": None}
    if kept is not None:
        known |= {field: kept.values[field] for field in IDENTITY if field in kept.values}
    missing = (field for field in IDENTITY if known.get(field) is None)
    return Gpu(
        index=index,
        uuid=uuid,
        status=GpuStatus.LOST if is_lost(failure) else GpuStatus.ERROR,
        problem=_sentence(failure),
        processes=None,
        unknown=dict.fromkeys((*_FREQUENT, *_SELDOM, *missing), failure.reason),
        **known,
    )


def is_lost(failure: Failure) -> bool:
    """Whether an answer speaks of the whole GPU."""
    return failure.code in (codes.GPU_IS_LOST, codes.RESET_REQUIRED)


def loss(sheet: Sheet) -> Failure | None:
    """The answer among a sheet's that says its GPU is lost or needs a reset."""
    return next((failure for failure in sheet.failures if is_lost(failure)), None)


def breakdown(sheet: Sheet) -> Failure | None:
    """What makes the GPU as a whole count as failed: it is lost, or not one reading of it succeeded."""
    read = sheet.values.keys() - {"uuid", "unified_memory"}
    broken = [failure for failure in sheet.failures if failure.code not in codes.ABSENT]
    return loss(sheet) or (broken[0] if broken and not read else None)


def _sentence(failure: Failure) -> str:
    if failure.code == codes.GPU_IS_LOST:
        return "The GPU is lost: it has fallen off the bus or does not answer the driver."
    if failure.code == codes.RESET_REQUIRED:
        return "The GPU needs a reset before it can be used again."
    return f"The GPU cannot be read: {failure.reason}."
