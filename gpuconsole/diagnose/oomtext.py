"""What PyTorch says when GPU memory is over, in all the forms it has had since 1.13, as numbers.

The index of the GPU is the container's own, and pids are the host's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_UNITS = {"bytes": 1, "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40, "pib": 2**50}
_SIZE = r"(\d+(?:\.\d+)?)\s*(bytes|[KMGTP]iB)"
_BEGIN = re.compile(r"(?:CUDA out of memory|HIP out of memory)\.|Tried to allocate " + _SIZE, re.IGNORECASE)
_ASKED = re.compile(r"Tried to allocate " + _SIZE, re.IGNORECASE)
_ABSURD = re.compile(r"Tried to allocate more than 1EB", re.IGNORECASE)
_GPU = re.compile(r"\bGPU (\d{1,3})\b")
_TOTAL = re.compile(r"total capac(?:i)?ty of " + _SIZE + "|" + _SIZE + r" total capac(?:i)?ty", re.IGNORECASE)
_FREE = re.compile(r"of which " + _SIZE + r" is free|" + _SIZE + r" free\b", re.IGNORECASE)
_ALLOCATED = re.compile(_SIZE + r" (?:is allocated by PyTorch|already allocated)", re.IGNORECASE)
_RESERVED = re.compile(_SIZE + r" reserved in total by PyTorch", re.IGNORECASE)
_UNALLOCATED = re.compile(_SIZE + r" is reserved by PyTorch but unallocated", re.IGNORECASE)
_OWN = re.compile(r"this process has " + _SIZE + r" memory in use", re.IGNORECASE)
_ALLOWED = re.compile(_SIZE + r" allowed", re.IGNORECASE)
_PRIVATE = re.compile(_SIZE + r" allocated in private pools", re.IGNORECASE)
_OTHER = re.compile(r"\bProcess (\d{1,10}) has " + _SIZE + r" memory in use", re.IGNORECASE)
_BARE = re.compile(
    r"CUDA error: out of memory|CUDA driver error: out of memory|cudaErrorMemoryAllocation|CUDA_ERROR_OUT_OF_MEMORY|"
    r"CUBLAS_STATUS_ALLOC_FAILED|CUDNN_STATUS_ALLOC_FAILED|out of memory \(allocated |Cuda failure 2 'out of memory'|"
    r"would exceed allowed memory|^\W*(?:rank\d+\W+)?torch(?:\.cuda)?\.OutOfMemoryError\b",
    re.IGNORECASE,
)
_OF_RAM = re.compile(r"DefaultCPUAllocator|alloc_cpu\.cpp", re.IGNORECASE)
"""PyTorch tells of the machine's memory in the same words."""
_LONGEST = 8
"""Lines that one message may be broken over."""


@dataclass(frozen=True, slots=True)
class CudaOom:
    """The end of GPU memory, as PyTorch told it. What the message does not say is None."""

    asked_bytes: int | None = None
    gpu: int | None = None
    """As the container numbers its GPUs."""
    total_bytes: int | None = None
    free_bytes: int | None = None
    allocated_bytes: int | None = None
    """By PyTorch, for tensors."""
    unallocated_bytes: int | None = None
    """Reserved by PyTorch and not in use."""
    own_bytes: int | None = None
    """All that the process holds, the CUDA context with it."""
    allowed_bytes: int | None = None
    """By ``set_per_process_memory_fraction``."""
    private_bytes: int | None = None
    """In private pools, of CUDA graphs."""
    others: tuple[tuple[int, int], ...] = ()
    """Pid and bytes of other processes that the driver knew of."""
    absurd: bool = False
    """So much was asked for that a size must be wrong."""

    @property
    def others_bytes(self) -> int:
        """What other processes hold."""
        return sum(size for _, size in self.others)


def find_cuda_oom(lines: Sequence[str]) -> CudaOom | None:
    """The last message about GPU memory in some output; None when there is none."""
    for start in range(len(lines) - 1, -1, -1):
        text = lines[start]
        if _OF_RAM.search(text):
            continue
        if _ABSURD.search(text):
            return CudaOom(absurd=True)
        if _BEGIN.search(text):
            return _read(" ".join(line.strip() for line in lines[start : start + _LONGEST]))
        if _BARE.search(text):
            return CudaOom()
    return None


def _read(text: str) -> CudaOom:
    allocated, unallocated = _bytes(_ALLOCATED, text), _bytes(_UNALLOCATED, text)
    reserved = _bytes(_RESERVED, text)
    if unallocated is None and reserved is not None and allocated is not None:
        unallocated = max(0, reserved - allocated)
    gpu = _GPU.search(text)
    return CudaOom(
        asked_bytes=_bytes(_ASKED, text),
        gpu=int(gpu[1]) if gpu else None,
        total_bytes=_bytes(_TOTAL, text),
        free_bytes=_bytes(_FREE, text),
        allocated_bytes=allocated,
        unallocated_bytes=unallocated,
        own_bytes=_bytes(_OWN, text),
        allowed_bytes=_bytes(_ALLOWED, text),
        private_bytes=_bytes(_PRIVATE, text),
        others=tuple((int(pid), _size(number, unit)) for pid, number, unit in _OTHER.findall(text)),
    )


def _bytes(pattern: re.Pattern[str], text: str) -> int | None:
    match = pattern.search(text)
    if match is None:
        return None
    number, unit = (group for group in match.groups() if group is not None)
    return _size(number, unit)


def _size(number: str, unit: str) -> int:
    return int(float(number) * _UNITS[unit.lower()])
