"""Each call of NVML that is bound here gives what nvidia-ml-py's gives, of every kind of GPU, and fails as it does."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import pynvml
import pytest

from gpuconsole.gpu.nvml import binding
from gpuconsole.gpu.nvml.binding import FUNCTIONS, Binding, NvmlError
from tests.rig.nvml import GIB, GpuProcess, NvmlBox, NvmlState, a100_mig, busy, gb10, h200, rtx4090

ARGUMENTS: dict[str, Sequence[tuple[Any, ...]]] = {
    "nvmlDeviceGetMaxClockInfo": [(0,), (1,), (2,), (99,)],
    "nvmlDeviceGetClockInfo": [(0,), (1,), (2,), (99,)],
    "nvmlDeviceGetTemperature": [(0,), (7,)],
    "nvmlDeviceGetTotalEccErrors": [(0, 0), (0, 1), (1, 0), (1, 1), (9, 0)],
    "nvmlDeviceGetRetiredPages": [(0,), (1,)],
    "nvmlDeviceGetMigDeviceHandleByIndex": [(0,), (2,), (6,)],
    "nvmlDeviceGetFieldValues": [([230],), ([230, 1],)],
}
"""What follows the handle."""
STRUCTURES = (
    (binding.Memory, pynvml.c_nvmlMemory_t),
    (binding.MemoryV2, pynvml.c_nvmlMemory_v2_t),
    (binding.Utilization, pynvml.c_nvmlUtilization_t),
    (binding.PciInfo, pynvml.nvmlPciInfo_t),
    (binding.ProcessInfo, pynvml.c_nvmlProcessInfo_v3_t),
    (binding.ProcessInfo, pynvml.c_nvmlProcessInfo_v2_t),
)


@pytest.mark.parametrize(("ours", "theirs"), STRUCTURES, ids=lambda kind: kind.__name__)
def test_structures_are_laid_out_as_the_header_has_them(ours: Any, theirs: Any) -> None:
    assert ctypes.sizeof(ours) == ctypes.sizeof(theirs)
    for name, *_ in ours._fields_:
        assert getattr(ours, name).offset == getattr(theirs, name).offset, name
        assert getattr(ours, name).size == getattr(theirs, name).size, name


def test_a_field_and_its_number_are_where_the_header_has_them() -> None:
    ours, theirs = binding.FieldValue, pynvml.c_nvmlFieldValue_t
    assert ctypes.sizeof(ours) == ctypes.sizeof(theirs)
    for name in ("fieldId", "scopeId", "timestamp", "latencyUsec", "valueType", "nvmlReturn"):
        assert getattr(ours, name).offset == getattr(theirs, name).offset, name
    assert ours.number.offset == theirs.value.offset
    assert pynvml.nvmlMemory_v2 == binding._MEMORY_V2


def plain(value: Any) -> Any:
    """An answer of either binding in one form."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, ctypes.c_void_p | pynvml.c_nvmlDevice_t):
        return ctypes.cast(value, ctypes.c_void_p).value
    if isinstance(value, binding.ProcessInfo):
        return (value.pid, value.memory_bytes, value.gpuInstanceId, value.computeInstanceId)
    if hasattr(value, "usedGpuMemory"):
        return (value.pid, value.usedGpuMemory, value.gpuInstanceId, value.computeInstanceId)
    if isinstance(value, binding.FieldValue):
        return (value.fieldId, value.nvmlReturn, value.number)
    if isinstance(value, pynvml.c_nvmlFieldValue_t):
        return (value.fieldId, value.nvmlReturn, value.value.uiVal)
    if isinstance(value, ctypes.Structure):
        return tuple(plain(getattr(value, name)) for name, *_ in value._fields_)
    return [plain(each) for each in value] if isinstance(value, list | tuple | ctypes.Array) else value


def ours(bound: Binding, name: str, *arguments: Any) -> Any:
    try:
        return plain(bound.call(name, *arguments))
    except NvmlError as error:
        return f"code {error.code}"


def theirs(name: str, *arguments: Any) -> Any:
    if name == "nvmlDeviceGetMemoryInfo_v2":
        name, arguments = "nvmlDeviceGetMemoryInfo", (*arguments, pynvml.nvmlMemory_v2)
    try:
        return plain(getattr(pynvml, name)(*arguments))
    except pynvml.NVMLError as error:
        return f"code {error.value}"


def compared(bound: Binding) -> int:
    """Compare every call on every GPU and instance there is; how many answers were values."""
    count = bound.call("nvmlDeviceGetCount")
    handles = [bound.call("nvmlDeviceGetHandleByIndex", index) for index in range(count)]
    for parent in tuple(handles):
        for place in range(7):
            try:
                handles.append(bound.call("nvmlDeviceGetMigDeviceHandleByIndex", parent, place))
            except NvmlError:
                continue
    values = 0
    for name in FUNCTIONS:
        if name in ("nvmlInitWithFlags", "nvmlShutdown"):
            continue
        subjects = (
            [()] if name.startswith("nvmlSystem") or name == "nvmlDeviceGetCount" else [(one,) for one in handles]
        )
        if name == "nvmlDeviceGetHandleByIndex":
            subjects = [(0,), (99,)]
        for subject in subjects:
            for more in ARGUMENTS.get(name, [()]):
                # What moves between two questions is asked until it holds still.
                answers = [(ours(bound, name, *subject, *more), theirs(name, *subject, *more)) for _ in range(3)]
                assert any(one == other for one, other in answers), (name, more, answers)
                values += not str(answers[0][0]).startswith("code")
    return values


BOXES = {
    "h200": (busy(h200(0), GpuProcess(1, 40 * GIB), GpuProcess(7, None)), h200(1)),
    "mig": (a100_mig(0),),
    "desktop": (rtx4090(0, used_bytes=17 * GIB),),
    "shared memory": (gb10(),),
}


@pytest.mark.parametrize("kind", BOXES)
def test_every_call_gives_what_nvidia_ml_py_gives(nvml: NvmlBox, kind: str) -> None:
    nvml.write(NvmlState(gpus=BOXES[kind]))
    bound = Binding(binding.load_library())
    bound.call("nvmlInitWithFlags", 0)
    pynvml.nvmlInitWithFlags(0)
    try:
        assert compared(bound) > 30
    finally:
        bound.call("nvmlShutdown")
        pynvml.nvmlShutdown()


def test_errors_come_through(nvml: NvmlBox) -> None:
    bound = Binding(binding.load_library())
    assert ours(bound, "nvmlDeviceGetCount") == "code 1"
    bound.call("nvmlInitWithFlags", 0)
    nvml.write(nvml.state.with_(errors={name: 15 for name in FUNCTIONS if name.startswith("nvmlDeviceGetP")}))
    handle = bound.call("nvmlDeviceGetHandleByIndex", 0)
    assert ours(bound, "nvmlDeviceGetPowerUsage", handle) == theirs("nvmlDeviceGetPowerUsage", handle) == "code 15"
    assert ours(bound, "nvmlDeviceDoesWhatIsNotBound", handle) == "code 13"
    assert bound.code("nvmlShutdown") == 0


def test_the_machines_own_gpus() -> None:
    """On a machine with a driver: every call gives what nvidia-ml-py's gives there."""
    try:
        bound = Binding(binding.load_library())
        bound.call("nvmlInitWithFlags", 0)
    except NvmlError:
        pytest.skip("this machine has no NVIDIA driver")
    pynvml.nvmlInitWithFlags(0)
    assert compared(bound) > 30
