"""The calls of NVML that readings are made of, bound with ctypes: a function's name and arguments in, its value out.

nvidia-ml-py binds all of NVML, and importing it takes longer than all the rest of a ``status``; what is asked here are
forty functions with plain arguments. Tests hold each of them against nvidia-ml-py's answer. Structures are those of
``nvml.h``; text comes as bytes, several values as a tuple.
"""

from __future__ import annotations

import ctypes
from ctypes import byref, c_char, c_int, c_uint, c_ulonglong, c_void_p
from typing import TYPE_CHECKING, Any

from gpuconsole.gpu.nvml.codes import FUNCTION_NOT_FOUND, INSUFFICIENT_SIZE, LIBRARY_NOT_FOUND

if TYPE_CHECKING:
    from collections.abc import Callable

LIBRARY = "libnvidia-ml.so.1"
_UNKNOWN_BYTES = 0xFFFF_FFFF_FFFF_FFFF
"""The library does not know how much."""


class NvmlError(Exception):
    """The library, or that there is none, gave a code instead of a value."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Memory(ctypes.Structure):
    """``nvmlMemory_t``: the driver's own reserve counts as used."""

    _fields_ = (("total", c_ulonglong), ("free", c_ulonglong), ("used", c_ulonglong))


class MemoryV2(ctypes.Structure):
    """``nvmlMemory_v2_t``."""

    _fields_ = (
        ("version", c_uint), ("total", c_ulonglong), ("reserved", c_ulonglong), ("free", c_ulonglong),
        ("used", c_ulonglong),
    )  # fmt: skip


class Utilization(ctypes.Structure):
    """``nvmlUtilization_t``, in percent."""

    _fields_ = (("gpu", c_uint), ("memory", c_uint))


class PciInfo(ctypes.Structure):
    """``nvmlPciInfo_t``."""

    _fields_ = (
        ("busIdLegacy", c_char * 16), ("domain", c_uint), ("bus", c_uint), ("device", c_uint), ("pciDeviceId", c_uint),
        ("pciSubSystemId", c_uint), ("busId", c_char * 32),
    )  # fmt: skip


class ProcessInfo(ctypes.Structure):
    """``nvmlProcessInfo_t``, as versions 2 and 3 of the calls have it."""

    _fields_ = (
        ("pid", c_uint), ("usedGpuMemory", c_ulonglong), ("gpuInstanceId", c_uint), ("computeInstanceId", c_uint),
    )  # fmt: skip

    @property
    def memory_bytes(self) -> int | None:
        """None where the library does not know it."""
        used = int(self.usedGpuMemory)
        return None if used == _UNKNOWN_BYTES else used


class FieldValue(ctypes.Structure):
    """``nvmlFieldValue_t``; ``number`` is its value where that is a whole number of 32 bits."""

    _fields_ = (
        ("fieldId", c_uint), ("scopeId", c_uint), ("timestamp", ctypes.c_longlong), ("latencyUsec", ctypes.c_longlong),
        ("valueType", c_uint), ("nvmlReturn", c_uint), ("number", c_uint), ("_rest", c_uint),
    )  # fmt: skip


_MEMORY_V2 = ctypes.sizeof(MemoryV2) | 2 << 24


def load_library() -> ctypes.CDLL:
    """The driver's library; once loaded, a process keeps it for good.

    Raises:
        NvmlError: There is none.
    """
    try:
        return ctypes.CDLL(LIBRARY)
    except OSError as error:
        raise NvmlError(LIBRARY_NOT_FOUND) from error


