"""libcuda asked directly: whether the driver starts, with which code it does not, and which GPUs it shows.

torch tells only that there is no CUDA; the driver's own answer names the cause.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from typing import Any

_LIBRARY = "libcuda.so.1"
_MOST_DEVICES = 64


def ask() -> dict[str, Any]:
    """The driver's answers, in this process.

    ``library`` says whether libcuda was found (``error`` has the loader's words), ``init`` is the code of ``cuInit``
    (0 is good), ``version`` the CUDA version it offers (12040 is 12.4), ``uuids`` the GPUs in CUDA's order, and
    ``bus_ids`` their places, ``0000:06:00.0``.
    """
    answer: dict[str, Any] = {"library": False, "init": None, "version": None, "uuids": [], "bus_ids": [], "error": ""}
    try:
        cuda = ctypes.CDLL(_LIBRARY)
    except OSError as error:
        answer["error"] = str(error)
        return answer
    answer["library"] = True
    number = ctypes.c_int()
    if cuda.cuDriverGetVersion(ctypes.byref(number)) == 0:
        answer["version"] = number.value
    answer["init"] = cuda.cuInit(0)
    answer["path"] = path_of_library()
    if answer["init"] == 0 and cuda.cuDeviceGetCount(ctypes.byref(number)) == 0:
        positions = range(min(number.value, _MOST_DEVICES))
        answer["uuids"] = [_uuid(cuda, position) for position in positions]
        answer["bus_ids"] = [_bus_id(cuda, position) for position in positions]
    return answer


def _uuid(cuda: Any, position: int) -> str | None:
    """UUID of the GPU at ``position``; of the MIG instance where it is one and the driver can tell."""
    device, raw = ctypes.c_int(), (ctypes.c_ubyte * 16)()
    if cuda.cuDeviceGet(ctypes.byref(device), position) != 0:
        return None
    call = getattr(cuda, "cuDeviceGetUuid_v2", None) or getattr(cuda, "cuDeviceGetUuid", None)
    if call is None or call(ctypes.byref(raw), device) != 0:
        return None
    text = bytes(raw).hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def _bus_id(cuda: Any, position: int) -> str | None:
    """Where the GPU at ``position`` sits."""
    device, text = ctypes.c_int(), ctypes.create_string_buffer(32)
    call = getattr(cuda, "cuDeviceGetPCIBusId", None)
    if call is None or cuda.cuDeviceGet(ctypes.byref(device), position) != 0 or call(text, len(text), device) != 0:
        return None
    return text.value.decode("ascii", "replace").lower()


def path_of_library() -> str | None:
    """The file libcuda was loaded from, as this process maps it."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
            for line in maps:
                path = line.split(None, 5)[-1].strip()
                if os.path.basename(path).startswith("libcuda.so"):
                    return path
    except OSError:
        pass
    return None


def ask_apart(archive: str, *, without: tuple[str, ...] = (), timeout_s: float = 20.0) -> dict[str, Any] | None:
    """:func:`ask` in a process of its own, in an environment without the variables ``without``.

    Returns None when it gave no answer: it hung or died.
    """
    environment = {name: value for name, value in os.environ.items() if name not in without}
    try:
        done = subprocess.run(
            [sys.executable, "-S", archive, "driver"],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=timeout_s,
            check=False,
        )
        answer = json.loads(done.stdout.decode("utf-8", "replace"))
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    return answer if isinstance(answer, dict) else None
