"""Data to measure with: random, of a size that no cache holds, within the memory that may be taken."""

from __future__ import annotations

import os
from typing import Any, Callable

from gpuconsole.probes.payload import environment
from gpuconsole.probes.payload.bench.measurement import Skip
from gpuconsole.probes.payload.outcome import size

FREE_SHARE = 0.4
"""Of the memory that is free, a benchmark takes at most so much."""
LEAST_BYTES = 1536 << 20
"""With less than this to take, a GPU is not measured."""
_UNKNOWN_L2 = 128 << 20
"""Where torch does not tell: the largest there is."""
_UNKNOWN_LLC = 32 << 20
_GIB = 1 << 30
_MIB = 1 << 20
_SEED = 20240229
_BLOCK = 1 << 20


def free_bytes(torch: Any, device: str) -> int:
    """Memory that is free: the GPU's, with what torch itself holds unused; else the host's, within its limit."""
    if device.startswith("cuda"):
        free = int(torch.cuda.mem_get_info(device)[0])
        return free + int(torch.cuda.memory_reserved(device)) - int(torch.cuda.memory_allocated(device))
    return host_free_bytes()


def host_free_bytes() -> int:
    """What the host has free, and the container's limit leaves."""
    free = 0
    for line in (environment.read("/proc/meminfo") or "").splitlines():
        if line.startswith("MemAvailable:"):
            free = int(line.split()[1]) * 1024
    limit = environment.memory_limit()
    if limit is not None:
        text = environment.read("/sys/fs/cgroup/memory.current") or environment.read(
            "/sys/fs/cgroup/memory/memory.usage_in_bytes"
        )
        used = int(text) if text and text.strip().isdigit() else 0
        free = min(free or limit, max(0, limit - used))
    return free


def allowance(torch: Any, device: str) -> int:
    """Bytes that may be taken.

    Raises:
        Skip: They are too few on a GPU.
    """
    free = free_bytes(torch, device)
    allowed = int(free * FREE_SHARE)
    if device.startswith("cuda") and allowed < LEAST_BYTES:
        raise Skip(
            "memory: {} are free, and a benchmark takes at most {:.0%} of it, at least {}".format(
                size(free), FREE_SHARE, size(LEAST_BYTES)
            )
        )
    return allowed


def need(torch: Any, device: str, count: int) -> None:
    """See that ``count`` bytes may be taken.

    Raises:
        Skip: They may not.
    """
    allowed = allowance(torch, device)
    if count > allowed:
        raise Skip("memory: it takes {}, and {} may be taken".format(size(count), size(allowed)))


def cache_bytes(torch: Any, device: str) -> int:
    """The last cache before memory: a GPU's L2, a processor's L3."""
    if device.startswith("cuda"):
        properties = torch.cuda.get_device_properties(device)
        return int(getattr(properties, "L2_cache_size", 0)) or _UNKNOWN_L2
    return host_cache_bytes()


def host_cache_bytes(root: str = "/sys/devices/system/cpu/cpu0/cache") -> int:
    """The processor's largest cache, as the kernel tells it."""
    largest = 0
    try:
        names = os.listdir(root)
    except OSError:
        names = []
    for name in names:
        text = (environment.read(os.path.join(root, name, "size")) or "").strip()
        unit = {"K": 1024, "M": _MIB, "G": _GIB}.get(text[-1:], 1)
        if text.rstrip("KMG").isdigit():
            largest = max(largest, int(text.rstrip("KMG")) * unit)
    return largest or _UNKNOWN_LLC


def buffer_bytes(cache: int, *, on_gpu: bool, allowed: int, buffers: int) -> int:
    """Bytes of each of ``buffers`` buffers, so that what is measured is memory and not the cache.

    On a GPU 1 GiB or 16 times its L2, the larger, each; on a CPU as much as its cache, within 64 to 256 MiB, so that
    two of them are beyond it.

    Raises:
        Skip: So much may not be taken.
    """
    wanted = max(_GIB, 16 * cache) if on_gpu else min(256 * _MIB, max(64 * _MIB, cache // _MIB * _MIB))
    if wanted * buffers > allowed:
        raise Skip("memory: it takes {}, and {} may be taken".format(size(wanted * buffers), size(allowed)))
    return wanted


def flusher(torch: Any, device: str) -> Callable[[], object] | None:
    """A function that empties a GPU's cache by overwriting twice its size; None on a CPU."""
    if not device.startswith("cuda"):
        return None
    count = max(2 * cache_bytes(torch, device), 64 * _MIB)
    buffer = torch.empty(count // 4, dtype=torch.int32, device=device)
    return lambda: buffer.zero_()


def seeded(torch: Any, device: str, seed: int = _SEED) -> Any:
    """A generator of random numbers on ``device``, the same each time."""
    return torch.Generator(device=device).manual_seed(seed)


def random_matrix(torch: Any, shape: tuple[int, ...], dtype: Any, *, device: str, generator: Any = None) -> Any:
    """Normally distributed numbers, made in float32 where the type has no generator of its own."""
    values = torch.randn(shape, device=device, generator=generator, dtype=torch.float32)
    return values if dtype == torch.float32 else values.to(dtype)


def fill_randomly(torch: Any, buffer: Any, *, seed: int = _SEED) -> None:
    """Fill a flat buffer with normally distributed numbers; on a CPU the same block of them over and over."""
    generator = seeded(torch, str(buffer.device), seed)
    if buffer.is_cuda or buffer.numel() <= _BLOCK:
        buffer.normal_(generator=generator)
        return
    block = torch.randn(_BLOCK, generator=generator, dtype=buffer.dtype)
    for first in range(0, buffer.numel(), _BLOCK):
        part = buffer[first : first + _BLOCK]
        part.copy_(block[: part.numel()])
