"""B06: training a decoder, in each arithmetic the device has: tokens a second, and what mixed precision gains.

A step is forward, backward, clipping and AdamW. The score of the benchmark is that of mixed precision on size M, or the
largest below it that fits, the same in quick and full so that they can be compared; full adds size L where it fits.
"""

from __future__ import annotations

import math
from typing import Any, Iterator

from gpuconsole.probes.payload.bench import data, model, training
from gpuconsole.probes.payload.bench.context import BenchContext
from gpuconsole.probes.payload.bench.measurement import Measurement, Skip
from gpuconsole.probes.payload.bench.timing import Timing, timed

UNIT = "tokens/s"
_SLICES = {"bf16": 0.18, "fp16": 0.1, "tf32": 0.08, "fp32": 0.08}
"""Of the budget, each precision's share."""
_SLOWER = {"bf16": 1.0, "fp16": 1.2, "tf32": 3.0, "fp32": 8.0}
"""Compared with the first that ran, at most: to see beforehand whether there is time."""
_FEWEST = 10
"""Steps that a measurement takes at least: cold, to get the pace, and to tell a median."""


def run(context: BenchContext) -> Iterator[Measurement]:
    """Train in every precision; the last tells how much faster than plain float32 the others were."""
    kinds = in_order(training.precisions(context.torch, context.device))
    size = size_for(context, model.MEDIUM)
    if size is None:
        yield Measurement.skipped({"precision": kinds[0]}, "memory: even the smallest decoder would take too much")
        return
    speeds: dict[str, float] = {}
    steps: dict[str, float] = {}
    for number, precision in enumerate(kinds):
        params = dict(size.params(), precision=precision)
        context.report("training in {}, size {}".format(precision, size.name))
        try:
            if steps:
                first_s = next(iter(steps.values()))
                training.see_time(context.left_s, first_s * _SLOWER[precision] * _FEWEST)
            measurement = measure(context, size, precision, slice_s=context.budget_s * _SLICES[precision])
        except Exception as error:
            measurement = Measurement.failed(params, error)
        if measurement.score is not None:
            speeds[precision] = measurement.score
            steps[precision] = size.tokens / measurement.score
        measurement.headline = number == 0
        if number == len(kinds) - 1:
            measurement.values.update(training.ratios(speeds, "fp32"))
        yield measurement
    large = size_for(context, model.LARGE)
    if context.full and large is not None and large is not size:
        yield largest(context, large, kinds[0])


def in_order(kinds: list[str]) -> list[str]:
    """The headline's first, then plain float32, beside which all are told: a short run may end before the last."""
    return kinds[:1] + sorted(kinds[1:], key=lambda kind: kind != "fp32")


def size_for(context: BenchContext, most: model.Size) -> model.Size | None:
    """The largest decoder up to ``most`` that fits; the tiny one on a CPU."""
    if not context.cuda:
        return model.TINY
    try:
        allowed = data.allowance(context.torch, context.device)
    except Skip:
        return None
    return model.largest(allowed, tuple(size for size in model.SIZES if size.needs_bytes <= most.needs_bytes))


def largest(context: BenchContext, size: model.Size, precision: str) -> Measurement:
    """The same on the largest decoder, in ``precision``."""
    context.report("training in {}, size {}".format(precision, size.name))
    try:
        return measure(context, size, precision, slice_s=context.budget_s * 0.15)
    except Exception as error:
        return Measurement.failed(dict(size.params(), precision=precision), error)


def measure(context: BenchContext, size: model.Size, precision: str, *, slice_s: float) -> Measurement:
    """Train one decoder for ``slice_s`` seconds and look at its losses."""
    torch, device = context.torch, context.device
    params = dict(size.params(), precision=precision)
    trainer = None
    try:
        decoder = model.make_decoder(size, device)
        optimizer, fused = model.adamw(decoder)
        batch = model.batch_of(size, device)
        trainer = training.Trainer(torch, decoder, batch, optimizer, device=device, precision=precision)
        timing = timed(torch, trainer.step, device=device, min_s=slice_s, heat_s=slice_s / 4, most_s=2 * slice_s)
        losses = trainer.losses()
    finally:
        del trainer
        decoder = optimizer = batch = None
        training.let_go(torch, device)
    fault = training.fault_of(losses, math.log(size.vocabulary))
    if fault:
        return Measurement.wrong(params, fault, loss_first=losses[0], loss_last=losses[-1])
    values = figures(size, timing)
    values.update(loss_first=round(losses[0], 4), loss_last=round(losses[-1], 4), fused_optimizer=fused)
    return Measurement(params, unit=UNIT, score=values.pop("tokens_per_s"), timing=timing, values=values)


def figures(size: model.Size, timing: Timing) -> dict[str, Any]:
    """Tokens a second, and the rate of the model's own arithmetic, from which its share of a peak is computed."""
    tokens_per_s = size.tokens / timing.median_s
    return {
        "tokens_per_s": round(tokens_per_s, 1),
        "model_tflop_per_s": round(tokens_per_s * size.flop_per_token / 1e12, 4),
        "flop_per_token": size.flop_per_token,
        "parameters": size.parameters,
    }
