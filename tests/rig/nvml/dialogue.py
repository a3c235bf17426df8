"""The questions to NVML that take several steps: lists of unknown length, handles, events, life and death.

Each function gives plain data; together they are everything the recorder asks beside the list of
single calls.
"""

from __future__ import annotations

import ctypes
import faulthandler
import os
from collections.abc import Callable
from typing import Any

import pynvml

from tests.rig.nvml.ask import Answer, HandlePointer, Library, fields_of

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


def affinity(library: Library, device: Any) -> dict[str, Answer]:
    """Processor and memory affinity, nearest GPUs, peers: codes, and counts where they tell something."""
    words = (ctypes.c_ulong * 16)()
    found: dict[str, Answer] = {
        "nvmlDeviceGetCpuAffinity": {"code": library.call("nvmlDeviceGetCpuAffinity", device, U32(16), words)},
        "nvmlDeviceGetMemoryAffinity": {
            "code": library.call("nvmlDeviceGetMemoryAffinity", device, U32(1), words, U32(0))
        },
    }
    for level in (0, 10, 20, 30, 40, 50):
        count = U32(0)
        code = library.call("nvmlDeviceGetTopologyNearestGpus", device, U32(level), ctypes.byref(count), None)
        found[f"nvmlDeviceGetTopologyNearestGpus({level})"] = {"code": code, "count": count.value}
    out = U32(99)
    for name, more in (("nvmlDeviceGetTopologyCommonAncestor", ()), ("nvmlDeviceOnSameBoard", ())):
        code = library.call(name, device, device, *more, ctypes.byref(out))
        found[f"{name}(itself)"] = {"code": code, **({"value": out.value} if code == 0 else {})}
    code = library.call("nvmlDeviceGetP2PStatus", device, device, U32(0), ctypes.byref(out))
    found["nvmlDeviceGetP2PStatus(itself)"] = {"code": code, **({"value": out.value} if code == 0 else {})}
    return found


def mig_handles(library: Library, device: Any) -> dict[str, Answer]:
    """MIG devices by index, and what the calls for MIG handles say of a whole GPU."""
    found: dict[str, Answer] = {}
    handle = HandlePointer()
    for index in (0, 7):
        code = library.call("nvmlDeviceGetMigDeviceHandleByIndex", device, U32(index), ctypes.byref(handle))
        found[f"nvmlDeviceGetMigDeviceHandleByIndex({index})"] = {"code": code}
    name = "nvmlDeviceGetDeviceHandleFromMigDeviceHandle"
    found[name] = {"code": library.call(name, device, ctypes.byref(handle))}
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


def events(library: Library, device: Any) -> dict[str, Answer]:
    """An event set from birth to death: Xid events registered, an empty wait, events nobody knows."""
    made = ctypes.c_void_p()
    found: dict[str, Answer] = {"nvmlEventSetCreate": {"code": library.call("nvmlEventSetCreate", ctypes.byref(made))}}
    for label, mask in (("xid", 8), ("none", 0), ("unknown", 1 << 40)):
        code = library.call("nvmlDeviceRegisterEvents", device, U64(mask), made)
        found[f"nvmlDeviceRegisterEvents({label})"] = {"code": code}
    data = pynvml.c_nvmlEventData_t()
    for name in ("nvmlEventSetWait", "nvmlEventSetWait_v2"):
        found[f"{name}(20 ms)"] = {"code": library.call(name, made, ctypes.byref(data), U32(20))}
    found["nvmlEventSetFree"] = {"code": library.call("nvmlEventSetFree", made)}
    return found


def handles(library: Library, device: Any, uuid: str, bus_id: str) -> dict[str, Answer]:
    """Every way to a handle, right and wrong; `same` tells whether it is the one given."""
    by_index: Callable[[Any], tuple[str, Any]] = lambda value: ("nvmlDeviceGetHandleByIndex_v2", U32(value))  # noqa: E731
    by_uuid: Callable[[str], tuple[str, Any]] = lambda text: ("nvmlDeviceGetHandleByUUID", text.encode())  # noqa: E731
    by_bus: Callable[[str], tuple[str, Any]] = lambda text: ("nvmlDeviceGetHandleByPciBusId_v2", text.encode())  # noqa: E731
    asked = {
        "index 0": by_index(0), "index 1000": by_index(1000), "index 2**32 - 1": by_index(2**32 - 1),
        "old index 0": ("nvmlDeviceGetHandleByIndex", U32(0)),
        "uuid": by_uuid(uuid), "uuid in capitals": by_uuid(uuid.upper()), "uuid without GPU-": by_uuid(uuid[4:]),
        "uuid cut": by_uuid(uuid[:12]), "another uuid": by_uuid("GPU-00000000-0000-0000-0000-000000000000"),
        "another MIG uuid": by_uuid("MIG-00000000-0000-0000-0000-000000000000"),
        "garbage uuid": by_uuid("hello"), "empty uuid": by_uuid(""),
        "bus id": by_bus(bus_id), "bus id small": by_bus(bus_id.lower()), "bus id short domain": by_bus(bus_id[4:]),
        "bus id without domain": by_bus(bus_id[9:]), "another bus id": by_bus("0000:FE:1F.0"),
        "garbage bus id": by_bus("hello"), "empty bus id": by_bus(""),
        "old bus id": ("nvmlDeviceGetHandleByPciBusId", bus_id.encode()),
    }  # fmt: skip
    found: dict[str, Answer] = {}
    for label, (name, argument) in asked.items():
        handle = HandlePointer()
        code = library.call(name, argument, ctypes.byref(handle))
        found[label] = {"code": code, **({"same": _address(handle) == _address(device)} if code == 0 else {})}
    return found


