"""Which readings are taken of a GPU: those of every look, and those that are slow or seldom change.

On an H200 with driver 580 a reading of the first kind takes 1–120 µs, of the second up to 1.5 ms
(``nvmlDeviceGetMaxClockInfo``). ``nvmlDeviceGetPcieThroughput`` takes 21 ms, so it is never asked.
"""

from __future__ import annotations

from gpuconsole.gpu.nvml.codes import ABSENT, NOT_SUPPORTED, words
from gpuconsole.gpu.nvml.gateway import Failure, Gateway
from gpuconsole.gpu.nvml.sheet import IMPOSSIBLE, Implausible, Reading, Sheet, between, text, watts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_SM_CLOCK, _MEMORY_CLOCK = 1, 2
_CORRECTED, _UNCORRECTED = 0, 1
_VOLATILE, _AGGREGATE = 0, 1

THROTTLE_REASONS = {
    0x002: "application-clocks",
    0x004: "sw-power-cap",
    0x008: "hw-slowdown",
    0x010: "sync-boost",
    0x020: "sw-thermal",
    0x040: "hw-thermal",
    0x080: "hw-power-brake",
    0x100: "display-clock",
    0x200: "board-limit",
    0x400: "reliability",
}
"""NVML's clock event reasons by bit. Bit 0 is idleness, which holds nothing down."""

_COMPUTE_MODES = ("default", "exclusive-thread", "prohibited", "exclusive-process")
_VIRTUALIZATION_MODES = ("none", "passthrough", "vgpu", "host-vgpu", "host-vsga")

_SHARED_MEMORY = frozenset({"gb10", "jetson", "tegra", "orin", "xavier", "thor"})
"""In names of boards whose GPU has no memory of its own."""


def _throttle_reasons(mask: Any) -> tuple[str, ...]:
    slugs = [slug for bit, slug in THROTTLE_REASONS.items() if mask & bit]
    rest = mask & ~(sum(THROTTLE_REASONS) | 1)
    return (*slugs, "other") if rest else tuple(slugs)


def _compute_mode(number: Any) -> str:
    if number >= len(_COMPUTE_MODES):
        raise Implausible(IMPOSSIBLE)
    return _COMPUTE_MODES[number]


def _virtualization(number: Any) -> str:
    if number >= len(_VIRTUALIZATION_MODES):
        raise Implausible(IMPOSSIBLE)
    return _VIRTUALIZATION_MODES[number]


def _performance_state(number: Any) -> int:
    if number == 32:
        raise Implausible("the driver does not know it either")
    return between(0, 15)(number)


def _bus_id(info: Any) -> str:
    # Built from the numbers: the struct's own text is decoded strictly by the binding.
    return f"{info.domain:08X}:{info.bus:02X}:{info.device:02X}.0"


def _first(pair: Any) -> bool:
    """The current one of (current, pending)."""
    return bool(pair[0])


def _uncorrectable(parts: Any) -> int:
    return int(parts[1])


def _part(position: int) -> Callable[[Any], bool]:
    return lambda parts: bool(parts[position])


_MHZ = between(0, 20_000)

AT_EVERY_LOOK = (
    Reading("temperature_c", "nvmlDeviceGetTemperature", (0,), between(0, 200)),
    Reading("power_w", "nvmlDeviceGetPowerUsage", (), watts),
    Reading("sm_clock_mhz", "nvmlDeviceGetClockInfo", (_SM_CLOCK,), _MHZ),
    Reading("memory_clock_mhz", "nvmlDeviceGetClockInfo", (_MEMORY_CLOCK,), _MHZ),
    Reading(
        "throttle_reasons",
        "nvmlDeviceGetCurrentClocksEventReasons",
        (),
        _throttle_reasons,
        "nvmlDeviceGetCurrentClocksThrottleReasons",
    ),
    Reading("performance_state", "nvmlDeviceGetPerformanceState", (), _performance_state),
    Reading("fan_pct", "nvmlDeviceGetFanSpeed", (), between(0, 200)),
)

