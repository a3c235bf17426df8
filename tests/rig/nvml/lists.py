"""Questions to NVML whose answers are lists of unknown length: processes, utilization, fields, samples, clocks."""

from __future__ import annotations

import ctypes
from typing import Any

import pynvml

from tests.rig.nvml.ask import Answer, Library, fields_of

U32 = ctypes.c_uint
U64 = ctypes.c_ulonglong

PROCESS_LISTS = tuple(
    f"nvmlDeviceGet{kind}RunningProcesses{version}"
    for kind in ("Compute", "Graphics", "MPSCompute")
    for version in ("", "_v2", "_v3")
)
FIELD_IDS = tuple(range(1, 308))
"""Every field identifier that nvidia-ml-py 13 knows."""


class ProcessV1(ctypes.Structure):
    """The process record of the unversioned call."""

    _fields_ = (("pid", U32), ("usedGpuMemory", U64))


def processes(library: Library, device: Any) -> dict[str, Answer]:
    """All process lists: asked for the size, with room for one, with room enough, and with too much."""
    return {name: _sized_list(library, name, device) for name in PROCESS_LISTS if library.has(name)}


def _sized_list(library: Library, name: str, device: Any) -> Answer:
    record = pynvml.c_nvmlProcessInfo_v2_t if "_v" in name else ProcessV1
    count = U32(0)
    code = library.call(name, device, ctypes.byref(count), None)
    answer: Answer = {"size": {"code": code, "count": count.value}}
    for label, room in (("room for one", 1), ("room for 64", 64)):
        count = U32(room)
        found = (record * room)()
        code = library.call(name, device, ctypes.byref(count), found)
        entries = [fields_of(entry) for entry in found[: min(count.value, room)]] if code == 0 else []
        answer[label] = {"code": code, "count": count.value, "processes": entries}
    return answer


def detail_list(library: Library, device: Any, mode: int) -> Answer:
    """The detailed process list, first for its size, then whole."""
    name = "nvmlDeviceGetRunningProcessDetailList"
    if not library.has(name):
        return {"missing": True}
    asked = pynvml.c_nvmlProcessDetailList_v1_t(version=0x1000018, mode=mode)
    code = library.call(name, device, ctypes.byref(asked))
    answer: Answer = {"size": {"code": code, "count": asked.numProcArrayEntries}}
    if code == pynvml.NVML_ERROR_INSUFFICIENT_SIZE:
        found = (pynvml.c_nvmlProcessDetail_v1_t * asked.numProcArrayEntries)()
        asked.procArray = ctypes.cast(found, ctypes.POINTER(pynvml.c_nvmlProcessDetail_v1_t))
        code = library.call(name, device, ctypes.byref(asked))
        answer["full"] = {"code": code, "processes": [fields_of(entry) for entry in found]}
    wrong = pynvml.c_nvmlProcessDetailList_v1_t(version=0, mode=mode)
    answer["version 0"] = {"code": library.call(name, device, ctypes.byref(wrong))}
    return answer


def utilization(library: Library, device: Any) -> Answer:
    """Utilization by process, through the old call and the new one, since ever and since an hour from now."""
    answer: Answer = {}
    for label, since in (("since 0", 0), ("since the future", 1 << 62)):
        name = "nvmlDeviceGetProcessUtilization"
        count = U32(0)
        code = library.call(name, device, None, ctypes.byref(count), U64(since))
        step: Answer = {"size": {"code": code, "count": count.value}}
        if code == pynvml.NVML_ERROR_INSUFFICIENT_SIZE:
            found = (pynvml.c_nvmlProcessUtilizationSample_t * max(count.value, 1))()
            code = library.call(name, device, found, ctypes.byref(count), U64(since))
            kept = found[: min(count.value, len(found))] if code == 0 else []
            step["full"] = {"code": code, "count": count.value, "samples": [fields_of(sample) for sample in kept]}
        answer[f"{name}({label})"] = step
    answer["nvmlDeviceGetProcessesUtilizationInfo"] = _utilization_info(library, device)
    return answer


def _utilization_info(library: Library, device: Any) -> Answer:
    name = "nvmlDeviceGetProcessesUtilizationInfo"
    if not library.has(name):
        return {"missing": True}
    asked = pynvml.c_nvmlProcessesUtilizationInfo_v1_t(version=0x01000018)
    code = library.call(name, device, ctypes.byref(asked))
    step: Answer = {"size": {"code": code, "count": asked.processSamplesCount}}
    if code == pynvml.NVML_ERROR_INSUFFICIENT_SIZE:
        found = (pynvml.c_nvmlProcessUtilizationInfo_v1_t * max(asked.processSamplesCount, 1))()
        asked.procUtilArray = ctypes.cast(found, ctypes.POINTER(pynvml.c_nvmlProcessUtilizationInfo_v1_t))
        code = library.call(name, device, ctypes.byref(asked))
        kept = found[: min(asked.processSamplesCount, len(found))] if code == 0 else []
        step["full"] = {"code": code, "samples": [fields_of(sample) for sample in kept]}
    wrong = pynvml.c_nvmlProcessesUtilizationInfo_v1_t(version=0)
    step["version 0"] = {"code": library.call(name, device, ctypes.byref(wrong))}
    return step


