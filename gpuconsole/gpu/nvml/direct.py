"""The calls of NVML that a snapshot asks, bound with ctypes in the place of nvidia-ml-py.

nvidia-ml-py binds all of NVML, and importing it takes longer than all the rest of a ``status``, so a single look goes
through this. Names, arguments, answers and errors are those of nvidia-ml-py, except that text stays bytes; the reader
is one for both. Structures are those of ``nvml.h``. Tests and ``tests/gpu/compare_nvml.py`` hold every call against
nvidia-ml-py, on simulated drivers and on a real one.
"""

from __future__ import annotations

import ctypes
from ctypes import byref, c_char, c_int, c_longlong, c_uint, c_ulonglong, c_void_p

from gpuconsole.gpu.nvml.codes import FUNCTION_NOT_FOUND, INSUFFICIENT_SIZE, LIBRARY_NOT_FOUND, UNINITIALIZED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

LIBRARY = "libnvidia-ml.so.1"
_TEXT_SIZE = 96
"""The longest that ``nvml.h`` has for any of the texts asked here."""
_UNKNOWN_BYTES = 0xFFFF_FFFF_FFFF_FFFF
"""The library does not know how much."""


class NvmlError(Exception):
    """The library, or that there is none, gave a code instead of a value."""

    def __init__(self, value: int) -> None:
        super().__init__(value)
        self.value = value


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
        ("pid", c_uint), ("_used", c_ulonglong), ("gpuInstanceId", c_uint), ("computeInstanceId", c_uint),
    )  # fmt: skip

    @property
    def usedGpuMemory(self) -> int | None:
        """Bytes; None where the library does not know them."""
        used: int = self._used
        return None if used == _UNKNOWN_BYTES else used


class Value(ctypes.Union):
    """``nvmlValue_t``, of which whole numbers are read here."""

    _fields_ = (("uiVal", c_uint), ("ullVal", c_ulonglong))


class FieldValue(ctypes.Structure):
    """``nvmlFieldValue_t``."""

    _fields_ = (
        ("fieldId", c_uint), ("scopeId", c_uint), ("timestamp", c_longlong), ("latencyUsec", c_longlong),
        ("valueType", c_uint), ("nvmlReturn", c_uint), ("value", Value),
    )  # fmt: skip


class Direct:
    """NVML with the names of nvidia-ml-py; what is not bound here is no attribute of it."""

    NVMLError = NvmlError
    nvmlMemory_v2 = ctypes.sizeof(MemoryV2) | 2 << 24

    def __init__(self) -> None:
        self._library: ctypes.CDLL | None = None

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """The function of NVML that is called so."""
        form = _FORMS.get(name)
        if form is None:
            raise AttributeError(name)
        symbol, take = form

        def call(*arguments: Any) -> Any:
            return take(self, symbol or name, arguments)

        setattr(self, name, call)
        return call

    def nvmlInitWithFlags(self, flags: int) -> None:
        """Load the library unless it is loaded, and start it. Once loaded, a process keeps it.

        Raises:
            NvmlError: There is none, or it does not start.
        """
        if self._library is None:
            try:
                self._library = ctypes.CDLL(LIBRARY)
            except OSError as error:
                raise NvmlError(LIBRARY_NOT_FOUND) from error
        self.checked("nvmlInitWithFlags", flags)

    def code(self, symbol: str, *arguments: Any) -> int:
        """Call a symbol of the library, and give its code.

        Raises:
            NvmlError: This library does not have it, or none is loaded.
        """
        if self._library is None:
            raise NvmlError(UNINITIALIZED)
        try:
            function = getattr(self._library, symbol)
        except AttributeError as error:
            raise NvmlError(FUNCTION_NOT_FOUND) from error
        code: int = function(*arguments)
        return code

    def checked(self, symbol: str, *arguments: Any) -> None:
        """Call a symbol of the library.

        Raises:
            NvmlError: It did not succeed.
        """
        code = self.code(symbol, *arguments)
        if code:
            raise NvmlError(code)


# How an answer is taken: each is given the binding, the symbol and what the caller passed.


def _nothing(nvml: Direct, symbol: str, arguments: tuple[Any, ...]) -> None:
    nvml.checked(symbol, *arguments)


def _numbers(*kinds: type[Any]) -> Callable[[Direct, str, tuple[Any, ...]], Any]:
    """Numbers that the function writes to its last arguments: the one, or all as a tuple."""

    def take(nvml: Direct, symbol: str, arguments: tuple[Any, ...]) -> Any:
        places = [kind() for kind in kinds]
        nvml.checked(symbol, *arguments, *map(byref, places))
        return places[0].value if len(places) == 1 else tuple(place.value for place in places)

    return take


def _handle(nvml: Direct, symbol: str, arguments: tuple[Any, ...]) -> c_void_p:
    handle = c_void_p()
    nvml.checked(symbol, *arguments, byref(handle))
    return handle


def _text(nvml: Direct, symbol: str, arguments: tuple[Any, ...]) -> bytes:
    buffer = ctypes.create_string_buffer(_TEXT_SIZE)
    nvml.checked(symbol, *arguments, buffer, c_uint(_TEXT_SIZE))
    return buffer.value


def _structure(kind: type[ctypes.Structure]) -> Callable[[Direct, str, tuple[Any, ...]], Any]:
    def take(nvml: Direct, symbol: str, arguments: tuple[Any, ...]) -> ctypes.Structure:
        place = kind()
        nvml.checked(symbol, *arguments, byref(place))
        return place

    return take


