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
"""CPU time of a million additions in CPython 3.11 on a core of a few years ago that does nothing else."""
GIB = 2**30
MIB = 2**20


def held(number: int, second: int) -> int:
    """Bytes of process ``number``: calm ones, leaks of every pace, stairs, and caches that come and go."""
    kinds = (
        8 * GIB,
        4 * GIB + second * MIB * (1 + number % 7),
        2 * GIB + second // 20 * 100 * MIB,
        6 * GIB + int(2 * GIB * (1 + math.sin(second / (5 + number)))),
        int(10 * GIB * min(1.0, second / (30 + number))),
    )
    return kinds[number % len(kinds)]


def views(gpus: int, processes: int) -> Iterator[HostView]:
    """A machine, second by second; a process that would not fit any more begins anew."""
    each = max(1, processes // gpus)
    for second in count():
        shown = []
        for index in range(gpus):
            listed = tuple(
                GpuProcess(1000 + number, held(number, second % 1500))
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


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--gpus", type=int, default=8)
    parser.add_argument("--processes", type=int, default=40)
    parser.add_argument("--looks", type=int, default=2000)
    chosen = parser.parse_args()
    clock = count()
    watch = MemoryWatch(clock=lambda: float(next(clock)))
    spent, trends, yard = [], 0, yardstick_ms()
    for _, view in zip(range(chosen.looks), views(chosen.gpus, chosen.processes), strict=False):
        began = time.process_time()
        shown = watch.look(view)
        spent.append((time.process_time() - began) * 1000)
        trends += any(each.rate_bytes_s is not None for each in shown.outlooks)
    spent.sort()
    yard = (yard + yardstick_ms()) / 2
    print(
        f"{chosen.gpus} GPUs, {chosen.processes} processes, {chosen.looks} looks ({trends} with growth): CPU time of "
        f"a look {statistics.mean(spent):.2f} ms in the mean, {statistics.median(spent):.2f} ms in the middle, "
        f"{spent[int(0.99 * len(spent))]:.2f} ms at 99 %, {spent[-1]:.2f} ms at most; aim {AIM_MS:g} ms\n"
        f"a million additions took {yard:.0f} ms meanwhile; where they take {YARD_MS:g} ms, as on a machine of its own, "
        f"that is {statistics.mean(spent) * YARD_MS / yard:.2f} ms in the mean"
    )


if __name__ == "__main__":
    main()