VALUES = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")


def field_values(library: Library, device: Any) -> Answer:
    """Every field by its identifier: `[return code, value type, value]`, asked in one call; and the odd calls."""
    count = len(FIELD_IDS)
    asked = (pynvml.c_nvmlFieldValue_t * count)()
    for entry, identifier in zip(asked, FIELD_IDS, strict=True):
        entry.fieldId = identifier
    code = library.call("nvmlDeviceGetFieldValues", device, ctypes.c_int(count), asked)
    found = {str(entry.fieldId): _field(entry) for entry in asked} if code == 0 else {}
    none = library.call("nvmlDeviceGetFieldValues", device, ctypes.c_int(0), asked)
    unknown = (pynvml.c_nvmlFieldValue_t * 1)()
    unknown[0].fieldId = 9999
    odd = library.call("nvmlDeviceGetFieldValues", device, ctypes.c_int(1), unknown)
    return {
        "code": code,
        "fields": found,
        "timestamp digits": len(str(asked[0].timestamp)),
        "no fields": {"code": none},
        "field 9999": {"code": odd, "return": unknown[0].nvmlReturn},
    }


def _field(entry: pynvml.c_nvmlFieldValue_t) -> list[Any]:
    if entry.nvmlReturn != 0:
        return [entry.nvmlReturn, None, None]
    kind = entry.valueType
    return [0, kind, getattr(entry.value, VALUES[kind]) if kind < len(VALUES) else None]


def samples(library: Library, device: Any) -> dict[str, Answer]:
    """The driver's own sample buffers: code, value type, how many, and the last value."""
    found: dict[str, Answer] = {}
    for label, kind in (("power", 0), ("gpu", 1), ("memory", 2), ("encoder", 3), ("decoder", 4), ("sm clock", 5)):
        value_type, count = U32(99), U32(0)
        since = U64(0)
        name = "nvmlDeviceGetSamples"
        code = library.call(name, device, U32(kind), since, ctypes.byref(value_type), ctypes.byref(count), None)
        step: Answer = {"size": {"code": code, "count": count.value, "value_type": value_type.value}}
        if code == 0 and count.value:
            buffer = (pynvml.c_nvmlSample_t * count.value)()
            code = library.call(name, device, U32(kind), since, ctypes.byref(value_type), ctypes.byref(count), buffer)
            step["full"] = {"code": code, "count": count.value, "value_type": value_type.value}
            if code == 0 and count.value:
                step["last"] = buffer[count.value - 1].sampleValue.uiVal
        found[label] = step
    return found


def clock_lists(library: Library, device: Any) -> dict[str, Answer]:
    """Supported memory clocks, and the graphics clocks of the fastest: code, count, first and last."""
    found: dict[str, Answer] = {}
    memory = _clock_list(library, "nvmlDeviceGetSupportedMemoryClocks", (device,))
    found["memory"] = memory
    if memory.get("first"):
        arguments = (device, U32(memory["first"]))
        found["graphics"] = _clock_list(library, "nvmlDeviceGetSupportedGraphicsClocks", arguments)
    return found


def _clock_list(library: Library, name: str, arguments: tuple[Any, ...]) -> Answer:
    count = U32(0)
    answer: Answer = {"size code": library.call(name, *arguments, ctypes.byref(count), None), "count": count.value}
    if count.value:
        clocks = (U32 * count.value)()
        answer["code"] = library.call(name, *arguments, ctypes.byref(count), clocks)
        answer |= {"first": clocks[0], "last": clocks[count.value - 1]}
    return answer


def retired_pages(library: Library, device: Any) -> dict[str, Answer]:
    """Retired pages by cause: the size, then the list."""
    found: dict[str, Answer] = {}
    for name in ("nvmlDeviceGetRetiredPages", "nvmlDeviceGetRetiredPages_v2"):
        for cause in (0, 1):
            count = U32(0)
            arguments = (device, U32(cause), ctypes.byref(count), None)
            more = (None,) if name.endswith("_v2") else ()
            found[f"{name}({cause})"] = {"code": library.call(name, *arguments, *more), "count": count.value}
    return found


def accounting(library: Library, device: Any) -> dict[str, Answer]:
    """Accounting of one process that does not exist, and the list of accounted ones."""
    stats = pynvml.c_nvmlAccountingStats_t()
    count = U32(0)
    name = "nvmlDeviceGetAccountingStats"
    return {
        name: {"code": library.call(name, device, U32(4_000_000), ctypes.byref(stats))},
        "nvmlDeviceGetAccountingPids": {
            "code": library.call("nvmlDeviceGetAccountingPids", device, ctypes.byref(count), None),
            "count": count.value,
        },
    }
