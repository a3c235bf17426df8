"""C19: memory of the host: what the container may use of it, what is free, and whether it ran out already."""

from __future__ import annotations

import re
from typing import Any

from gpuconsole.probes.payload import environment
from gpuconsole.probes.payload.outcome import OK, SKIP, WARN, Context, Outcome, size

LOW_BYTES = 2 << 30
_EVENTS = ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control")
_USED = ("/sys/fs/cgroup/memory.current", "/sys/fs/cgroup/memory/memory.usage_in_bytes")


def run(context: Context) -> Outcome:
    """Read the machine's figures and the container's limit, and compare them with the GPUs."""
    total, limit = environment.memory_total(), environment.memory_limit()
    meminfo = environment.read("/proc/meminfo") or ""
    value: dict[str, Any] = {
        "total_bytes": total,
        "limit_bytes": limit,
        "available_bytes": now_available(),
        "swap_total_bytes": of_meminfo(meminfo, "SwapTotal"),
        "swap_free_bytes": of_meminfo(meminfo, "SwapFree"),
        "oom_kills": oom_kills(next((text for text in map(environment.read, _EVENTS) if text), "")),
        "gpu_bytes": _largest_gpu(context),
    }
    outcome = judge(value)
    outcome.value = value
    return outcome


def now_available() -> int | None:
    """What may still be allocated now."""
    used = next((text for text in map(environment.read, _USED) if text is not None), "").strip()
    meminfo = environment.read("/proc/meminfo") or ""
    return available(meminfo, environment.memory_limit(), int(used) if used.isdigit() else None)


def of_meminfo(text: str, name: str) -> int | None:
    """Bytes of one line of ``/proc/meminfo``."""
    match = re.search(r"^{}:\s+(\d+) kB".format(name), text, re.MULTILINE)
    return int(match.group(1)) * 1024 if match else None


def available(meminfo: str, limit: int | None, used: int | None) -> int | None:
    """What may still be allocated: the machine's or the container's rest, whichever is less.

    The pages of files that the container has read count as used there, so its rest is at least what is told.
    """
    rest = of_meminfo(meminfo, "MemAvailable")
    if limit is None or used is None:
        return rest
    inside = max(0, limit - used)
    return inside if rest is None else min(rest, inside)


def oom_kills(text: str) -> int | None:
    """How many processes of the cgroup were killed for lack of memory; None where it is not told."""
    match = re.search(r"^oom_kill (\d+)", text, re.MULTILINE)
    return int(match.group(1)) if match else None


def _largest_gpu(context: Context) -> int | None:
    if context.cuda:
        cuda = context.torch.cuda
        return max(int(cuda.get_device_properties(position).total_memory) for position in range(cuda.device_count()))
    return max((one.total_bytes for one in context.asked or [] if one.total_bytes), default=None)


def judge(value: dict[str, Any]) -> Outcome:
    """The outcome for the figures."""
    total, limit, rest = value["total_bytes"], value["limit_bytes"], value["available_bytes"]
    if total is None and limit is None:
        return Outcome(SKIP, "how much memory there is cannot be told")
    allowed = min(count for count in (total, limit) if count is not None)
    limited = limit is not None and limit == allowed
    if value["oom_kills"]:
        why = "{} killed for lack of memory in this container".format(
            "1 process was" if value["oom_kills"] == 1 else "{} processes were".format(value["oom_kills"])
        )
        return Outcome(WARN, why, "Raise its memory limit (--memory), or use fewer or smaller DataLoader workers.")
    if rest is not None and rest < LOW_BYTES:
        fix = "Raise the container's memory limit, or end what fills it." if limited else "End what fills the memory."
        return Outcome(WARN, "only {} of memory are left".format(size(rest)), fix)
    if value["gpu_bytes"] is not None and allowed < value["gpu_bytes"]:
        why = "{} of memory{}, less than the {} of one GPU: a full checkpoint does not fit in it".format(
            size(allowed), " are allowed" if limited else "", size(value["gpu_bytes"])
        )
        fix = "Launch it with a higher --memory." if limited else "Save and load checkpoints in parts."
        return Outcome(WARN, why, fix)
    swap = value["swap_total_bytes"]
    told = "{} of memory{}".format(size(allowed), " allowed" if limited else "")
    if rest is not None:
        told += ", {} free".format(size(rest))
    return Outcome(OK, told + (", no swap" if not swap else ""))
