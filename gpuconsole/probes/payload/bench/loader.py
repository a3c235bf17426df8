"""B09: a DataLoader that makes samples of 8 MiB in 0, 2, 4 and 8 workers and brings them to the device.

A sample is unpacked, in one thread and some five milliseconds as a picture would be, and goes through shared memory and
pinned memory to the GPU: more workers help until there are no more processors, or no more room on the way.
"""

from __future__ import annotations

import os
import time
import warnings
import zlib
from typing import Any, Iterator

from gpuconsole.probes.payload.bench.context import BenchContext
from gpuconsole.probes.payload.bench.measurement import Measurement, Skip
from gpuconsole.probes.payload.bench.timing import LEAST_N, Timing
from gpuconsole.probes.payload.checks.shm import SHM
from gpuconsole.probes.payload.environment import cpus
from gpuconsole.probes.payload.outcome import size

UNIT = "GB/s"
WORKERS = (0, 2, 4, 8)
SAMPLE_BYTES = 8 << 20
_PRIME = 251
_PREFETCH = 2
_WARM = 4
"""Samples of each worker that are not timed: they were made while nobody waited."""
_ENDLESS = 1 << 40
_STUCK_S = 20
_WORKERS_PER_CPU = 2


class Samples:
    """An endless data set; every sample is a pattern, unpacked anew and moved on by its number."""

    def __init__(self, count: int = SAMPLE_BYTES) -> None:
        self._count = count
        self._packed = zlib.compress(bytes(range(_PRIME)) * (count // _PRIME + 1), 1)

    def __len__(self) -> int:
        return _ENDLESS

    def __getitem__(self, index: int) -> Any:
        import torch

        pattern = torch.frombuffer(bytearray(zlib.decompress(self._packed)), dtype=torch.uint8)
        return pattern[: self._count] + index % 256


def expected(index: int, place: int) -> int:
    """The byte at ``place`` of sample ``index``."""
    return (place % _PRIME + index % 256) % 256


def run(context: BenchContext) -> Iterator[Measurement]:
    """Load with each number of workers; the last record tells the best of them."""
    count = int(context.option("sample_bytes", SAMPLE_BYTES))
    best: Measurement | None = None
    for workers in WORKERS:
        params = params_of(workers, count, pinned=context.cuda)
        context.report("loading with {} workers".format(workers))
        try:
            see_room(workers, count, shm_free())
            see_processors(workers, cpus() or 1)
            measurement = load(context, params, context.budget_s / (len(WORKERS) + 2))
        except Exception as error:
            measurement = Measurement.failed(params, error)
        if measurement.score is not None and (best is None or measurement.score > (best.score or 0.0)):
            best = measurement
        yield measurement
    if best is not None:
        yield best_of(best)


def params_of(workers: int | str, count: int, *, pinned: bool) -> dict[str, Any]:
    """What tells one record from another."""
    return {"workers": workers, "sample_bytes": count, "pinned": pinned}


def best_of(best: Measurement) -> Measurement:
    """The headline: the figure of the number of workers that was fastest."""
    params = dict(best.params, workers="best")
    values = dict(best.values, workers=best.params["workers"])
    headline = Measurement(params, unit=UNIT, score=best.score, values=values, headline=True, noisy=best.noisy)
    headline.stat, headline.began, headline.ended = best.stat, best.began, best.ended
    return headline


def shm_free() -> int:
    """Bytes free in /dev/shm, through which samples come from workers."""
    try:
        stat = os.statvfs(SHM)
    except OSError:
        return 0
    return stat.f_frsize * stat.f_bavail


def see_room(workers: int, count: int, free: int) -> None:
    """See that what is on its way has room in shared memory: a worker that finds none dies of it.

    Raises:
        Skip: It has not.
    """
    needed = (workers * _PREFETCH + 2) * count if workers else 0
    if needed > free:
        text = "shared memory: {} workers need {} of {}, and {} are free"
        raise Skip(text.format(workers, size(needed), SHM, size(free)))


def see_processors(workers: int, processors: int) -> None:
    """See that the workers have processors to run on.

    Raises:
        Skip: They would mostly wait for each other.
    """
    if workers > _WORKERS_PER_CPU * processors:
        raise Skip("processors: there are {}, too few for {} workers".format(processors, workers))


def load(context: BenchContext, params: dict[str, Any], slice_s: float) -> Measurement:
    """Load for ``slice_s`` seconds after the first samples, which are compared."""
    torch, workers, count = context.torch, params["workers"], params["sample_bytes"]
    options = {"num_workers": workers, "pin_memory": context.cuda, "timeout": _STUCK_S if workers else 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that so many workers are more than it would suggest
        loader = torch.utils.data.DataLoader(Samples(count), batch_size=None, **options)
        begun = time.perf_counter()
        samples = iter(loader)
    try:
        warm = max(2, _WARM * workers)
        for index in range(warm):
            sample = next(samples).to(context.device, non_blocking=True)
            if index == 0:
                start_s = time.perf_counter() - begun
            places = (0, count // 2 + index, count - 1)
            got = [int(sample[place]) for place in places]
            if got != [expected(index, place) for place in places]:
                return Measurement.wrong(params, "sample {} came to the device with other bytes".format(index))
        began = time.time()
        stamps = arrivals(context, samples, slice_s, least=LEAST_N * max(1, workers))
    finally:
        del samples  # ends the workers
    timing = Timing(windows_ms(stamps, width_for(len(stamps) - 1, workers)), began=began, ended=time.time())
    per_s = 1.0 / timing.median_s
    values = {"samples_per_s": round(per_s, 2), "start_s": round(start_s, 3)}
    return Measurement(params, unit=UNIT, score=round(per_s * count / 1e9, 4), timing=timing, values=values)


def arrivals(context: BenchContext, samples: Iterator[Any], slice_s: float, *, least: int) -> list[float]:
    """Moments at which samples had arrived on the device, for at least so many seconds and samples."""
    begun = time.perf_counter()
    stamps = [begun]
    while stamps[-1] - begun < slice_s or (len(stamps) <= least and stamps[-1] - begun < 3 * slice_s):
        next(samples).to(context.device, non_blocking=True)
        if context.cuda:
            context.torch.cuda.current_stream().synchronize()
        stamps.append(time.perf_counter())
    return stamps


def width_for(count: int, workers: int) -> int:
    """Samples in a window: whole rounds of the workers, who deliver by turns, and some twenty windows in all."""
    rounds = max(1, workers)
    return rounds * max(1, count // (LEAST_N * rounds))


def windows_ms(stamps: list[float], width: int) -> list[float]:
    """Milliseconds a sample took, by windows of ``width`` samples."""
    edges = stamps[::width]
    if len(edges) < 2:
        edges, width = [stamps[0], stamps[-1]], max(1, len(stamps) - 1)
    return [(later - earlier) * 1000.0 / width for earlier, later in zip(edges, edges[1:])]  # noqa: RUF007
