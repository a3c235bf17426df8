"""B13: the same product over and over, on all GPUs at the same time: pace over time, and every result the same."""

from __future__ import annotations

import time
from typing import Any, Iterator

from gpuconsole.probes.payload.bench import data
from gpuconsole.probes.payload.bench.context import BenchContext
from gpuconsole.probes.payload.bench.lanes import Lane, drive
from gpuconsole.probes.payload.bench.measurement import Measurement, Skip
from gpuconsole.probes.payload.bench.mm import TOLERANCES, UNIT, Product, tflops
from gpuconsole.probes.payload.bench.timing import Timing, quantile, rounded

GPU_SIZE = (8192, 8192, 8192)
CPU_SIZE = (1024, 1024, 1024)
CHUNK = 50
"""Every so many results one is compared."""
_LONGEST_S = 75.0
_CPU_S = 10.0
_SPARE_S = 8.0


class Soak:
    """The product on one device, and how often its result was not the same.

    Args:
        torch: The module.
        kind: Type of number.
        shape: ``m, n, k``.
        device: Where.
        chunk: Products between two comparisons.
    """

    def __init__(self, torch: Any, kind: str, shape: tuple[int, int, int], *, device: str, chunk: int) -> None:
        self._torch = torch
        self.device = device
        self.product = Product(torch, kind, shape, device=device)
        self.product.run()
        self.error = self.product.error()
        self.first = self.bits().clone()
        self._different = torch.zeros((), dtype=torch.int64, device=device)
        self.compared = 0
        self.lane = Lane(torch, device, self.product.run, chunk=chunk, after=self._compare)

    def bits(self) -> Any:
        """The result as whole numbers, so that a comparison is of every bit."""
        out = self.product.out
        return out.view(self._torch.int32 if out.element_size() == 4 else self._torch.int16)

    def _compare(self) -> None:
        self._different.add_((self.bits() != self.first).any())
        self.compared += 1

    @property
    def different(self) -> int:
        """Results that differed from the first."""
        return int(self._different.item())


def run(context: BenchContext) -> Iterator[Measurement]:
    """One record for each device; the slowest is the headline."""
    torch = context.torch
    kind = kind_of(torch, context.device)
    side = context.option("soak_size")
    shape = (int(side),) * 3 if side else (GPU_SIZE if context.cuda else CPU_SIZE)
    seconds = float(context.option("soak_s") or (_LONGEST_S if context.cuda else _CPU_S))
    seconds = max(0.2, min(seconds, context.left_s - min(_SPARE_S, 0.2 * context.budget_s)))
    params = {"dtype": kind, "m": shape[0], "n": shape[1], "k": shape[2], "gpus": context.gpus}
    soaks = []
    devices = ["cuda:{}".format(position) for position in range(context.gpus)] or ["cpu"]
    for position, device in enumerate(devices):
        try:
            if context.cuda:
                data.allowance(torch, device)
            soaks.append(Soak(torch, kind, shape, device=device, chunk=CHUNK if context.cuda else 5))
        except (RuntimeError, Skip) as error:
            yield Measurement.failed(dict(params), error, gpu=[position] if context.cuda else [])
    if not soaks:
        return
    began = time.time()
    lanes = [soak.lane for soak in soaks]
    drive(lanes, seconds, tell=lambda done: context.report("{:.0f} of {:.0f} s".format(done, seconds)))
    found = [judge(soak, kind, shape, params=params, began=began, ended=time.time()) for soak in soaks]
    scores = [measured.score for measured in found if measured.score is not None]
    slowest = min(found, key=lambda one: one.score if one.score is not None else -1.0)
    slowest.headline = True
    if len(scores) > 1:
        slowest.values["slowest_over_fastest"] = round(min(scores) / max(scores), 4)
    for measured in found:
        yield measured


def kind_of(torch: Any, device: str) -> str:
    """The type whose units are busiest in training."""
    if device == "cpu":
        return "fp32"
    capability = torch.cuda.get_device_capability(device)
    return "bf16" if capability >= (8, 0) else "fp16" if capability >= (7, 0) else "fp32"


def judge(
    soak: Soak,
    kind: str,
    shape: tuple[int, int, int],
    *,
    params: dict[str, Any],
    began: float,
    ended: float,
) -> Measurement:
    """The record of one device."""
    samples = soak.lane.samples_ms
    position = soak.lane.position
    gpu = [] if position is None else [position]
    different = soak.different
    if different:
        why = "{} of {} results differ from the first, of the very same product".format(different, soak.compared)
        return Measurement.wrong(dict(params), why, gpu=gpu, mismatches=different, compared=soak.compared)
    if not soak.error <= TOLERANCES[kind]:
        why = "the product is off by {:.0e}".format(soak.error)
        return Measurement.wrong(dict(params), why, gpu=gpu, relative_error=soak.error)
    timing = Timing(samples, began=began, ended=ended, inner=soak.lane.chunk)
    values: dict[str, Any] = {
        "seconds": round(ended - began, 1),
        "mismatches": 0,
        "compared": soak.compared,
        "relative_error": rounded(soak.error, 2),
    }
    values.update(quarters(shape, samples))
    return Measurement(
        dict(params), unit=UNIT, score=rounded(tflops(shape, timing.median_ms)), timing=timing, values=values, gpu=gpu
    )


def quarters(shape: tuple[int, int, int], samples_ms: list[float]) -> dict[str, float]:
    """Pace in the first and the last quarter; nothing where there are fewer than eight samples."""
    quarter = len(samples_ms) // 4
    if quarter < 2:
        return {}
    first, last = sorted(samples_ms[:quarter]), sorted(samples_ms[-quarter:])
    first_tflops, last_tflops = tflops(shape, quantile(first, 0.5)), tflops(shape, quantile(last, 0.5))
    return {
        "first_quarter_tflop_per_s": rounded(first_tflops),
        "last_quarter_tflop_per_s": rounded(last_tflops),
        "last_over_first": round(last_tflops / first_tflops, 4),
    }
