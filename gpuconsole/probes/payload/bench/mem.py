"""B02: device memory by a copy and a triad, of buffers that no cache holds."""

from __future__ import annotations

import time
from typing import Any, Iterator

from gpuconsole.probes.payload.bench import data
from gpuconsole.probes.payload.bench.context import BenchContext
from gpuconsole.probes.payload.bench.lanes import Lane, drive
from gpuconsole.probes.payload.bench.measurement import Measurement, Skip
from gpuconsole.probes.payload.bench.timing import Timing, rounded, timed

UNIT = "GB/s"
SCALE = 0.4375
"""Of the triad: exact in every type."""
TOUCHED = {"copy": 2, "triad": 3}
"""How often a buffer's bytes are read or written, all counted."""
_HEAT_S = {"quick": 0.7, "full": 4.0, "cpu": 0.1}
_TOGETHER_S = 1.0
_LEAST_SHARE = 0.2
"""With less than this share of the time left, the triad is not begun: on a slow machine the copy took it all."""
_PART = 1 << 24
_CPU_PART = 1 << 18


def run(context: BenchContext) -> Iterator[Measurement]:
    """Copy and triad; the higher is the headline. Then the copy on all GPUs at the same time."""
    torch, device = context.torch, context.device
    count = int(context.option("buffer_bytes") or size_of(torch, device, buffers=3))
    reserve = _TOGETHER_S if context.gpus > 1 else 0.0
    heat_s = min(_HEAT_S[context.pace], 0.2 * context.budget_s)
    buffers = Buffers(torch, count, device=device, zeros=context.option("data") == "zeros")
    found = []
    for place, name in enumerate(("copy", "triad")):
        context.report(name)
        params = params_of(context, name, count)
        if found and context.left_s < _LEAST_SHARE * context.budget_s:
            found.append(Measurement.skipped(params, "time: {:.1f} s are left".format(max(0.0, context.left_s))))
            break
        try:
            buffers.prepare(name)
            slice_s = max(0.1, (context.left_s - reserve) / (2 - place) - heat_s)
            timing = timed(
                torch, getattr(buffers, name), device=device, min_s=0.6 * slice_s, heat_s=heat_s, most_s=slice_s
            )
            why = buffers.wrong(name)
            if why:
                found.append(Measurement.wrong(params, why))
                continue
            values = {"heat_s": round(timing.heat_s, 2)}
            values.update(theoretical(torch, device))
            score = rounded(bandwidth(name, count, timing.median_ms))
            found.append(Measurement(params, unit=UNIT, score=score, timing=timing, values=values))
        except RuntimeError as error:
            found.append(Measurement.failed(params, error))
    max(found, key=lambda one: one.score or 0.0).headline = True
    for measured in found:
        yield measured
    del buffers
    if context.gpus > 1:
        torch.cuda.empty_cache()
        for measured in together(context, count):
            yield measured


def params_of(context: BenchContext, name: str, count: int) -> dict[str, Any]:
    """The parameters as a record has them."""
    return {"operation": name, "bytes": count, "dtype": "fp32", "data": str(context.option("data", "randn"))}


def size_of(torch: Any, device: str, *, buffers: int) -> int:
    """Bytes of each of so many buffers.

    Raises:
        Skip: What must be taken may not be.
    """
    cache = data.cache_bytes(torch, device)
    allowed = data.allowance(torch, device)
    return data.buffer_bytes(cache, on_gpu=device != "cpu", allowed=allowed, buffers=buffers)


def bandwidth(name: str, count: int, ms: float) -> float:
    """GB/s, decimal, reads and writes counted, of an operation on buffers of ``count`` bytes."""
    return TOUCHED[name] * count / (ms * 1e-3) / 1e9


