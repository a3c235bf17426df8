"""B01: matrix products by type of number, with random numbers, the cache emptied before each."""

from __future__ import annotations

import time
from typing import Any, Callable, Iterator

from gpuconsole.probes.payload.bench import data
from gpuconsole.probes.payload.bench.context import BenchContext
from gpuconsole.probes.payload.bench.lanes import Lane, drive
from gpuconsole.probes.payload.bench.measurement import Measurement, Skip
from gpuconsole.probes.payload.bench.timing import Timing, clock_of, rounded, timed
from gpuconsole.probes.payload.checks.numerics import allow_tf32

UNIT = "TFLOP/s"
SQUARE = (8192, 8192, 8192)
SMALL = (4096, 4096, 4096)
TALL = (16384, 4096, 4096)
CPU_SIZE = (1024, 1024, 1024)
TOLERANCES = {"fp32": 1e-5, "tf32": 2e-3, "fp16": 5e-3, "bf16": 1e-2, "fp8": 1e-2}
"""Relative error in the norm; the operands are rounded first, so that only arithmetic and result are judged."""
_HEAT_S = {"quick": 3.0, "full": 12.0, "cpu": 0.3}
_TOGETHER_S = 1.6
_HEADLINE_WEIGHT = 4
"""The headline has so many times the time of the others: a card at its power limit lets its clock swing for seconds."""
_ROWS = 1024


def run(context: BenchContext) -> Iterator[Measurement]:
    """Each type, the headline first; then the headline's on all GPUs at the same time."""
    torch = context.torch
    data.allowance(torch, context.device)
    kinds = kinds_of(torch, context.device)
    flush = data.flusher(torch, context.device)
    jobs = [(kind, shape) for kind in kinds for shape in shapes_of(kind, context)]
    heat_s = min(_HEAT_S[context.pace], 0.4 * context.budget_s)
    reserve = _TOGETHER_S if context.gpus > 1 else 0.0
    best: dict[tuple[str, Any], float] = {}
    for place, (kind, shape) in enumerate(jobs):
        params = params_of(context, kind, shape)
        weight, rest = (_HEADLINE_WEIGHT if place == 0 else 1), len(jobs) - place - 1
        slice_s = max(0.2, (context.left_s - heat_s - reserve) * weight / (weight + rest))
        context.report("{} {}".format(kind, "x".join(str(side) for side in shape)))
        try:
            measured = measure(context, kind, shape, flush=flush, heat_s=heat_s or 0.3 * slice_s, slice_s=slice_s)
        except (RuntimeError, Skip, AttributeError, TypeError) as error:
            measured = Measurement.failed(params, error)
        measured.headline = place == 0
        if measured.score is not None:
            heat_s = 0.0  # the card is warm from here on
            best[kind, shape] = measured.score
            add_ratios(measured, kind, shape, best)
        yield measured
    allow_tf32(torch, False)
    if context.gpus > 1:
        for measured in together(context, *jobs[0]):
            yield measured


def kinds_of(torch: Any, device: str) -> list[str]:
    """The types that ``device`` has, the one of the headline first."""
    if device == "cpu":
        return ["fp32", "bf16"]
    capability = tuple(torch.cuda.get_device_capability(device))
    if capability < (7, 0):
        return ["fp32", "fp16"]
    if capability < (8, 0):
        return ["fp16", "fp32", "bf16"]  # the last is emulated there, which its pace shows
    return ["bf16", "fp16", "tf32", "fp32"] + (["fp8"] if capability >= (8, 9) else [])


def shapes_of(kind: str, context: BenchContext) -> list[tuple[int, int, int]]:
    """``m, n, k`` of the products with this type."""
    chosen = context.option("mm_size")
    if chosen:
        return [(int(chosen), int(chosen), int(chosen))]
    if not context.cuda:
        return [CPU_SIZE if kind == "fp32" else (512, 512, 512)]
    slow = kind == "fp32" or (kind == "bf16" and context.torch.cuda.get_device_capability(context.device) < (8, 0))
    shapes = [SMALL] if slow else [SQUARE]
    if context.full:
        shapes += [TALL] if slow else [SMALL, TALL]
    return shapes


def params_of(context: BenchContext, kind: str, shape: tuple[int, int, int]) -> dict[str, Any]:
    """The parameters as a record has them."""
    m, n, k = shape
    return {
        "dtype": kind,
        "m": m,
        "n": n,
        "k": k,
        "data": str(context.option("data", "randn")),
        "flush": context.cuda,
    }


def flop(shape: tuple[int, int, int]) -> float:
    """Floating-point operations of one product: ``2MNK``."""
    m, n, k = shape
    return 2.0 * m * n * k


def tflops(shape: tuple[int, int, int], ms: float) -> float:
    """TFLOP/s of one product that takes so many milliseconds."""
    return flop(shape) / (ms * 1e-3) / 1e12


def measure(
    context: BenchContext,
    kind: str,
    shape: tuple[int, int, int],
    *,
    flush: Callable[[], object] | None,
    heat_s: float,
    slice_s: float,
) -> Measurement:
    """One product: checked, warmed up, timed with the cache emptied, and once more back to back."""
    torch, device = context.torch, context.device
    params = params_of(context, kind, shape)
    product = Product(torch, kind, shape, device=device, zeros=params["data"] == "zeros")
    timing = timed(torch, product.run, device=device, min_s=0.45 * slice_s, flush=flush, heat_s=heat_s)
    error = product.error()
    if not error <= TOLERANCES[kind]:
        return Measurement.wrong(params, off_by(kind, error), relative_error=error)
    sustained_ms = clock_of(torch, device).pace_ms(product.run, min(1.5, 0.2 * slice_s))
    return Measurement(
        params,
        unit=UNIT,
        score=rounded(tflops(shape, timing.median_ms)),
        timing=timing,
        values={
            "sustained_tflop_per_s": rounded(tflops(shape, sustained_ms)),
            "relative_error": rounded(error, 2),
            "heat_s": round(timing.heat_s, 2),
        },
    )


