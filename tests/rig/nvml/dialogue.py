"""Questions to NVML that take several steps: handles, neighbours, events, init and shutdown, forks."""

from __future__ import annotations

import ctypes
import faulthandler
import os
from collections.abc import Callable
from typing import Any

import pynvml

from tests.rig.nvml.ask import Answer, HandlePointer, Library

U32 = ctypes.c_uint
U64 = ctypes.c_ulonglong


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
            "nvmlSystemGetCudaDriverVersion_v2": library.call("nvmlSystemGetCudaDriverVersion_v2", ctypes.byref(count)),
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
