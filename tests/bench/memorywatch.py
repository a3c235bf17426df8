"""What it costs to say where memory is going: a look at a full machine, without what reads the GPUs.

    python -m tests.bench.memorywatch [--gpus 8] [--processes 40] [--looks 2000]

GPUs and processes are made up and grow in many ways; RAM and ``/dev/shm`` of this machine are read. It prints, and
judges nothing but the aim that stands beside.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Iterator
from itertools import count

from gpuconsole.gpu.model import Gpu, GpuProcess, GpuSnapshot
from gpuconsole.host.model import GpuView, Holder, HostView
from gpuconsole.services.memorywatch import MemoryWatch

AIM_MS = 1.0
YARD_MS = 50.0
"""CPU time of a million additions in CPython 3.11 on a core of a few years ago that does nothing else: what was
measured is also said in these, since a busy machine makes everything slower."""
GIB = 2**30
MIB = 2**20


def held(number: int, second: int, moving: float) -> int:
    """Bytes of process ``number``: calm ones, leaks of every pace, stairs, and caches that come and go."""
    if number % 20 >= 20 * moving:
        return 8 * GIB
    kinds = (
        4 * GIB + second * MIB * (1 + number % 7),
        2 * GIB + second // 20 * 100 * MIB,
        6 * GIB + int(2 * GIB * (1 + math.sin(second / (5 + number)))),
        int(10 * GIB * min(1.0, second / (30 + number))),
    )
    return kinds[number % len(kinds)]


def views(gpus: int, processes: int, moving: float) -> Iterator[HostView]:
    """A machine, second by second; a process that would not fit any more begins anew."""
    each = max(1, processes // gpus)
    for second in count():
        shown = []
        for index in range(gpus):
            listed = tuple(
                GpuProcess(1000 + number, held(number, second % 1500, moving))
                for number in range(index * each, (index + 1) * each)
            )
            used = sum(process.memory_bytes or 0 for process in listed)
            gpu = Gpu(
                index, f"GPU-{index}", "NVIDIA H200", memory_total_bytes=140 * GIB, memory_used_bytes=used,
                memory_free_bytes=max(0, 139 * GIB - used), utilization_pct=90, processes=listed,
            )  # fmt: skip
            holders = tuple(
                Holder(pid=process.pid, started_at=1.0, gpu_index=index, gpu_uuid=gpu.uuid,
                       memory_bytes=process.memory_bytes)
                for process in listed
            )  # fmt: skip
            shown.append(GpuView(gpu, holders))
        yield HostView(GpuSnapshot(float(second), tuple(view.gpu for view in shown)), tuple(shown))


def yardstick_ms() -> float:
    """CPU time of a million additions: what a busy or slow machine makes of everything."""
    began, total = time.process_time(), 0
    for number in range(1_000_000):
        total += number
    return (time.process_time() - began) * 1000


def measure(gpus: int, processes: int, looks: int, moving: float) -> None:
    """Measure one machine and print."""
    clock = count()
    watch = MemoryWatch(clock=lambda: float(next(clock)))
    spent, grew, yard = [], 0, yardstick_ms()
    for _, view in zip(range(looks), views(gpus, processes, moving), strict=False):
        began = time.process_time()
        shown = watch.look(view)
        spent.append((time.process_time() - began) * 1000)
        grew += any(each.rate_bytes_s is not None for each in shown.outlooks)
    spent.sort()
    share = YARD_MS / ((yard + yardstick_ms()) / 2)
    print(
        f"{moving:4.0%} of {processes} processes move: {statistics.mean(spent):.2f} ms in the mean, "
        f"{statistics.median(spent):.2f} ms in the middle, {spent[int(0.99 * len(spent))]:.2f} ms at 99 %; in the mean "
        f"{statistics.mean(spent) * share:.2f} ms of a core of its own; growth in {grew} of {looks} looks"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--gpus", type=int, default=8)
    parser.add_argument("--processes", type=int, default=40)
    parser.add_argument("--looks", type=int, default=2000)
    chosen = parser.parse_args()
    print(f"CPU time of a look at {chosen.gpus} GPUs; aim {AIM_MS:g} ms")
    for moving in (0.0, 0.2, 1.0):
        measure(chosen.gpus, chosen.processes, chosen.looks, moving)


if __name__ == "__main__":
    main()