def theoretical(torch: Any, device: str) -> dict[str, float]:
    """What clock and width of the memory give, where torch tells them."""
    if device == "cpu":
        return {}
    properties = torch.cuda.get_device_properties(device)
    clock_khz, bits = getattr(properties, "memory_clock_rate", 0), getattr(properties, "memory_bus_width", 0)
    return {"theoretical_gb_per_s": rounded(clock_khz * 1e3 * 2 * bits / 8 / 1e9)} if clock_khz and bits else {}


class Buffers:
    """A buffer of random numbers, a second for the triad, and one for the result.

    Args:
        torch: The module.
        count: Bytes of each.
        device: Where they are.
        zeros: All numbers are 0.
    """

    def __init__(self, torch: Any, count: int, *, device: str, zeros: bool = False) -> None:
        self._torch = torch
        self._zeros = zeros
        self.a = self._made(count, device, seed=1)
        self.b = self.a
        self.out = torch.empty(count // 4, dtype=torch.float32, device=device).fill_(float("nan"))

    def _made(self, count: int, device: str, *, seed: int) -> Any:
        buffer = self._torch.empty(count // 4, dtype=self._torch.float32, device=device)
        if self._zeros:
            return buffer.zero_()
        data.fill_randomly(self._torch, buffer, seed=seed)
        return buffer

    def prepare(self, name: str) -> None:
        """Make what this operation needs beside what is there."""
        if name == "triad":
            self.b = self._made(4 * self.a.numel(), str(self.a.device), seed=2)

    def copy(self) -> None:
        """One buffer to another."""
        self.out.copy_(self.a)

    def triad(self) -> None:
        """``out = a + scale·b``."""
        self._torch.add(self.a, self.b, alpha=SCALE, out=self.out)

    def wrong(self, name: str) -> str:
        """Why the result of the last operation is wrong; empty when it is right."""
        size, total = (_PART, self.a.numel()) if self.a.is_cuda else (_CPU_PART, self.a.numel())
        # A CPU would take longer to look at all of it than to measure: it looks at eight places.
        for first in range(0, total, size if self.a.is_cuda else max(size, total // 8)):
            part = slice(first, first + size)
            got = self.out[part]
            if name == "copy":
                good = bool(self._torch.equal(got, self.a[part]))
            else:
                wanted = self.a[part].double() + SCALE * self.b[part].double()
                good = float((got.double() - wanted).abs().max()) < 1e-5
            if not good:
                return "the {} came back different".format(name)
        return ""


def together(context: BenchContext, count: int) -> Iterator[Measurement]:
    """The copy on all GPUs at the same time: how alike the siblings are."""
    torch = context.torch
    context.report("copy on {} GPUs at the same time".format(context.gpus))
    lanes: list[Lane] = []
    copies: list[tuple[Any, Any]] = []
    params = dict(params_of(context, "copy", count), together=context.gpus)
    for position in range(context.gpus):
        device = "cuda:{}".format(position)
        try:
            data.need(torch, device, 2 * count)
            a = torch.empty(count // 4, dtype=torch.float32, device=device).normal_()
            b = torch.empty_like(a)
            b.fill_(float("nan"))
            copies.append((a, b))
            lanes.append(Lane(torch, device, lambda a=a, b=b: b.copy_(a), chunk=10))
        except (RuntimeError, Skip) as error:
            yield Measurement.failed(params, error, gpu=[position])
    seconds = max(0.6, min(_TOGETHER_S if not context.full else 4.0, context.left_s))
    drive(lanes, 0.5 * seconds)
    warm = [len(lane.samples_ms) for lane in lanes]
    began = time.time()
    drive(lanes, 0.5 * seconds)
    ended = time.time()
    for lane, before, (a, b) in zip(lanes, warm, copies):
        if not torch.equal(a, b):
            yield Measurement.wrong(dict(params), "the copy came back different", gpu=[lane.position or 0])
            continue
        timing = Timing(lane.samples_ms[before:], began=began, ended=ended, inner=lane.chunk)
        score = rounded(bandwidth("copy", count, timing.median_ms))
        yield Measurement(dict(params), unit=UNIT, score=score, timing=timing, gpu=[lane.position or 0])
