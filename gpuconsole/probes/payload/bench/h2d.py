"""B03: the link between host and GPU, pinned and not, one way and both, and whether copies hide behind work."""

from __future__ import annotations

import time
from typing import Any, Callable, Iterator

from gpuconsole.probes.payload.bench import data
from gpuconsole.probes.payload.bench.context import BenchContext
from gpuconsole.probes.payload.bench.measurement import Measurement, Skip
from gpuconsole.probes.payload.bench.placement import placement
from gpuconsole.probes.payload.bench.timing import rounded, timed
from gpuconsole.probes.payload.outcome import size

UNIT = "GB/s"
QUICK_BYTES = 256 << 20
FULL_BYTES = 1 << 30
_LEAST_BYTES = 64 << 20
_HOST_BUFFERS = 4
"""Two pinned, one not, and the room torch's pinned allocator takes for a size that is no power of two."""
_PRODUCT = 4096


def run(context: BenchContext) -> Iterator[Measurement]:
    """Pinned to the GPU first, which is the headline; then the other ways, then the overlap."""
    torch, device = context.torch, context.device
    wanted = int(context.option("link_bytes") or (FULL_BYTES if context.full else QUICK_BYTES))
    count = bytes_to_copy(wanted, data.host_free_bytes())
    data.need(torch, device, 2 * count)
    link = Link(torch, count, device=device)
    ways: tuple[tuple[dict[str, Any], Callable[[], object], int], ...] = (
        ({"direction": "h2d", "memory": "pinned"}, link.to_device, 1),
        ({"direction": "d2h", "memory": "pinned"}, link.to_host, 1),
        ({"direction": "both", "memory": "pinned"}, link.both, 2),
        ({"direction": "h2d", "memory": "pageable"}, link.from_pageable, 1),
        ({"direction": "d2h", "memory": "pageable"}, link.to_pageable, 1),
    )
    scores: dict[str, float] = {}
    for place, (way, fn, times) in enumerate(ways):
        params = dict(way, bytes=count)
        context.report("{direction}, {memory}".format(**way))
        slice_s = max(0.1, context.left_s / (len(ways) - place + 2))
        try:
            measured = measure(context, params, fn, times * count, slice_s=slice_s)
            why = link.wrong(way)
            if why:
                measured = Measurement.wrong(params, why)
        except RuntimeError as error:
            measured = Measurement.failed(params, error)
        measured.headline = place == 0
        if measured.headline:
            measured.values["pinning_s"] = rounded(link.pinning_s, 3)
            measured.values.update(placement(torch, device))
        key = "{direction} {memory}".format(**way)
        if measured.score is not None:
            scores[key] = measured.score
            pinned = scores.get(key.replace("pageable", "pinned"))
            if way["memory"] == "pageable" and pinned:
                measured.values["pinned_over_pageable"] = round(pinned / measured.score, 2)
        yield measured
    yield overlap_of(context, link)
    del link
    if context.full and context.gpus > 1:
        for measured in others(context, count):
            yield measured


def bytes_to_copy(wanted: int, host_free: int) -> int:
    """What the host's memory allows: half as much until it fits.

    Raises:
        Skip: Not even 64 MiB do.
    """
    count = wanted
    while count * _HOST_BUFFERS > host_free * data.FREE_SHARE:
        count //= 2
        if count < min(wanted, _LEAST_BYTES):
            raise Skip("memory: the host has {} free".format(size(host_free)))
    return count


def measure(
    context: BenchContext, params: dict[str, Any], fn: Callable[[], object], moved: int, *, slice_s: float
) -> Measurement:
    """One way of copying; ``moved`` bytes each time."""
    timing = timed(
        context.torch, fn, device=context.device, min_s=0.7 * slice_s, heat_s=0.15 * slice_s, most_s=2 * slice_s
    )
    return Measurement(params, unit=UNIT, score=rounded(moved / timing.median_s / 1e9), timing=timing)


