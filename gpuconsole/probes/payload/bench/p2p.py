"""B10: copies between every pair of GPUs: one way, both ways at once, and of a few bytes.

A pair that cannot reach each other directly copies through the host's memory: slower, and it is told so.
"""

from __future__ import annotations

import time
from typing import Any, Iterator

from gpuconsole.probes.payload.bench import data
from gpuconsole.probes.payload.bench.context import BenchContext
from gpuconsole.probes.payload.bench.measurement import Measurement
from gpuconsole.probes.payload.bench.timing import NOISY_RIQR, Timing, clock_of, timed

UNIT = "GB/s"
BYTES = 256 << 20
_LATENCY_BYTES = 16
_LATENCY_N = 100
_FEWEST_N = 5
_MEASURING = 0.7
"""Of the budget; verifying takes the rest."""


def run(context: BenchContext) -> Iterator[Measurement]:
    """Measure every ordered pair; the slowest of them is the score."""
    torch, gpus = context.torch, context.gpus
    if gpus < 2:
        yield Measurement.skipped({}, "there is one GPU, and it takes two")
        return
    for position in range(gpus):
        data.need(torch, "cuda:{}".format(position), 2 * BYTES)
    pairs = [(one, other) for one in range(gpus) for other in range(gpus) if one != other]
    slice_s = context.budget_s * _MEASURING / len(pairs) / 2
    told: list[Measurement] = []
    buffers = [Buffers(torch, position) for position in range(gpus)]
    both: dict[tuple[int, int], float] = {}
    for source, target in pairs:
        params = {"from": source, "to": target, "bytes": BYTES}
        context.report("copies from GPU {} to GPU {}".format(source, target))
        try:
            if (target, source) not in both:
                both[source, target] = both_ways(torch, buffers[source], buffers[target], slice_s)
            measurement = pair(torch, buffers[source], buffers[target], params, slice_s)
            if measurement.score is not None:
                measurement.values["both_gb_per_s"] = both.get((source, target), both.get((target, source)))
        except Exception as error:
            measurement = Measurement.failed(params, error, gpu=[source, target])
        told.append(measurement)
        yield measurement
    if any(measurement.score is not None for measurement in told):
        yield worst_of(told, list(range(gpus)))


def worst_of(told: list[Measurement], gpu: list[int]) -> Measurement:
    """The headline: the slowest pair, and how many times as fast the fastest is."""
    measured = [measurement for measurement in told if measurement.score]
    worst = min(measured, key=lambda measurement: measurement.score or 0.0)
    best = max(measurement.score or 0.0 for measurement in measured)
    values = {
        "worst_from": worst.params["from"],
        "worst_to": worst.params["to"],
        "best_gb_per_s": best,
        "best_over_worst": round(best / (worst.score or 1.0), 4),
        "pairs": len(told),
        "pairs_direct": sum(bool(measurement.values.get("direct")) for measurement in measured),
    }
    params = {"from": "any", "to": "any", "bytes": worst.params["bytes"], "gpus": len(gpu)}
    headline = Measurement(params, unit=UNIT, score=worst.score, values=values, gpu=gpu, headline=True)
    headline.stat, headline.noisy = worst.stat, worst.noisy
    headline.began = min(measurement.began or 0.0 for measurement in measured)
    headline.ended = max(measurement.ended or 0.0 for measurement in measured)
    return headline


class Buffers:
    """What one GPU sends, and where it receives."""

    def __init__(self, torch: Any, position: int) -> None:
        self.position = position
        self.device = "cuda:{}".format(position)
        generator = data.seeded(torch, self.device, seed=position + 1)
        numbers = BYTES // 8
        span = 1 << 62
        self.sent = torch.randint(-span, span, (numbers,), device=self.device, generator=generator)
        self.received = torch.zeros(numbers, dtype=torch.int64, device=self.device)


def pair(torch: Any, source: Buffers, target: Buffers, params: dict[str, Any], slice_s: float) -> Measurement:
    """Copies one way, compared first."""
    gpu = [source.position, target.position]

    def copy() -> None:
        target.received.copy_(source.sent, non_blocking=True)

    target.received.zero_()
    copy()
    for one in (source, target):
        torch.cuda.synchronize(one.device)
    if sums(target.received) != sums(source.sent):
        return Measurement.wrong(params, "what arrived is not what was sent: see check.p2p", gpu=gpu)
    timing = timed(
        torch, copy, device=source.device, min_s=slice_s, min_n=_FEWEST_N, heat_s=slice_s / 4, most_s=2 * slice_s
    )
    values = {
        "direct": bool(torch.cuda.can_device_access_peer(source.position, target.position)),
        "latency_us": round(latency_us(torch, source, target), 3),
    }
    score = round(BYTES / timing.median_s / 1e9, 3)
    return Measurement(
        params, unit=UNIT, score=score, timing=timing, values=values, gpu=gpu, noisy=timing.riqr > NOISY_RIQR
    )


def sums(buffer: Any) -> tuple[int, int]:
    """Two sums of the numbers in a buffer, taken on its own GPU: of all, and of every seventh."""
    return int(buffer.sum()), int(buffer[::7].sum())


def latency_us(torch: Any, source: Buffers, target: Buffers) -> float:
    """Microseconds of a copy of 16 bytes, one after the other."""
    sent, received = source.sent[: _LATENCY_BYTES // 8], target.received[: _LATENCY_BYTES // 8]
    clock = clock_of(torch, source.device)

    def copy() -> None:
        received.copy_(sent, non_blocking=True)

    copy()
    return sorted(clock.samples(copy, 5, inner=_LATENCY_N, flush=None))[2] * 1000.0


def both_ways(torch: Any, one: Buffers, other: Buffers, slice_s: float) -> float:
    """GB/s of both directions together, on streams of their own: else each copy would wait for the other's."""
    lanes = [
        (one, other, torch.cuda.Stream(device=one.device), torch.cuda.Stream(device=other.device)),
        (other, one, torch.cuda.Stream(device=other.device), torch.cuda.Stream(device=one.device)),
    ]

    def copies(count: int) -> float:
        for buffers in (one, other):
            torch.cuda.synchronize(buffers.device)
        begun = time.perf_counter()
        for _ in range(count):
            for source, target, stream_of_source, stream_of_target in lanes:
                with torch.cuda.stream(stream_of_source), torch.cuda.stream(stream_of_target):
                    target.received.copy_(source.sent, non_blocking=True)
        for buffers in (one, other):
            torch.cuda.synchronize(buffers.device)
        return time.perf_counter() - begun

    copies(2)
    count = max(_FEWEST_N, min(200, int(slice_s / 4 / max(copies(2) / 2, 1e-6))))
    each_ms = Timing([copies(count) * 1000.0 / count for _ in range(3)])
    return round(2 * BYTES / each_ms.median_s / 1e9, 3)
