"""Why a container is gone: which memory was over, who ended it, or how its program failed; and what to do.

Pure rules over its last state, its last lines and what the host knows. The first that fits is the cause, so what is
certain comes before what is likely.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from gpuconsole.core.text import duration, size
from gpuconsole.diagnose.oomtext import CudaOom, find_cuda_oom

_SHM = re.compile(
    r"bus error|out of shared memory|insufficient shared memory|unable to write to file </torch_|"
    r"/dev/shm.*No space left on device|No space left on device.*(?:/dev/shm|torch_|nccl-)",
    re.IGNORECASE,
)
_WORKER_KILLED = re.compile(
    r"DataLoader worker \(pid(?:\(s\))? [\d, ]+\).*(?:killed by signal: Killed|exited unexpect)"
)
_HOST_OOM = re.compile(r"Out of memory: Killed process", re.IGNORECASE)
_REFUSED = re.compile(r"Cannot allocate memory|(?<!OutOf)MemoryError\b|std::bad_alloc|DefaultCPUAllocator: .*allocate")
"""A program was not given memory: nobody ended it for that."""
_DISK = re.compile(r"No space left on device", re.IGNORECASE)
_NOTABLE = 0.1
"""Share of the GPU from which memory counts: reserved and unused, or held by others."""
REMOVED = "removed"
"""The cause of what was removed while it ran."""
_KILLED, _BUS, _LOST = 137, 135, 255


class Memory(StrEnum):
    """Which memory was over."""

    GPU = "gpu"
    CONTAINER = "container"
    HOST = "host"
    SHM = "shm"


@dataclass(frozen=True, slots=True)
class Death:
    """What is known of a container that has ended. What is not known is None."""

    exit_code: int | None = None
    oom_killed: bool = False
    """The engine saw its memory limit reached."""
    memory_limit_bytes: int | None = None
    shm_bytes: int | None = None
    private_shm: bool = True
    """Its ``/dev/shm`` is its own."""
    lines: tuple[str, ...] = ()
    """The last it wrote, harmless."""
    allocator: str = ""
    """``PYTORCH_CUDA_ALLOC_CONF`` or ``PYTORCH_ALLOC_CONF`` inside."""
    asked_to_stop: bool | None = None
    """Somebody stopped or killed it by the engine."""
    killed_at_once: bool = False
    """By SIGKILL alone, without the time that a stop gives."""
    removed_running: bool = False
    """It was killed in order to be removed."""
    engine_restarted: bool = False
    """It ended with the engine, or with the machine."""
    engine_began_later_s: float | None = None
    """So long after its end the engine began anew; None when it did not, or that is not known."""
    kernel_killed: bool | None = None
    """The kernel's log says that it ended a process of it because the machine's memory was over."""
    gpu_peak_bytes: int | None = None
    """The most that was seen of it on the GPU."""


@dataclass(frozen=True, slots=True)
class Cause:
    """Why it is gone."""

    slug: str
    """``cuda-out-of-memory``."""
    sentence: str
    advice: tuple[str, ...] = ()
    """What to do, the likeliest to help first."""
    memory: Memory | None = None
    code: str | None = None
    """Of the failure in our catalogue."""
    oom: CudaOom | None = None


def explain(death: Death) -> Cause | None:
    """Why it is gone; None when it ended well or nothing tells."""
    for rule in _RULES:
        if (cause := rule(death)) is not None:
            return cause
    return None


def _gpu(death: Death) -> Cause | None:
    oom = find_cuda_oom(death.lines)
    if oom is None or death.exit_code == 0:
        return None
    if oom.absurd:
        told = "It asked for more than an exabyte of GPU memory: a size in the program is wrong, memory is not short."
        return Cause(
            "absurd-allocation", told, ("Look at the shapes where the traceback points.",), Memory.GPU, "P11", oom
        )
    return Cause("cuda-out-of-memory", _gpu_sentence(oom), _gpu_advice(oom, death), Memory.GPU, _gpu_code(oom), oom)


def _gpu_sentence(oom: CudaOom) -> str:
    where = "" if oom.gpu is None else f" of its GPU {oom.gpu}"
    parts = [f"GPU memory{where} was over"]
    if oom.asked_bytes is not None:
        parts.append(f"it asked for {size(oom.asked_bytes)}")
    if oom.free_bytes is not None:
        total = f" of {size(oom.total_bytes)}" if oom.total_bytes is not None else ""
        parts.append(f"{size(oom.free_bytes)}{total} were free")
    if oom.unallocated_bytes:
        parts.append(f"{size(oom.unallocated_bytes)} were reserved by PyTorch and unused")
    if oom.others:
        held = ", ".join(f"{size(amount)} by pid {pid}" for pid, amount in oom.others[:3])
        parts.append(f"others held {size(oom.others_bytes)} ({held})")
    return f"{parts[0]}: {', '.join(parts[1:])}." if len(parts) > 1 else f"{parts[0]}."


def _fragmented(oom: CudaOom) -> bool:
    if oom.unallocated_bytes is None:
        return False
    enough = oom.asked_bytes is not None and oom.unallocated_bytes >= oom.asked_bytes
    return enough or (oom.total_bytes is not None and oom.unallocated_bytes > _NOTABLE * oom.total_bytes)


def _shared(oom: CudaOom) -> bool:
    others = oom.others_bytes
    if not others and oom.total_bytes is not None and oom.own_bytes is not None and oom.free_bytes is not None:
        others = oom.total_bytes - oom.own_bytes - oom.free_bytes
    if oom.total_bytes is not None:
        return others > _NOTABLE * oom.total_bytes
    return others > 0


def _gpu_code(oom: CudaOom) -> str:
    return "P13" if _shared(oom) else "P12" if _fragmented(oom) else "P11"


def _gpu_advice(oom: CudaOom, death: Death) -> tuple[str, ...]:
    room = oom.allowed_bytes or oom.total_bytes
    if oom.asked_bytes is not None and room is not None and oom.asked_bytes > room:
        return ("One request is larger than the whole GPU: no batch size of this shape fits; split the tensor.",)
    advice = []
    if _shared(oom):
        advice.append("Take a GPU that nobody else holds, or wait for it: 'gpuconsole status' shows who is there.")
    if _fragmented(oom) and "expandable_segments:true" not in death.allocator.lower().replace(" ", ""):
        advice.append("Much is reserved and unused: set -e PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.")
    if oom.allowed_bytes is not None and oom.total_bytes is not None and oom.allowed_bytes < oom.total_bytes:
        advice.append(f"The program allows itself {size(oom.allowed_bytes)}: set_per_process_memory_fraction is lower.")
    if oom.private_bytes and oom.total_bytes and oom.private_bytes > _NOTABLE * oom.total_bytes:
        advice.append("CUDA graphs keep much in pools of their own: capture fewer shapes.")
    advice.append("Make the batch smaller and accumulate gradients, or turn on activation checkpointing.")
    return tuple(advice)


def _shm(death: Death) -> Cause | None:
    told = next((line for line in reversed(death.lines) if _SHM.search(line)), None)
    if told is None and death.exit_code != _BUS:
        return None
    if death.exit_code == 0 or (not death.private_shm and told is None):
        return None
    how_much = f" of {size(death.shm_bytes)}" if death.shm_bytes is not None and death.private_shm else ""
    full = f"hared memory (/dev/shm){how_much} was full: DataLoader workers and NCCL pass data through it."
    return Cause(
        "shm-full",
        f"S{full}" if told is not None else f"It ended by a bus error, most likely because s{full}",
        (
            f"Launch it again with a larger one: --shm-size {_more_shm(death.shm_bytes)}.",
            "Until then fewer workers and smaller batches fit.",
        ),
        Memory.SHM,
        "L08",
    )


def _more_shm(now: int | None) -> str:
    gib = max(8, 2 * (now or 0) // 2**30)
    return f"{gib}g"


def _container(death: Death) -> Cause | None:
    worker = any(_WORKER_KILLED.search(line) for line in death.lines)
    if not death.oom_killed or death.exit_code == 0 or (death.exit_code not in (None, _KILLED) and not worker):
        return None
    limit = f" of {size(death.memory_limit_bytes)}" if death.memory_limit_bytes else ""
    who = "A DataLoader worker was" if worker and death.exit_code != _KILLED else "It was"
    return Cause(
        "container-out-of-memory",
        f"{who} killed because the container reached its memory limit{limit}; GPU memory has nothing to do with it.",
        ("Give it more by --memory, or none at all.", "Use fewer DataLoader workers, or a smaller cache of the data."),
        Memory.CONTAINER,
        "L13",
    )


def _host(death: Death) -> Cause | None:
    worker = any(_WORKER_KILLED.search(line) for line in death.lines)
    said = any(_HOST_OOM.search(line) for line in death.lines)
    refused = any(_REFUSED.search(line) for line in death.lines)
    if death.exit_code == 0 or not (death.kernel_killed or said or refused or (worker and not death.asked_to_stop)):
        return None
    if death.kernel_killed or said:
        told = "The machine's memory was over, and the kernel ended a process of it."
    elif refused:
        told = "It asked for memory (RAM, not the GPU's) and got none: too little was left, or the size is wrong."
    else:
        told = "A DataLoader worker was killed from outside, most likely because the machine's memory was over."
    return Cause(
        "host-out-of-memory",
        told,
        (
            "Use fewer DataLoader workers, or a smaller cache of the data.",
            "Set --memory, so that no other work is hit.",
        ),
        Memory.HOST,
        "L13",
    )


def _restarted(death: Death) -> Cause | None:
    if not death.engine_restarted or death.exit_code == 0:
        return None
    if death.exit_code == _LOST:
        told = "The engine or the machine was restarted while it ran, and nobody saw how it ended."
    else:
        told = "The engine or the machine was restarted, and the container ended with it."
    return Cause("engine-restarted", told, ("Start it again; --restart unless-stopped does so by itself.",))


def _stopped(death: Death) -> Cause | None:
    if death.exit_code not in (130, _KILLED, 143) or death.asked_to_stop is False:
        return None
    if death.removed_running:
        return Cause(REMOVED, "It was removed by force while it ran.")
    if death.killed_at_once:
        told = "It was killed at once by the engine, as by 'docker kill' or 'docker rm --force'."
        return Cause("stopped", told)
    if death.asked_to_stop:
        hard = " It did not end by itself in time." if death.exit_code == _KILLED else ""
        return Cause("stopped", f"It was stopped.{hard}")
    if death.engine_began_later_s is not None:
        kernel = ", by the kernel short of memory," if death.exit_code == _KILLED else ""
        return Cause(
            "stopped-or-engine-restarted",
            f"It was ended from outside: by hand{kernel} or because the engine or the machine was stopped. The engine "
            f"began anew {duration(death.engine_began_later_s)} later, and knows nothing of before.",
            ("Look at 'last -x' and 'journalctl -u docker' for a restart at that time.",),
        )
    if death.exit_code == _KILLED:
        told = (
            "It was killed (SIGKILL): by hand, by a stop whose time was over, or because the machine's memory was over."
        )
        return Cause("killed", told, ("Look at 'journalctl -k | grep -i \"killed process\"' for the last of these.",),
                     code="L13")  # fmt: skip
    return Cause("stopped", "It was stopped from outside.")


def _disk(death: Death) -> Cause | None:
    if death.exit_code == 0 or not any(_DISK.search(line) for line in death.lines):
        return None
    told = "A disk was full while it wrote."
    return Cause(
        "disk-full", told, ("Make room, 'gpuconsole image prune' for one, or mount a folder with more.",), code="I06"
    )


def _crashed(death: Death) -> Cause | None:
    words = {
        134: ("aborted", "It aborted itself (SIGABRT): a failed assertion, a C++ exception or NCCL's watchdog."),
        139: ("crashed", "It crashed (SIGSEGV): most often libraries that do not belong together."),
        126: ("not-executable", "Its command may not be executed."),
        127: ("no-command", "Its command is not in the image."),
        _LOST: ("lost", "It returned -1, or the engine or the machine ended under it."),
    }
    found = words.get(death.exit_code or 0)
    return None if found is None else Cause(*found)


_RULES: tuple[Callable[[Death], Cause | None], ...] = (
    _gpu, _shm, _container, _host, _disk, _restarted, _stopped, _crashed,
)  # fmt: skip