class Link:
    """Buffers on both sides of the link.

    Args:
        torch: The module.
        count: Bytes of each.
        device: The GPU.
    """

    def __init__(self, torch: Any, count: int, *, device: str) -> None:
        self._torch = torch
        self._device = device
        self.count = count
        begun = time.perf_counter()
        self.pinned = torch.empty(count, dtype=torch.uint8, pin_memory=True)
        self.pinning_s = time.perf_counter() - begun
        """Seconds it took to get the first pinned buffer."""
        self.back = torch.empty(count, dtype=torch.uint8, pin_memory=True)
        self.there = torch.empty(count, dtype=torch.uint8, device=device)
        self.source = torch.randint(0, 256, (count,), dtype=torch.uint8, device=device)
        self.pinned.copy_(self.source)
        self.pageable = self.pinned.clone()
        torch.cuda.synchronize(device)
        self._streams = [torch.cuda.Stream(device=device) for _ in range(2)]

    def to_device(self) -> None:
        """Pinned memory to the GPU."""
        self.there.copy_(self.pinned, non_blocking=True)

    def to_host(self) -> None:
        """The GPU to pinned memory."""
        self.back.copy_(self.source, non_blocking=True)

    def both(self) -> None:
        """Both ways at the same time."""
        self.side_by_side(self.to_device, self.to_host)

    def side_by_side(self, *parts: Callable[[], object]) -> None:
        """Run ``parts``, each on a stream of its own, between what was started before and what comes after."""
        cuda = self._torch.cuda
        here = cuda.current_stream(self._device)
        for stream, part in zip(self._streams, parts):
            stream.wait_stream(here)
            with cuda.stream(stream):
                part()
        for stream in self._streams:
            here.wait_stream(stream)

    def from_pageable(self) -> None:
        """Ordinary memory to the GPU."""
        self.there.copy_(self.pageable)

    def to_pageable(self) -> None:
        """The GPU to ordinary memory."""
        self.pageable.copy_(self.source)

    def wrong(self, way: dict[str, Any]) -> str:
        """Why what arrived is wrong; empty when it is right. What has arrived is wiped, for the next way."""
        torch = self._torch
        torch.cuda.synchronize(self._device)
        arrived = []
        if way["direction"] in ("h2d", "both"):
            arrived.append(bool(torch.equal(self.there, self.source)))
            self.there.zero_()
            if way["memory"] == "pageable":
                self.pageable.zero_()  # the way back fills it again
        if way["direction"] in ("d2h", "both"):
            back = self.back if way["memory"] == "pinned" else self.pageable
            # Compared on the GPU, where it is quick: what came back is sent there once more.
            self.there.copy_(back)
            arrived.append(bool(torch.equal(self.there, self.source)))
            self.there.zero_()
            if way["memory"] == "pinned":
                self.back.zero_()
        return "" if all(arrived) else "what was copied came back different"


def overlap(copy_s: float, work_s: float, both_s: float) -> float:
    """The share of the shorter of two that was hidden behind the other: 1 all of it, 0 nothing."""
    return (copy_s + work_s - both_s) / min(copy_s, work_s)


def overlap_of(context: BenchContext, link: Link) -> Measurement:
    """A copy on one stream and matrix products on another, of about the same length."""
    torch, device = context.torch, context.device
    params = {"direction": "h2d", "memory": "pinned", "bytes": link.count, "test": "overlap"}
    context.report("copy beside matrix products")
    slice_s = max(0.2, 0.8 * context.left_s)
    try:
        dtype = torch.float16 if torch.cuda.get_device_capability(device) >= (7, 0) else torch.float32
        side = int(context.option("mm_size") or _PRODUCT)
        a = data.random_matrix(torch, (side, side), dtype, device=device)
        out = torch.empty_like(a)

        def work(count: int) -> None:
            for _ in range(count):
                torch.mm(a, a, out=out)

        copy = timed(torch, link.to_device, device=device, min_s=0.2 * slice_s, min_n=5)
        once = timed(torch, lambda: work(1), device=device, min_s=0.1 * slice_s)
        count = max(1, round(copy.median_s / once.median_s))
        product = timed(torch, lambda: work(count), device=device, min_s=0.2 * slice_s, min_n=5)
        both = timed(
            torch,
            lambda: link.side_by_side(link.to_device, lambda: work(count)),
            device=device,
            min_s=0.4 * slice_s,
        )
    except RuntimeError as error:
        return Measurement.failed(params, error)
    return Measurement(
        params,
        unit="share",
        score=round(overlap(copy.median_s, product.median_s, both.median_s), 3),
        timing=both,
        values={
            "copy_ms": rounded(copy.median_ms),
            "products_ms": rounded(product.median_ms),
            "together_ms": rounded(both.median_ms),
            "products": count,
        },
    )


def others(context: BenchContext, count: int) -> Iterator[Measurement]:
    """The pinned copies of every other GPU, one after the other: a slot that is slower than its siblings."""
    torch = context.torch
    for position in range(1, context.gpus):
        device = "cuda:{}".format(position)
        context.report("link of GPU {}".format(position))
        slice_s = max(0.05, min(1.0, context.left_s / (context.gpus - position) / 2))
        params = {"direction": "h2d", "memory": "pinned", "bytes": count}
        try:
            data.need(torch, device, 2 * count)
            with torch.cuda.device(device):
                link = Link(torch, count, device=device)
                for direction, fn in (("h2d", link.to_device), ("d2h", link.to_host)):
                    params = {"direction": direction, "memory": "pinned", "bytes": count}
                    timing = timed(torch, fn, device=device, min_s=0.7 * slice_s, most_s=slice_s)
                    why = link.wrong(params)
                    if why:
                        yield Measurement.wrong(params, why, gpu=[position])
                        continue
                    score = rounded(count / timing.median_s / 1e9)
                    values = placement(torch, device)
                    yield Measurement(params, unit=UNIT, score=score, timing=timing, gpu=[position], values=values)
        except (RuntimeError, Skip) as error:
            yield Measurement.failed(params, error, gpu=[position])
