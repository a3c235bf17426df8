"""C17: the memory of the GPUs is free, and who holds what is not."""

from __future__ import annotations

from typing import Any

from gpuconsole.probes.payload import libcuda
from gpuconsole.probes.payload.outcome import OK, WARN, Asked, Context, Outcome, first_line, same_gpu, size

_FREE_SHARE = 0.9
_OWN_BYTES = 1 << 30
"""What this check's own CUDA context may take, where only torch can be asked."""


def run(context: Context) -> Outcome:
    """Read free and total of each GPU; what the host saw before the check began counts more."""
    torch = context.torch
    uuids = libcuda.ask()["uuids"]
    readings = []
    for position in range(int(torch.cuda.device_count())):
        uuid = uuids[position] if position < len(uuids) else None
        reading: dict[str, Any] = {"gpu": context.label(uuid, position), "uuid": uuid, "holders": []}
        try:
            reading["free_bytes"], reading["total_bytes"] = torch.cuda.mem_get_info(position)
        except RuntimeError as error:
            reading["error"] = first_line(error)
        for one in context.asked or []:
            if uuid and same_gpu(one.uuid, uuid):
                add_host(reading, one)
        readings.append(reading)
    outcome = judge(readings)
    outcome.value = {"gpus": readings}
    return outcome


def add_host(reading: dict[str, Any], one: Asked) -> None:
    """Add what the host saw of the GPU before the check."""
    reading["used_before_bytes"], reading["holders"] = one.used_bytes, one.holders
    if one.total_bytes:
        reading["total_bytes"] = one.total_bytes


def judge(readings: list[dict[str, Any]]) -> Outcome:
    """The outcome for the readings of all GPUs."""
    tight = []
    for reading in readings:
        if "error" in reading:
            # Starting CUDA there failed, nearly always because the memory is full.
            tight.append("{}: {}".format(reading["gpu"], reading["error"]))
            continue
        total, used = reading["total_bytes"], reading.get("used_before_bytes")
        allowance = 0
        if used is None:
            used, allowance = total - reading["free_bytes"], _OWN_BYTES
        reading["used_bytes"] = used
        if used > total * (1 - _FREE_SHARE) and used > allowance:
            held = ", held by {}".format(", ".join(reading["holders"][:3])) if reading["holders"] else ""
            tight.append("{}: {} of {} are in use{}".format(reading["gpu"], size(used), size(total), held))
    if tight:
        return Outcome(WARN, "; ".join(tight), "End what holds it, or take another GPU: gpuconsole status shows them.")
    least = min((reading["total_bytes"] - reading["used_bytes"] for reading in readings), default=0)
    return Outcome(OK, "{} free{}".format(size(least), "" if len(readings) == 1 else " or more on each GPU"))
