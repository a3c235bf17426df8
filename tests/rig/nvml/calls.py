"""The NVML calls that monitors, schedulers and checks make, as data: name, arguments, what comes back.

One list serves three ends: the recorder asks a real driver with it, the simulator is held against
the recording with it, and a reader sees at a glance which corner of NVML matters here. Nothing in
the list changes a setting of a GPU.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass

import pynvml

U32 = ctypes.c_uint
I32 = ctypes.c_int
U64 = ctypes.c_ulonglong


@dataclass(frozen=True, slots=True)
class Device:
    """The handle of the GPU that is asked."""


@dataclass(frozen=True, slots=True)
class Value:
    """A value that goes in by value."""

    value: object


@dataclass(frozen=True, slots=True)
class Out:
    """A number that comes back through a pointer."""

    name: str
    kind: type = U32


@dataclass(frozen=True, slots=True)
class Text:
    """A text buffer; with its length as the next argument unless `sized` is false."""

    name: str
    size: int
    sized: bool = True


@dataclass(frozen=True, slots=True)
class Struct:
    """A structure that comes back through a pointer, with the fields set before the call."""

    make: Callable[[], ctypes.Structure]
    preset: tuple[tuple[str, int], ...] = ()


Argument = Device | Value | Out | Text | Struct


@dataclass(frozen=True, slots=True)
class Call:
    """One question to the library; `label` tells questions to the same function apart."""

    name: str
    arguments: tuple[Argument, ...]
    label: str = ""

    @property
    def key(self) -> str:
        """The name under which the answer stands."""
        return f"{self.name}({self.label})" if self.label else self.name


def _of_device(name: str, *arguments: Argument, label: str = "") -> Call:
    return Call(name, (Device(), *arguments), label)


def _numbers(names: str, *fields: str, kind: type = U32) -> tuple[Call, ...]:
    """Calls that each give the same numbers and take nothing but the device."""
    return tuple(_of_device(f"nvmlDeviceGet{name}", *(Out(f, kind) for f in fields)) for name in names.split())


def _each(name: str, chosen: dict[str, int], *rest: Argument) -> tuple[Call, ...]:
    """The same call once for each value of its first argument after the device."""
    return tuple(_of_device(name, Value(U32(value)), *rest, label=label) for label, value in chosen.items())


def _versioned(name: str, kind: type[ctypes.Structure], word: int, *others: int, **preset: int) -> tuple[Call, ...]:
    """A call with a version word in its structure, also asked with wrong words."""
    words = (word, 0, word & 0x00FFFFFF, *others)
    return tuple(
        _of_device(name, Struct(kind, (("version", w), *preset.items())), label=f"version {w:#x}") for w in words
    )


CLOCKS = {"graphics": 0, "sm": 1, "mem": 2, "video": 3}
CLOCK_IDS = {"current": 0, "application": 1, "default": 2, "boost max": 3}
THRESHOLDS = {
    "shutdown": 0, "slowdown": 1, "mem max": 2, "gpu max": 3, "acoustic min": 4, "acoustic curr": 5,
    "acoustic max": 6, "gps curr": 7, "beyond": 8,
}  # fmt: skip
POLICIES = {"power": 0, "thermal": 1, "sync": 2, "board": 3, "utilization": 4, "reliability": 5, "app": 10, "base": 11}
TELLTALE_LINKS = {"link 0": 0, "link 17": 17, "link 18": 18, "link 36": 36}

BRANCH = pynvml.c_nvmlSystemDriverBranchInfo_v1_t

SYSTEM: tuple[Call, ...] = (
    Call("nvmlSystemGetDriverVersion", (Text("version", 80),)),
    Call("nvmlSystemGetDriverVersion", (Text("version", 3),), "buffer of 3"),
    Call("nvmlSystemGetNVMLVersion", (Text("version", 80),)),
    Call("nvmlSystemGetCudaDriverVersion", (Out("version", I32),)),
    Call("nvmlSystemGetCudaDriverVersion_v2", (Out("version", I32),)),
    Call("nvmlSystemGetDriverBranch", (Struct(BRANCH, (("version", 0x1000054),)), Value(U32(80)))),
    Call("nvmlDeviceGetCount", (Out("count"),)),
    Call("nvmlDeviceGetCount_v2", (Out("count"),)),
    Call("nvmlUnitGetCount", (Out("count"),)),
    Call("nvmlGetExcludedDeviceCount", (Out("count"),)),
    Call("nvmlSystemGetHicVersion", (Out("count"), Value(None))),
    Call("nvmlSystemGetConfComputeState", (Struct(pynvml.c_nvmlConfComputeSystemState_t),)),
    Call("nvmlSystemGetConfComputeCapabilities", (Struct(pynvml.c_nvmlConfComputeSystemCaps_t),)),
    Call("nvmlSystemGetConfComputeGpusReadyState", (Out("state"),)),
    Call("nvmlSystemGetConfComputeSettings", (Struct(pynvml.c_nvmlSystemConfComputeSettings_v1_t),)),
    Call("nvmlSystemGetNvlinkBwMode", (Out("mode"),)),
    Call("nvmlSystemGetProcessName", (Value(U32(4_000_000)), Text("name", 1024)), "no such pid"),
)  # fmt: skip

IDENTITY: tuple[Call, ...] = (
    _of_device("nvmlDeviceGetName", Text("name", 96)),
    _of_device("nvmlDeviceGetName", Text("name", 4), label="buffer of 4"),
    _of_device("nvmlDeviceGetUUID", Text("uuid", 96)),
    _of_device("nvmlDeviceGetUUID", Text("uuid", 80), label="buffer of 80"),
    _of_device("nvmlDeviceGetUUID", Text("uuid", 10), label="buffer of 10"),
    _of_device("nvmlDeviceGetSerial", Text("serial", 30)),
    _of_device("nvmlDeviceGetBoardPartNumber", Text("part_number", 80)),
    _of_device("nvmlDeviceGetVbiosVersion", Text("version", 32)),
    _of_device("nvmlDeviceGetInforomImageVersion", Text("version", 16)),
    *_each("nvmlDeviceGetInforomVersion", {"oem": 0, "ecc": 1, "power": 2}, Text("version", 16)),
    _of_device("nvmlDeviceGetGspFirmwareVersion", Text("version", 64, sized=False)),
    _of_device("nvmlDeviceGetGspFirmwareMode", Out("enabled"), Out("default")),
    *_numbers("Index MinorNumber BoardId MultiGpuBoard Brand Architecture BusType NumGpuCores", "value"),
    *_numbers("MemoryBusWidth IrqNum PowerSource ModuleId NumaNodeId", "value"),
    _of_device("nvmlDeviceGetCudaComputeCapability", Out("major", I32), Out("minor", I32)),
    _of_device("nvmlDeviceGetPciInfo_v3", Struct(pynvml.nvmlPciInfo_t)),
    _of_device("nvmlDeviceGetPciInfo_v2", Struct(pynvml.nvmlPciInfo_v2_t)),
    *_versioned("nvmlDeviceGetPciInfoExt", pynvml.nvmlPciInfoExt_v1_t, 0x1000040),
    *_versioned("nvmlDeviceGetC2cModeInfoV", pynvml.c_nvmlC2cModeInfo_v1_t, 0x1000008)[:1],
    _of_device("nvmlDeviceGetVirtualizationMode", Out("mode")),
    _of_device("nvmlDeviceGetHostVgpuMode", Out("mode")),
    _of_device("nvmlDeviceGetDriverModel", Out("current"), Out("pending")),
    _of_device("nvmlDeviceGetDriverModel_v2", Out("current"), Out("pending")),
    *_versioned("nvmlDeviceGetCapabilities", pynvml.c_nvmlDeviceCapabilities_v1_t, 0x1000008),
    *_versioned("nvmlDeviceGetAddressingMode", pynvml.c_nvmlDeviceAddressingMode_t, 0x1000008)[:1],
)  # fmt: skip

READINGS: tuple[Call, ...] = (
    _of_device("nvmlDeviceGetMemoryInfo", Struct(pynvml.c_nvmlMemory_t)),
    *_versioned("nvmlDeviceGetMemoryInfo_v2", pynvml.c_nvmlMemory_v2_t, 0x2000028, 0x1000018, 0x3000028),
    _of_device("nvmlDeviceGetBAR1MemoryInfo", Struct(pynvml.c_nvmlBAR1Memory_t)),
    _of_device("nvmlDeviceGetConfComputeMemSizeInfo", Struct(pynvml.c_nvmlConfComputeMemSizeInfo_t)),
    _of_device("nvmlDeviceGetConfComputeProtectedMemoryUsage", Struct(pynvml.c_nvmlMemory_t)),
    _of_device("nvmlDeviceGetUtilizationRates", Struct(pynvml.c_nvmlUtilization_t)),
    *_numbers("EncoderUtilization DecoderUtilization JpgUtilization OfaUtilization", "percent", "period_us"),
    *_each("nvmlDeviceGetTemperature", {"gpu": 0, "1": 1}, Out("celsius")),
    *_versioned("nvmlDeviceGetTemperatureV", pynvml.c_nvmlTemperature_v1_t, 0x100000C, sensorType=0),
    *_versioned("nvmlDeviceGetMarginTemperature", pynvml.c_nvmlMarginTemperature_v1_t, 0x1000008),
    *_each("nvmlDeviceGetTemperatureThreshold", THRESHOLDS, Out("celsius")),
    _of_device("nvmlDeviceGetThermalSettings", Value(U32(15)), Struct(pynvml.c_nvmlGpuThermalSettings_t)),
    *_numbers("FanSpeed NumFans", "value"),
    *_each("nvmlDeviceGetFanSpeed_v2", {"fan 0": 0}, Out("percent")),
    *_each("nvmlDeviceGetTargetFanSpeed", {"fan 0": 0}, Out("percent")),
    *_versioned("nvmlDeviceGetFanSpeedRPM", pynvml.c_nvmlFanSpeedInfo_t, 0x100000C)[:1],
    _of_device("nvmlDeviceGetMinMaxFanSpeed", Out("min"), Out("max")),
    *_numbers("PowerUsage PowerManagementMode PowerManagementLimit PowerManagementDefaultLimit", "value"),
    *_numbers("EnforcedPowerLimit", "value"),
    _of_device("nvmlDeviceGetPowerManagementLimitConstraints", Out("min"), Out("max")),
    _of_device("nvmlDeviceGetTotalEnergyConsumption", Out("millijoules", U64)),
    *_each("nvmlDeviceGetClockInfo", CLOCKS | {"beyond": 4}, Out("mhz")),
    *_each("nvmlDeviceGetMaxClockInfo", CLOCKS, Out("mhz")),
    *_each("nvmlDeviceGetApplicationsClock", CLOCKS, Out("mhz")),
    *_each("nvmlDeviceGetDefaultApplicationsClock", CLOCKS, Out("mhz")),
    *_each("nvmlDeviceGetMaxCustomerBoostClock", CLOCKS, Out("mhz")),
    *(
        _of_device("nvmlDeviceGetClock", Value(U32(clock)), Value(U32(which)), Out("mhz"), label=f"{name} {kind}")
        for name, clock in CLOCKS.items()
        for kind, which in CLOCK_IDS.items()
    ),
    *_numbers("PerformanceState PowerState AdaptiveClockInfoStatus", "value"),
    _of_device("nvmlDeviceGetDynamicPstatesInfo", Struct(pynvml.c_nvmlGpuDynamicPstatesInfo_t)),
    *_numbers("CurrentClocksThrottleReasons CurrentClocksEventReasons", "mask", kind=U64),
    *_numbers("SupportedClocksThrottleReasons SupportedClocksEventReasons", "mask", kind=U64),
    _of_device("nvmlDeviceGetAutoBoostedClocksEnabled", Out("enabled"), Out("default")),
    *_each("nvmlDeviceGetViolationStatus", POLICIES, Struct(pynvml.c_nvmlViolationTime_t)),
    *_numbers("CurrPcieLinkGeneration CurrPcieLinkWidth MaxPcieLinkGeneration MaxPcieLinkWidth", "value"),
    *_numbers("GpuMaxPcieLinkGeneration PcieLinkMaxSpeed PcieSpeed PcieReplayCounter", "value"),
    *_each("nvmlDeviceGetPcieThroughput", {"tx": 0, "rx": 1}, Out("kib_per_s")),
    _of_device("nvmlDeviceGetEncoderStats", Out("sessions"), Out("fps"), Out("latency_us")),
    _of_device("nvmlDeviceGetFBCStats", Struct(pynvml.c_nvmlFBCStats_t)),
    _of_device("nvmlDeviceGetEncoderSessions", Out("count"), Value(None)),
)  # fmt: skip

MODES: tuple[Call, ...] = (
    *_numbers("PersistenceMode DisplayMode DisplayActive ComputeMode AccountingMode", "value"),
    *_numbers("AccountingBufferSize DefaultEccMode RetiredPagesPendingStatus", "value"),
    _of_device("nvmlDeviceGetGpuOperationMode", Out("current"), Out("pending")),
    *_each("nvmlDeviceGetAPIRestriction", {"application clocks": 0, "auto boost": 1}, Out("restricted")),
    _of_device("nvmlDeviceGetSupportedEventTypes", Out("mask", U64)),
    *_versioned("nvmlGpmQueryDeviceSupport", pynvml.c_nvmlGpmSupport_t, 1)[:2],
)

HEALTH: tuple[Call, ...] = (
    _of_device("nvmlDeviceGetEccMode", Out("current"), Out("pending")),
    *(
        _of_device(
            "nvmlDeviceGetTotalEccErrors", Value(U32(kind)), Value(U32(counter)), Out("count", U64),
            label=f"{('corrected', 'uncorrected')[kind]} {('volatile', 'aggregate')[counter]}",
        )
        for kind in (0, 1)
        for counter in (0, 1)
    ),
    *(
        _of_device(
            "nvmlDeviceGetMemoryErrorCounter", Value(U32(kind)), Value(U32(0)), Value(U32(place)), Out("count", U64),
            label=f"{('corrected', 'uncorrected')[kind]} volatile location {place}",
        )
        for kind in (0, 1)
        for place in range(8)
    ),
    _of_device(
        "nvmlDeviceGetDetailedEccErrors", Value(U32(0)), Value(U32(0)), Struct(pynvml.c_nvmlEccErrorCounts_t)
    ),
    _of_device("nvmlDeviceGetRemappedRows", Out("correctable"), Out("uncorrectable"), Out("pending"), Out("failure")),
    _of_device("nvmlDeviceGetRemappedRows_v2", Struct(pynvml.c_nvmlRemappedRowsInfo_v2_t)),
    _of_device("nvmlDeviceGetRowRemapperHistogram", Struct(pynvml.c_nvmlRowRemapperHistogramValues)),
    *_versioned("nvmlDeviceGetSramEccErrorStatus", pynvml.c_nvmlEccSramErrorStatus_v1_t, 0x1000068),
    *_versioned("nvmlDeviceGetRepairStatus", pynvml.c_nvmlRepairStatus_t, 0x100000C)[:1],
    *_versioned("nvmlDeviceGetGpuFabricInfoV", pynvml.c_nvmlGpuFabricInfo_v2_t, 0x2000024),
    *_versioned("nvmlDeviceGetGpuFabricInfoV", pynvml.c_nvmlGpuFabricInfo_v3_t, 0x3000028)[:1],
    _of_device("nvmlDeviceGetGpuFabricInfo", Struct(pynvml.c_nvmlGpuFabricInfo_t)),
    *_versioned("nvmlDeviceGetDramEncryptionMode", pynvml.c_nvmlDramEncryptionInfo_t, 0x1000008)[:0],
)  # fmt: skip

LINKS: tuple[Call, ...] = (
    *_each("nvmlDeviceGetNvLinkState", TELLTALE_LINKS, Out("active")),
    *_each("nvmlDeviceGetNvLinkVersion", TELLTALE_LINKS, Out("version")),
    *_each("nvmlDeviceGetNvLinkRemoteDeviceType", TELLTALE_LINKS, Out("kind")),
    *_each("nvmlDeviceGetNvLinkRemotePciInfo_v2", {"link 0": 0}, Struct(pynvml.nvmlPciInfo_t)),
    *_each("nvmlDeviceGetNvLinkCapability", {"link 0": 0}, Value(U32(0)), Out("value")),
    *_each("nvmlDeviceGetNvLinkErrorCounter", {"link 0": 0}, Value(U32(0)), Out("count", U64)),
)

MIG: tuple[Call, ...] = (
    _of_device("nvmlDeviceGetMigMode", Out("current"), Out("pending")),
    *_numbers("MaxMigDeviceCount GpuInstanceId ComputeInstanceId", "value"),
    _of_device("nvmlDeviceIsMigDeviceHandle", Out("is_mig")),
    _of_device("nvmlDeviceGetAttributes_v2", Struct(pynvml.c_nvmlDeviceAttributes)),
    *_each(
        "nvmlDeviceGetGpuInstanceProfileInfoV",
        {f"profile {number}": number for number in (0, 1, 2, 4, 9, 17)},
        Struct(pynvml.c_nvmlGpuInstanceProfileInfo_v2_t),
    ),
    *_each("nvmlDeviceGetGpuInstanceRemainingCapacity", {"profile 19": 19}, Out("count")),
)

OF_DEVICE: tuple[Call, ...] = (*IDENTITY, *READINGS, *MODES, *HEALTH, *LINKS, *MIG)