SELDOM = (
    Reading("name", "nvmlDeviceGetName", (), text),
    Reading("minor", "nvmlDeviceGetMinorNumber", (), between(0, 1 << 20)),
    Reading("pci_bus_id", "nvmlDeviceGetPciInfo", (), _bus_id),
    Reading("compute_capability", "nvmlDeviceGetCudaComputeCapability", (), tuple),
    Reading("power_limit_w", "nvmlDeviceGetEnforcedPowerLimit", (), watts, instead="nvmlDeviceGetPowerManagementLimit"),
    Reading("power_default_w", "nvmlDeviceGetPowerManagementDefaultLimit", (), watts),
    Reading("max_sm_clock_mhz", "nvmlDeviceGetMaxClockInfo", (_SM_CLOCK,), _MHZ),
    Reading("max_memory_clock_mhz", "nvmlDeviceGetMaxClockInfo", (_MEMORY_CLOCK,), _MHZ),
    Reading("pcie.generation", "nvmlDeviceGetCurrPcieLinkGeneration", (), between(0, 20)),
    Reading("pcie.width", "nvmlDeviceGetCurrPcieLinkWidth", (), between(0, 64)),
    Reading("pcie.max_generation", "nvmlDeviceGetMaxPcieLinkGeneration", (), between(0, 20)),
    Reading("pcie.max_width", "nvmlDeviceGetMaxPcieLinkWidth", (), between(0, 64)),
    Reading("ecc.enabled", "nvmlDeviceGetEccMode", (), _first),
    Reading("ecc.remapped_rows", "nvmlDeviceGetRemappedRows", (), _uncorrectable),
    Reading("ecc.remap_pending", "nvmlDeviceGetRemappedRows", (), _part(2)),
    Reading("ecc.remap_failed", "nvmlDeviceGetRemappedRows", (), _part(3)),
    Reading("compute_mode", "nvmlDeviceGetComputeMode", (), _compute_mode),
    Reading("persistence", "nvmlDeviceGetPersistenceMode", (), bool),
    Reading("virtualization", "nvmlDeviceGetVirtualizationMode", (), _virtualization),
)

_ECC_COUNTS = (
    Reading("ecc.volatile_corrected", "nvmlDeviceGetTotalEccErrors", (_CORRECTED, _VOLATILE)),
    Reading("ecc.volatile_uncorrected", "nvmlDeviceGetTotalEccErrors", (_UNCORRECTED, _VOLATILE)),
    Reading("ecc.aggregate_corrected", "nvmlDeviceGetTotalEccErrors", (_CORRECTED, _AGGREGATE)),
    Reading("ecc.aggregate_uncorrected", "nvmlDeviceGetTotalEccErrors", (_UNCORRECTED, _AGGREGATE)),
)


def take_seldom(sheet: Sheet) -> None:
    """The readings that are slow or seldom change: who the GPU is, its limits, its health, its modes."""
    for reading in SELDOM:
        sheet.take(reading)
    if sheet.values.get("ecc.enabled") is False:
        sheet.lack("ECC is off", *(reading.field for reading in _ECC_COUNTS))
    else:
        for reading in _ECC_COUNTS:
            sheet.take(reading)
    _take_retired_pages(sheet)
    _take_recovery_action(sheet)
    _take_mig_mode(sheet)


_RETIRED = (
    Reading("single", "nvmlDeviceGetRetiredPages", (0,), len),
    Reading("double", "nvmlDeviceGetRetiredPages", (1,), len),
)
"""For many corrected errors in one place, and for one that could not be corrected."""


def _take_retired_pages(sheet: Sheet) -> None:
    """Cards that replace rows retire no pages, and say nothing of them."""
    if "ecc.remap_pending" in sheet.values:
        return
    for reading in _RETIRED:
        sheet.take(reading)
    counts = [sheet.values.pop(reading.field, None) for reading in _RETIRED]
    reasons = [sheet.unknown.pop(reading.field, "") for reading in _RETIRED]
    if None in counts:
        sheet.lack(max(reasons), "ecc.retired_pages")
    else:
        sheet.values["ecc.retired_pages"] = sum(counts)
    sheet.take(Reading("ecc.retired_pending", "nvmlDeviceGetRetiredPagesPendingStatus", (), bool))


_RECOVERY_FIELD = 230
"""Number of the field, the same in every driver that has it."""
_RECOVERY_ACTIONS = {
    0: "none", 1: "gpu-reset", 2: "node-reboot", 3: "drain-p2p", 4: "drain-and-reset", 5: "recover-imex-domain",
    6: "bus-reset", 7: "system-reboot",
}  # fmt: skip