def _memory(nvml: Direct, symbol: str, arguments: tuple[Any, ...]) -> Memory | MemoryV2:
    """By the first way of counting, or by that whose version is given after the handle."""
    handle, *version = arguments
    place = MemoryV2(version=version[0]) if version else Memory()
    nvml.checked(f"{symbol}_v2" if version else symbol, handle, byref(place))
    return place


def _processes(nvml: Direct, symbol: str, arguments: tuple[Any, ...]) -> list[ProcessInfo]:
    """A list whose length the library tells first; room is made for some that come meanwhile."""
    count = c_uint(0)
    code = nvml.code(symbol, *arguments, byref(count), None)
    if code == 0:
        return []
    if code != INSUFFICIENT_SIZE:
        raise NvmlError(code)
    return _filled(ProcessInfo, count, nvml, symbol, arguments)


def _retired_pages(nvml: Direct, symbol: str, arguments: tuple[Any, ...]) -> list[int]:
    """Addresses; the first question, for their number, may succeed though there are some."""
    count = c_uint(0)
    code = nvml.code(symbol, *arguments, byref(count), None)
    if code not in (0, INSUFFICIENT_SIZE):
        raise NvmlError(code)
    return _filled(c_ulonglong, count, nvml, symbol, arguments)


def _filled(kind: type[Any], count: c_uint, nvml: Direct, symbol: str, arguments: tuple[Any, ...]) -> list[Any]:
    count.value = count.value * 2 + 5
    places = (kind * count.value)()
    nvml.checked(symbol, *arguments, byref(count), places)
    return list(places[: count.value])


def _fields(nvml: Direct, symbol: str, arguments: tuple[Any, ...]) -> list[FieldValue]:
    handle, numbers = arguments
    places = (FieldValue * len(numbers))(*(FieldValue(fieldId=number) for number in numbers))
    nvml.checked(symbol, handle, c_int(len(numbers)), places)
    return list(places)


_NUMBER = ("", _numbers(c_uint))
_LARGE = ("", _numbers(c_ulonglong))
_SIGNED = ("", _numbers(c_int))
_PAIR = ("", _numbers(c_uint, c_uint))
_TEXT = ("", _text)

_FORMS: dict[str, tuple[str, Callable[[Direct, str, tuple[Any, ...]], Any]]] = {
    "nvmlShutdown": ("", _nothing),
    "nvmlSystemGetDriverVersion": _TEXT,
    "nvmlSystemGetNVMLVersion": _TEXT,
    "nvmlSystemGetCudaDriverVersion": _SIGNED,
    "nvmlSystemGetCudaDriverVersion_v2": _SIGNED,
    "nvmlDeviceGetCount": ("nvmlDeviceGetCount_v2", _numbers(c_uint)),
    "nvmlDeviceGetHandleByIndex": ("nvmlDeviceGetHandleByIndex_v2", _handle),
    "nvmlDeviceGetUUID": _TEXT,
    "nvmlDeviceGetName": _TEXT,
    "nvmlDeviceGetPciInfo": ("nvmlDeviceGetPciInfo_v3", _structure(PciInfo)),
    "nvmlDeviceGetCudaComputeCapability": ("", _numbers(c_int, c_int)),
    "nvmlDeviceGetMemoryInfo": ("", _memory),
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
    "nvmlDeviceGetMinorNumber": _NUMBER,
    "nvmlDeviceGetEnforcedPowerLimit": _NUMBER,
    "nvmlDeviceGetPowerManagementLimit": _NUMBER,
    "nvmlDeviceGetPowerManagementDefaultLimit": _NUMBER,
    "nvmlDeviceGetMaxClockInfo": _NUMBER,
    "nvmlDeviceGetClockInfo": _NUMBER,
    "nvmlDeviceGetCurrPcieLinkGeneration": _NUMBER,
    "nvmlDeviceGetCurrPcieLinkWidth": _NUMBER,
    "nvmlDeviceGetMaxPcieLinkGeneration": _NUMBER,
    "nvmlDeviceGetMaxPcieLinkWidth": _NUMBER,
    "nvmlDeviceGetComputeMode": _NUMBER,
    "nvmlDeviceGetPersistenceMode": _NUMBER,
    "nvmlDeviceGetVirtualizationMode": _NUMBER,
    "nvmlDeviceGetRetiredPagesPendingStatus": _NUMBER,
    "nvmlDeviceGetMaxMigDeviceCount": _NUMBER,
    "nvmlDeviceGetGpuInstanceId": _NUMBER,
    "nvmlDeviceGetComputeInstanceId": _NUMBER,
    "nvmlDeviceGetTemperature": _NUMBER,
    "nvmlDeviceGetPowerUsage": _NUMBER,
    "nvmlDeviceGetPerformanceState": _NUMBER,
    "nvmlDeviceGetFanSpeed": _NUMBER,
}
for _kind in ("Compute", "Graphics", "MPSCompute"):
    for _version, _symbol in (("", "_v3"), ("_v2", "_v2"), ("_v3", "_v3")):
        _FORMS[f"nvmlDeviceGet{_kind}RunningProcesses{_version}"] = (
            f"nvmlDeviceGet{_kind}RunningProcesses{_symbol}", _processes
        )  # fmt: skip

FUNCTIONS = ("nvmlInitWithFlags", *_FORMS)
"""What is bound."""