class Binding:
    """NVML's functions by name.

    Args:
        library: The loaded library.
    """

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library

    def call(self, function: str, *arguments: Any) -> Any:
        """The value of a function of NVML.

        Raises:
            NvmlError: It gave none.
        """
        if function not in _CALLS:
            raise NvmlError(FUNCTION_NOT_FOUND)
        symbol, take = _CALLS[function]
        return take(self, symbol or function, arguments)

    def code(self, symbol: str, *arguments: Any) -> int:
        """Call a symbol of the library, and give its code.

        Raises:
            NvmlError: This library does not have it.
        """
        try:
            call = getattr(self._library, symbol)
        except AttributeError as error:
            raise NvmlError(FUNCTION_NOT_FOUND) from error
        return int(call(*arguments))

    def checked(self, symbol: str, *arguments: Any) -> None:
        """Call a symbol of the library.

        Raises:
            NvmlError: It did not succeed.
        """
        code = self.code(symbol, *arguments)
        if code:
            raise NvmlError(code)


def _nothing(binding: Binding, symbol: str, arguments: tuple[Any, ...]) -> None:
    binding.checked(symbol, *arguments)


def _numbers(*kinds: type[Any]) -> Callable[[Binding, str, tuple[Any, ...]], Any]:
    """Numbers that the function writes to its last arguments: the one, or all as a tuple."""

    def take(binding: Binding, symbol: str, arguments: tuple[Any, ...]) -> Any:
        places = [kind() for kind in kinds]
        binding.checked(symbol, *arguments, *map(byref, places))
        return places[0].value if len(places) == 1 else tuple(place.value for place in places)

    return take


def _handle(binding: Binding, symbol: str, arguments: tuple[Any, ...]) -> c_void_p:
    handle = c_void_p()
    binding.checked(symbol, *arguments, byref(handle))
    return handle


def _text(binding: Binding, symbol: str, arguments: tuple[Any, ...]) -> bytes:
    buffer = ctypes.create_string_buffer(96)  # the longest that nvml.h has for any of these
    binding.checked(symbol, *arguments, buffer, c_uint(len(buffer)))
    return buffer.value


def _structure(kind: type[ctypes.Structure]) -> Callable[[Binding, str, tuple[Any, ...]], Any]:
    def take(binding: Binding, symbol: str, arguments: tuple[Any, ...]) -> ctypes.Structure:
        place = kind()
        binding.checked(symbol, *arguments, byref(place))
        return place

    return take


def _memory_v2(binding: Binding, symbol: str, arguments: tuple[Any, ...]) -> MemoryV2:
    place = MemoryV2(version=_MEMORY_V2)
    binding.checked(symbol, *arguments, byref(place))
    return place


def _list(kind: type[Any]) -> Callable[[Binding, str, tuple[Any, ...]], list[Any]]:
    """A list whose length the library tells first; room is made for some that come meanwhile."""

    def take(binding: Binding, symbol: str, arguments: tuple[Any, ...]) -> list[Any]:
        count = c_uint(0)
        code = binding.code(symbol, *arguments, byref(count), None)
        if code == 0:
            return []
        if code != INSUFFICIENT_SIZE:
            raise NvmlError(code)
        count = c_uint(count.value * 2 + 5)
        places = (kind * count.value)()
        binding.checked(symbol, *arguments, byref(count), places)
        return list(places[: count.value])

    return take


def _retired_pages(binding: Binding, symbol: str, arguments: tuple[Any, ...]) -> list[int]:
    """Addresses; the first question for their number succeeds in some libraries though there are some."""
    count = c_uint(0)
    code = binding.code(symbol, *arguments, byref(count), None)
    if code not in (0, INSUFFICIENT_SIZE):
        raise NvmlError(code)
    count = c_uint(count.value * 2 + 5)
    places = (c_ulonglong * count.value)()
    binding.checked(symbol, *arguments, byref(count), places)
    return list(places[: count.value])


def _fields(binding: Binding, symbol: str, arguments: tuple[Any, ...]) -> list[FieldValue]:
    handle, numbers = arguments
    places = (FieldValue * len(numbers))(*(FieldValue(fieldId=number) for number in numbers))
    binding.checked(symbol, handle, c_int(len(numbers)), places)
    return list(places)


