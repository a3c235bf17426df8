"""C23 and C24: what the host's NVML tells of the GPUs a container has, judged. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gpuconsole.gpu.model import Gpu, GpuStatus, ProcessKind
from gpuconsole.probes.catalog import CheckInfo
from gpuconsole.probes.records import CheckResult, CheckStatus
from gpuconsole.probes.suite import GPU_CLOCKS, GPU_HEALTH

_WORN_PAGES = 60
"""NVIDIA exchanges a card with so many retired pages."""
_LOWERED = 0.98
"""A power limit below this share of the one it was delivered with was lowered by somebody."""
_RESET = "Stop what runs on it, then reset it: sudo nvidia-smi --gpu-reset -i {index}; else restart the host."
_REBOOT = "Stop what runs on the machine and restart it."
_RECOVERY = {
    "gpu-reset": _RESET, "drain-and-reset": _RESET, "bus-reset": _RESET, "node-reboot": _REBOOT,
    "system-reboot": _REBOOT,
}  # fmt: skip
_HARDWARE_REASONS = {
    "hw-thermal": ("is slowed down by its own heat protection", "Look at fans, filters and the room's temperature."),
    "hw-power-brake": ("is slowed down by the power supply", "Look at its power cables and at the power supply."),
    "hw-slowdown": ("is slowed down by its hardware", "Look at cooling and at power: nvidia-smi -q -d PERFORMANCE."),
    "sw-thermal": ("is slowed down because it is too warm", "Look at fans, filters and the room's temperature."),
}
"""Reasons that hold clocks down and are worth a warning; a power limit at work is none."""
_HARDWARE_XIDS = frozenset({48, 61, 62, 63, 64, 74, 79, 92, 94, 95, 119, 120, 136, 140, 143})
"""Errors of the GPU itself; the other numbers are mostly of programs."""


@dataclass(frozen=True, slots=True)
class Xid:
    """An error the driver wrote to the kernel log."""

    bus: str
    """``0000:06:00``, in lower case."""
    number: int


@dataclass(frozen=True, slots=True)
class Observed:
    """A GPU as it was seen while the checks ran."""

    gpu: Gpu
    """As last seen."""
    samples: int = 1
    reasons: frozenset[str] = frozenset()
    """All that held its clocks down."""
    told: bool = True
    """The driver said at least once what holds them down, if only that nothing does."""
    generation: int | None = None
    width: int | None = None
    """The most its PCIe link had."""
    loaded: bool = False
    """It was seen at work; at rest the link is trained down."""


def observe(before: Observed | None, gpu: Gpu) -> Observed:
    """What is known of a GPU after one more look at it."""
    generation, width = gpu.pcie.generation, gpu.pcie.width
    loaded = bool(gpu.utilization_pct)  # not by the performance state: some cards rest in the highest
    reasons = frozenset(gpu.throttle_reasons or ())
    told = gpu.throttle_reasons is not None
    if before is None:
        return Observed(gpu, reasons=reasons, told=told, generation=generation, width=width, loaded=loaded)
    return replace(
        before,
        gpu=gpu,
        samples=before.samples + 1,
        reasons=before.reasons | reasons,
        told=before.told or told,
        generation=_most(before.generation, generation),
        width=_most(before.width, width),
        loaded=before.loaded or loaded,
    )


def _most(one: int | None, other: int | None) -> int | None:
    return max((number for number in (one, other) if number is not None), default=None)


NOT_GIVEN = "no GPU was given"
"""Why nothing of a container without GPUs is looked at."""


def skipped(check: CheckInfo, why: str) -> CheckResult:
    """The result where NVML cannot be asked; ``why`` is a phrase."""
    return CheckResult(check.id, check.code, CheckStatus.SKIP, why)


def health(gpus: Sequence[Gpu], xids: Sequence[Xid] | None) -> CheckResult:
    """C23: memory errors, repairs that wait, and what the driver asks for.

    Args:
        gpus: The GPUs of the container.
        xids: Errors in the kernel log; None where it may not be read.
    """
    failures, warnings = [], []
    for gpu in gpus:
        failures += list(_failures(gpu))
        warnings += list(_warnings(gpu, xids or ()))
    value = {"gpus": [_health_of(gpu, xids) for gpu in gpus]}
    told = _told(GPU_HEALTH, failures, warnings, value)
    if told is not None:
        return told
    if all(gpu.ecc.enabled is None and gpu.recovery_action is None for gpu in gpus):
        why = "no errors are known, but these GPUs do not count them"
        return CheckResult(GPU_HEALTH.id, GPU_HEALTH.code, CheckStatus.OK, why, value=value)
    off = [gpu.label for gpu in gpus if gpu.ecc.enabled is False]
    silent = [gpu.label for gpu in gpus if gpu.ecc.enabled is not False and gpu.ecc.volatile_uncorrected is None]
    counted = len(off) + len(silent) < len(gpus)
    why = "no memory errors, no repair waits" if counted else "no errors are known, but none are counted"
    why += f"; ECC is off on {', '.join(off)}" if off else ""
    why += f"; {', '.join(silent)} {'does' if len(silent) == 1 else 'do'} not tell of memory errors" if silent else ""
    return CheckResult(GPU_HEALTH.id, GPU_HEALTH.code, CheckStatus.OK, why, value=value)


def _failures(gpu: Gpu) -> Sequence[tuple[str, str]]:
    if gpu.status is not GpuStatus.OK:
        what = (gpu.problem or "does not answer").rstrip(".")
        fix = "Save what runs on other GPUs, then restart the host; look at the kernel log."
        return [(f"{gpu.label}: {what[:1].lower()}{what[1:]}", fix)]
    found = []
    if gpu.recovery_action not in (None, "none"):
        fix = _RECOVERY.get(str(gpu.recovery_action), "Look at nvidia-smi -q, and at the kernel log.")
        found.append((f"the driver asks for {gpu.recovery_action} of {gpu.label}", fix.format(index=gpu.index)))
    if gpu.ecc.remap_failed:
        fix = "Take the card out of use: that is a warranty case."
        found.append((f"{gpu.label} could not replace a bad row of memory", fix))
    if gpu.ecc.volatile_uncorrected:
        count = gpu.ecc.volatile_uncorrected
        why = f"{gpu.label} had {count} memory error{'' if count == 1 else 's'} that could not be corrected"
        found.append((why, _RESET.format(index=gpu.index)))
    if (gpu.ecc.retired_pages or 0) >= _WORN_PAGES:
        why = f"{gpu.label} has given up {gpu.ecc.retired_pages} pages of memory"
        found.append((why, "Take the card out of use: that is a warranty case."))
    return found


def _warnings(gpu: Gpu, xids: Sequence[Xid]) -> Sequence[tuple[str, str]]:
    found = []
    if gpu.ecc.remap_pending or gpu.ecc.retired_pending:
        found.append((f"a repair of the memory of {gpu.label} waits for a reset", _RESET.format(index=gpu.index)))
    numbers = sorted({xid.number for xid in xids if xid.number in _HARDWARE_XIDS and _same_place(xid, gpu)})
    if numbers:
        listed = ", ".join(map(str, numbers))
        why = f"the kernel log has errors of {gpu.label} itself since the start: Xid {listed}"
        found.append((why, "Look them up: docs.nvidia.com/deploy/xid-errors; they may be of the past."))
    return found


def _same_place(xid: Xid, gpu: Gpu) -> bool:
    return gpu.pci_bus_id is not None and gpu.pci_bus_id.lower()[-12:].startswith(xid.bus)


def _health_of(gpu: Gpu, xids: Sequence[Xid] | None) -> dict[str, Any]:
    return {
        "gpu": gpu.label,
        "uuid": gpu.uuid,
        "status": gpu.status.value,
        "ecc": gpu.ecc.enabled,
        "uncorrected_errors": gpu.ecc.volatile_uncorrected,
        "uncorrected_errors_ever": gpu.ecc.aggregate_uncorrected,
        "corrected_errors": gpu.ecc.volatile_corrected,
        "remapped_rows": gpu.ecc.remapped_rows,
        "remap_pending": gpu.ecc.remap_pending,
        "remap_failed": gpu.ecc.remap_failed,
        "retired_pages": gpu.ecc.retired_pages,
        "recovery_action": gpu.recovery_action,
        "xids": None if xids is None else [xid.number for xid in xids if _same_place(xid, gpu)],
    }


def clocks(seen: Sequence[Observed]) -> CheckResult:
    """C24: what held clocks down, a lowered power limit, the PCIe link under load, persistence."""
    warnings: list[tuple[str, str]] = []
    for one in seen:
        warnings += _held_back(one)
    value = {"gpus": [_clocks_of(one) for one in seen]}
    told = _told(GPU_CLOCKS, (), warnings, value)
    if told is not None:
        return told
    capped = any("sw-power-cap" in one.reasons for one in seen)
    why = "nothing but the power limit holds the clocks down" if capped else "nothing holds the clocks down"
    if not any(one.told for one in seen):
        why = "what holds the clocks down is not told"
    elif silent := [one.gpu.label for one in seen if not one.told]:
        why += f", as far as it is told ({', '.join(silent)}: nothing)"
    if not all(one.loaded for one in seen):
        why += "; clocks under load and the PCIe link cannot be judged at rest"
    return CheckResult(GPU_CLOCKS.id, GPU_CLOCKS.code, CheckStatus.OK, why, value=value)


def _held_back(one: Observed) -> list[tuple[str, str]]:
    gpu, found = one.gpu, []
    if gpu.status is not GpuStatus.OK:
        return []  # the other check tells
    for reason, (what, fix) in _HARDWARE_REASONS.items():
        if reason in one.reasons:
            found.append((f"{gpu.label} {what}", fix))
            break
    limit, default = gpu.power_limit_w, gpu.power_default_w
    if limit is not None and default is not None and limit < default * _LOWERED:
        why = f"the power limit of {gpu.label} is {limit:.0f} W, it was delivered with {default:.0f} W"
        found.append((why, f"If nobody wants that: sudo nvidia-smi -i {gpu.index} -pl {default:.0f}."))
    found += _link(one)
    displays = any(process.kind is ProcessKind.GRAPHICS for process in gpu.processes or ())
    if gpu.persistence is False and not displays:
        why = f"{gpu.label} is started anew for each program: persistence mode is off"
        found.append((why, "Turn it on: sudo systemctl enable --now nvidia-persistenced."))
    return found


def _link(one: Observed) -> list[tuple[str, str]]:
    pcie = one.gpu.pcie
    if not one.loaded:
        return []
    if one.width is not None and pcie.max_width is not None and one.width < pcie.max_width:
        why = f"the PCIe link of {one.gpu.label} is x{one.width}, it could be x{pcie.max_width}"
        return [(why, "Look at the slot, the riser and the firmware's settings; clean the contacts.")]
    if one.generation is not None and pcie.max_generation is not None and one.generation < pcie.max_generation:
        why = f"the PCIe link of {one.gpu.label} runs at generation {one.generation} of {pcie.max_generation}"
        return [(why, "Look at the riser and the firmware's settings of the slot.")]
    return []


def _clocks_of(one: Observed) -> dict[str, Any]:
    gpu = one.gpu
    return {
        "gpu": gpu.label,
        "uuid": gpu.uuid,
        "samples": one.samples,
        "reasons": sorted(one.reasons) if one.told else None,
        "power_limit_w": gpu.power_limit_w,
        "power_default_w": gpu.power_default_w,
        "under_load": one.loaded,
        "pcie_generation": one.generation,
        "pcie_max_generation": gpu.pcie.max_generation,
        "pcie_width": one.width,
        "pcie_max_width": gpu.pcie.max_width,
        "persistence": gpu.persistence,
    }


def _told(
    check: CheckInfo, failures: Sequence[tuple[str, str]], warnings: Sequence[tuple[str, str]], value: Mapping[str, Any]
) -> CheckResult | None:
    """The result where something is to be told; the remedy is that of the first."""
    worries = [*failures, *warnings]
    if not worries:
        return None
    status = CheckStatus.FAIL if failures else CheckStatus.WARN
    why = "; ".join(text for text, _ in worries[:3])
    if len(worries) > 3:
        why += f"; and {len(worries) - 3} more"
    return CheckResult(check.id, check.code, status, why, worries[0][1], value)