def off_by(kind: str, error: float) -> str:
    """Why a product with such an error is wrong."""
    return "the product is off by {:.0e}, more than {:.0e} of the right result".format(error, TOLERANCES[kind])


class Product:
    """Two random matrices and their product.

    Args:
        torch: The module.
        kind: ``bf16``, ``fp16``, ``tf32``, ``fp32`` or ``fp8``.
        shape: ``m, n, k``.
        device: Where they are.
        zeros: All numbers are 0, which is quicker than any real work and so never the default.
    """

    def __init__(self, torch: Any, kind: str, shape: tuple[int, int, int], *, device: str, zeros: bool = False) -> None:
        self._torch = torch
        m, n, k = shape
        dtypes = {"bf16": "bfloat16", "fp16": "float16", "fp8": "float8_e4m3fn"}
        name = dtypes.get(kind, "float32")
        if not hasattr(torch, name):
            raise Skip("this torch has no {}".format(name))
        dtype, generator = getattr(torch, name), data.seeded(torch, device)
        self.a = data.random_matrix(torch, (m, k), dtype, device=device, generator=generator)
        # The second operand of an fp8 product must lie by columns.
        stored = data.random_matrix(
            torch, (n, k) if kind == "fp8" else (k, n), dtype, device=device, generator=generator
        )
        self.b = stored.t() if kind == "fp8" else stored
        if zeros:
            self.a.zero_()
            stored.zero_()
        allow_tf32(torch, kind == "tf32")
        self.out: Any = None
        if kind == "fp8":
            self.run = scaled(torch, self)
        else:
            self.out = torch.empty((m, n), dtype=dtype, device=device)
            self.run = self._plain

    def _plain(self) -> None:
        self._torch.mm(self.a, self.b, out=self.out)

    def error(self) -> float:
        """How far ``out`` is from the right product, in the norm, seen through a random vector in float64."""
        torch = self._torch
        x = torch.randn(self.b.shape[1], dtype=torch.float64, device=self.b.device)
        wanted = times(torch, self.a, times(torch, self.b, x))
        got = times(torch, self.out, x)
        size = float(wanted.norm())
        return float((got - wanted).norm()) / size if size > 0 else float(got.norm())


def times(torch: Any, matrix: Any, x: Any) -> Any:
    """``matrix @ x`` in float64, of a matrix of any type, a part at a time."""
    parts = []
    for first in range(0, matrix.shape[0], _ROWS):
        part = matrix[first : first + _ROWS]
        # float8 is converted by way of float32, the only one every torch can.
        parts.append(part.to(torch.float32).to(torch.float64) @ x)
    return torch.cat(parts)


def scaled(torch: Any, product: Product) -> Callable[[], None]:
    """An fp8 product with a bfloat16 result."""
    if not hasattr(torch, "_scaled_mm"):
        raise Skip("this torch has no product of fp8")
    one = torch.ones((), dtype=torch.float32, device=product.a.device)

    def run() -> None:
        result = torch._scaled_mm(product.a, product.b, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)
        product.out = result[0] if isinstance(result, tuple) else result  # before torch 2.5 with the largest value

    return run


def add_ratios(measured: Measurement, kind: str, shape: Any, best: dict[tuple[str, Any], float]) -> None:
    """How much quicker one type is than another, beside the figure that completes the pair."""
    scores = {name: score for (name, _), score in reversed(list(best.items()))}
    pairs = {"fp16": ("fp16", "bf16"), "fp32": ("bf16", "fp32"), "fp8": ("fp8", "bf16"), "tf32": ("bf16", "tf32")}
    if kind in pairs and shape in (SQUARE, SMALL, CPU_SIZE):
        over, under = pairs[kind]
        if over in scores and under in scores:
            measured.values["{}_over_{}".format(over, under)] = round(scores[over] / scores[under], 3)


def together(context: BenchContext, kind: str, shape: tuple[int, int, int]) -> Iterator[Measurement]:
    """The headline's product on all GPUs at the same time: how alike the siblings are."""
    torch = context.torch
    context.report("{} on {} GPUs at the same time".format(kind, context.gpus))
    lanes, products = [], []
    seconds = max(1.0, min(_TOGETHER_S if not context.full else 6.0, context.left_s))
    for position in range(context.gpus):
        params = dict(params_of(context, kind, shape), flush=False, together=context.gpus)
        try:
            data.allowance(torch, "cuda:{}".format(position))
            product = Product(torch, kind, shape, device="cuda:{}".format(position))
            products.append(product)
            lanes.append(Lane(torch, "cuda:{}".format(position), product.run, chunk=10))
        except (RuntimeError, Skip) as error:
            yield Measurement.failed(params, error, gpu=[position])
    drive(lanes, 0.6 * seconds)
    warm = [len(lane.samples_ms) for lane in lanes]
    began = time.time()
    drive(lanes, 0.4 * seconds)
    ended = time.time()
    for lane, before, product in zip(lanes, warm, products):
        timing = Timing(lane.samples_ms[before:], began=began, ended=ended, inner=lane.chunk)
        params = dict(params_of(context, kind, shape), flush=False, together=context.gpus)
        off = product.error()
        if not off <= TOLERANCES[kind]:
            yield Measurement.wrong(params, off_by(kind, off), gpu=[lane.position or 0], relative_error=off)
            continue
        score = rounded(tflops(shape, timing.median_ms))
        yield Measurement(params, unit=UNIT, score=score, timing=timing, gpu=[lane.position or 0])
