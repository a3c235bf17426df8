"""C16: the limits of memory that is held in place, of the stack and of open files; and such memory is really given."""

from __future__ import annotations

import os
import resource
from typing import Any

from gpuconsole.probes.payload import environment
from gpuconsole.probes.payload.outcome import FAIL, OK, WARN, Context, Outcome, first_line, size

PINNED_BYTES = 256 << 20
LEAST_STACK_BYTES = 8 << 20
LEAST_FILES = 1024
_INFINIBAND = "/dev/infiniband"
_ULIMITS = "Launch it again with --ulimit memlock=-1 --ulimit stack=67108864."


def run(context: Context) -> Outcome:
    """Read the limits, and pin 256 MiB where CUDA works."""
    value: dict[str, Any] = {
        name: None if soft == resource.RLIM_INFINITY else soft
        for name, soft in (
            ("memlock_bytes", resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]),
            ("stack_bytes", resource.getrlimit(resource.RLIMIT_STACK)[0]),
            ("open_files", resource.getrlimit(resource.RLIMIT_NOFILE)[0]),
        )
    }
    value["pinned_bytes"] = None
    value["infiniband"] = os.path.isdir(_INFINIBAND)
    problem = ""
    gpus = 0
    if context.cuda:
        gpus = int(context.torch.cuda.device_count())
        count = min(PINNED_BYTES, (environment.memory_limit() or PINNED_BYTES * 8) // 8)
        context.report("pins {}".format(size(count)))
        try:
            pinned = context.torch.empty(count, dtype=context.torch.uint8).pin_memory()
            value["pinned_bytes"] = count if pinned.is_pinned() else None
            del pinned
        except RuntimeError as error:
            problem = first_line(error)
    outcome = judge(value, problem=problem, gpus=gpus)
    outcome.value = value
    return outcome


def judge(value: dict[str, Any], *, problem: str, gpus: int) -> Outcome:
    """The outcome for the limits (None is no limit), and the words of the failure when pinning failed.

    A limit on locked memory matters to what registers memory with a network card, so one GPU alone does not need it
    away; CUDA pins memory past that limit.
    """
    memlock, stack, files = value["memlock_bytes"], value["stack_bytes"], value["open_files"]
    if problem:
        return Outcome(FAIL, "memory cannot be pinned: {}".format(problem), _ULIMITS)
    if memlock is not None and (gpus > 1 or value["infiniband"]) and memlock < PINNED_BYTES:
        what = "InfiniBand" if value["infiniband"] else "several GPUs"
        return Outcome(WARN, "only {} may be locked in memory, little for {}".format(size(memlock), what), _ULIMITS)
    if stack is not None and stack < LEAST_STACK_BYTES:
        return Outcome(WARN, "the stack is limited to {}".format(size(stack)), _ULIMITS)
    if files is not None and files < LEAST_FILES:
        why = "only {} files may be open, little for DataLoader workers".format(files)
        return Outcome(WARN, why, "Launch it again with --ulimit nofile=65536.")
    told = "locked memory {}, stack {}, open files {}".format(
        _limit(memlock), _limit(stack), "unlimited" if files is None else files
    )
    pinned = value.get("pinned_bytes")
    return Outcome(OK, told + (", {} pinned".format(size(pinned)) if pinned else ""))


def _limit(count: int | None) -> str:
    return "unlimited" if count is None else size(count)