_NUMBER = ("", _numbers(c_uint))
_PAIR = ("", _numbers(c_uint, c_uint))
_LARGE = ("", _numbers(c_ulonglong))
_TEXT = ("", _text)

_CALLS: dict[str, tuple[str, Callable[[Binding, str, tuple[Any, ...]], Any]]] = {
    "nvmlInitWithFlags": ("", _nothing),
    "nvmlShutdown": ("", _nothing),
    "nvmlSystemGetDriverVersion": _TEXT,
    "nvmlSystemGetNVMLVersion": _TEXT,
    "nvmlSystemGetCudaDriverVersion": ("", _numbers(c_int)),
    "nvmlSystemGetCudaDriverVersion_v2": ("", _numbers(c_int)),
    "nvmlDeviceGetCount": ("nvmlDeviceGetCount_v2", _numbers(c_uint)),
    "nvmlDeviceGetHandleByIndex": ("nvmlDeviceGetHandleByIndex_v2", _handle),
    "nvmlDeviceGetUUID": _TEXT,
    "nvmlDeviceGetName": _TEXT,
    "nvmlDeviceGetPciInfo": ("nvmlDeviceGetPciInfo_v3", _structure(PciInfo)),
    "nvmlDeviceGetCudaComputeCapability": ("", _numbers(c_int, c_int)),
    "nvmlDeviceGetMemoryInfo": ("", _structure(Memory)),
    "nvmlDeviceGetMemoryInfo_v2": ("", _memory_v2),
    "nvmlDeviceGetUtilizationRates": ("", _structure(Utilization)),
    "nvmlDeviceGetEccMode": _PAIR,
    "nvmlDeviceGetMigMode": _PAIR,
    "nvmlDeviceGetRemappedRows": ("", _numbers(c_uint, c_uint, c_uint, c_uint)),
    "nvmlDeviceGetTotalEccErrors": _LARGE,
    "nvmlDeviceGetCurrentClocksEventReasons": _LARGE,
    "nvmlDeviceGetCurrentClocksThrottleReasons": _LARGE,
    "nvmlDeviceGetRetiredPages": ("", _retired_pages),
    "nvmlDeviceGetFieldValues": ("", _fields),
    "nvmlDeviceGetMigDeviceHandleByIndex": ("", _handle),
} | dict.fromkeys(
    (
        "nvmlDeviceGetMinorNumber", "nvmlDeviceGetEnforcedPowerLimit", "nvmlDeviceGetPowerManagementLimit",
        "nvmlDeviceGetPowerManagementDefaultLimit", "nvmlDeviceGetMaxClockInfo", "nvmlDeviceGetClockInfo",
        "nvmlDeviceGetCurrPcieLinkGeneration", "nvmlDeviceGetCurrPcieLinkWidth", "nvmlDeviceGetMaxPcieLinkGeneration",
        "nvmlDeviceGetMaxPcieLinkWidth", "nvmlDeviceGetComputeMode", "nvmlDeviceGetPersistenceMode",
        "nvmlDeviceGetVirtualizationMode", "nvmlDeviceGetRetiredPagesPendingStatus", "nvmlDeviceGetMaxMigDeviceCount",
        "nvmlDeviceGetGpuInstanceId", "nvmlDeviceGetComputeInstanceId", "nvmlDeviceGetTemperature",
        "nvmlDeviceGetPowerUsage", "nvmlDeviceGetPerformanceState", "nvmlDeviceGetFanSpeed",
    ),
    _NUMBER,
) | {
    f"nvmlDeviceGet{kind}RunningProcesses{version}": (
        f"nvmlDeviceGet{kind}RunningProcesses{version}", _list(ProcessInfo)
    )
    for kind in ("Compute", "Graphics", "MPSCompute")
    for version in ("_v2", "_v3")
}  # fmt: skip

FUNCTIONS = tuple(_CALLS)
"""What can be called."""