def _take_recovery_action(sheet: Sheet) -> None:
    answer = sheet.ask("nvmlDeviceGetFieldValues", [_RECOVERY_FIELD])
    if isinstance(answer, Failure):
        sheet.lack(answer.reason, "recovery_action")
        return
    field = answer[0]
    if field.nvmlReturn:
        sheet.lack(words(field.nvmlReturn), "recovery_action")
        return
    number = int(field.value.uiVal)
    sheet.values["recovery_action"] = _RECOVERY_ACTIONS.get(number, f"action {number}")


def _take_mig_mode(sheet: Sheet) -> None:
    answer = sheet.ask("nvmlDeviceGetMigMode")
    if not isinstance(answer, Failure):
        sheet.values["mig_enabled"] = bool(answer[0])
    elif answer.code == NOT_SUPPORTED:
        sheet.values["mig_enabled"] = False  # a GPU that cannot be divided is not divided
    else:
        sheet.unknown["mig_enabled"] = answer.reason


def _shares_memory(name: str) -> bool:
    """Whether a board of this name has no GPU memory of its own."""
    spaced = "".join(char if char.isalnum() or char == "_" else " " for char in name.lower())
    return not _SHARED_MEMORY.isdisjoint(spaced.split())


def take_frequent(sheet: Sheet, gateway: Gateway, *, name: str | None, mig: bool) -> None:
    """The readings of every look: memory, use, temperature, power, clocks."""
    take_memory(sheet, gateway)
    shared = _shares_memory(name or "")
    sheet.values["unified_memory"] = shared
    if shared and "memory_total_bytes" not in sheet.values:
        reason = "GPU and CPU share the machine's memory, and the driver counts no part of it as the GPU's"
        sheet.lack(reason, *_MEMORY_FIELDS)
    _take_utilization(sheet, mig=mig)
    for reading in AT_EVERY_LOOK:
        sheet.take(reading)


_MEMORY_FIELDS = ("memory_total_bytes", "memory_used_bytes", "memory_free_bytes", "memory_reserved_bytes")


def take_memory(sheet: Sheet, gateway: Gateway) -> None:
    """Memory by NVML's second way of counting, which keeps the driver's reserve apart; else by the first."""
    answer = sheet.ask("nvmlDeviceGetMemoryInfo", gateway.constant("nvmlMemory_v2"))
    reserved: int | None = None
    if isinstance(answer, Failure) and answer.code in ABSENT and answer.code != NOT_SUPPORTED:
        answer = sheet.ask("nvmlDeviceGetMemoryInfo")
        if not isinstance(answer, Failure):
            sheet.unknown["memory_reserved_bytes"] = "this driver is too old for it"
            sheet.notes.append("Memory in use includes the driver's own reserve: this driver is too old to tell.")
    elif not isinstance(answer, Failure):
        reserved = int(answer.reserved)
    if isinstance(answer, Failure):
        sheet.lack(answer.reason, *_MEMORY_FIELDS)
        return
    total = int(answer.total)
    if total == 0:
        sheet.lack("the driver counts no memory as the GPU's", *_MEMORY_FIELDS)
        return
    sheet.values["memory_total_bytes"] = total
    parts = {
        "memory_used_bytes": int(answer.used),
        "memory_free_bytes": int(answer.free),
        "memory_reserved_bytes": reserved,
    }
    for field, size in parts.items():
        if size is not None and size > total:
            sheet.unknown[field] = "the driver gave more than the GPU has"
        elif size is not None:
            sheet.values[field] = size


def _take_utilization(sheet: Sheet, *, mig: bool) -> None:
    fields = ("utilization_pct", "memory_utilization_pct")
    if mig:
        sheet.lack("the driver does not tell it of a GPU divided by MIG", *fields)
        return
    answer = sheet.ask("nvmlDeviceGetUtilizationRates")
    if isinstance(answer, Failure):
        sheet.lack(answer.reason, *fields)
        return
    for field, value in zip(fields, (answer.gpu, answer.memory), strict=True):
        if value > 100:
            sheet.unknown[field] = IMPOSSIBLE
        else:
            sheet.values[field] = int(value)