def _address(handle: Any) -> int | None:
    return ctypes.cast(handle, ctypes.c_void_p).value


def in_forked_child(library: Library) -> dict[str, Answer]:
    """What a few calls say in a child that forked after init, given a null handle.

    Only a child can ask: outside of one a real driver (580) crashes on a null handle.
    """
    null, room = HandlePointer(), ctypes.create_string_buffer(96)
    asked: dict[str, tuple[Any, ...]] = {
        "nvmlDeviceGetPowerUsage": (null, room),
        "nvmlDeviceGetMinorNumber": (null, room),
        "nvmlDeviceGetMemoryInfo": (null, room),
        "nvmlDeviceGetName": (null, room, U32(64)),
    }
    return {name: _in_child(library, name, arguments) for name, arguments in asked.items()}


def _in_child(library: Library, name: str, arguments: tuple[Any, ...]) -> Answer:
    pid = os.fork()
    if pid == 0:
        faulthandler.disable()
        os._exit(library.call(name, *arguments) & 0xFF)
    _, status = os.waitpid(pid, 0)
    return {"signal": os.WTERMSIG(status)} if os.WIFSIGNALED(status) else {"code": os.WEXITSTATUS(status)}


def process_name(library: Library, pid: int) -> Answer:
    """How the library names a process: whether as a path, and the last part of it; cut when room is short."""
    room = ctypes.create_string_buffer(1024)
    code = library.call("nvmlSystemGetProcessName", U32(pid), room, U32(1024))
    text = room.value.decode("utf-8", "backslashreplace")
    short = ctypes.create_string_buffer(4)
    cut = library.call("nvmlSystemGetProcessName", U32(pid), short, U32(4))
    return {"code": code, "path": text.startswith("/"), "last": text.split("/")[-1][:7], "cut": cut}


def error_texts(library: Library) -> dict[str, str]:
    """The library's words for every code, and for two that do not exist."""
    function = library.cdll.nvmlErrorString
    function.restype = ctypes.c_char_p
    codes = (*range(33), 999, 1000)
    return {str(code): (function(code) or b"").decode() for code in codes}


def before_and_after(library: Library) -> Answer:
    """What is said before the first init, after too many shutdowns, and whether inits are counted."""
    count = U32(0)
    text = ctypes.create_string_buffer(80)

    def now() -> Answer:
        return {
            "nvmlDeviceGetCount_v2": library.call("nvmlDeviceGetCount_v2", ctypes.byref(count)),
            "nvmlSystemGetDriverVersion": library.call("nvmlSystemGetDriverVersion", text, U32(80)),
            "nvmlSystemGetNVMLVersion": library.call("nvmlSystemGetNVMLVersion", text, U32(80)),
            "nvmlSystemGetCudaDriverVersion_v2": library.call(
                "nvmlSystemGetCudaDriverVersion_v2", ctypes.byref(count)
            ),
        }

    story: Answer = {"before": now(), "shutdown before": library.call("nvmlShutdown")}
    story["init twice"] = [library.call("nvmlInit_v2"), library.call("nvmlInit_v2")]
    _, first = library.device(0)
    story["inside"] = now()
    story["first shutdown"] = library.call("nvmlShutdown")
    story["still inside"] = now()
    story["second shutdown"] = library.call("nvmlShutdown")
    story["outside"] = now()
    story["handle outside"] = library.call("nvmlDeviceGetPowerUsage", first, ctypes.byref(count))
    story["third shutdown"] = library.call("nvmlShutdown")
    story["other inits"] = [library.call("nvmlInit"), library.call("nvmlInitWithFlags", U32(0))]
    _, second = library.device(0)
    story["same handle after a new init"] = _address(first) == _address(second)
    story["shutdowns"] = [library.call("nvmlShutdown"), library.call("nvmlShutdown")]
    return story
