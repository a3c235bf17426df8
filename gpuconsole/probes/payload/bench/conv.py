"""B07: training a ResNet-50: what mixed precision, channels_last and cuDNN's own choice of kernels gain.

One switch after the other is turned on, so that the ratio of neighbours is what that switch gains.
"""

from __future__ import annotations

import math
from typing import Any, Iterator

from gpuconsole.probes.payload.bench import data, model, training
from gpuconsole.probes.payload.bench.context import BenchContext
from gpuconsole.probes.payload.bench.measurement import Measurement, Skip
from gpuconsole.probes.payload.bench.timing import timed

UNIT = "images/s"
CLASSES = 1000
BATCHES = (64, 32, 16)
PIXELS = 224
_BYTES_PER_IMAGE = 200 << 20
"""What an image takes in float32, forward and backward, estimated high."""
_CUDNN_BYTES = 1 << 30
"""Room for what cuDNN takes to work in."""
_RATE = 0.002
_FEWEST = 10


class Variant:
    """One combination of the switches."""

    def __init__(self, precision: str, *, channels_last: bool, autotune: bool) -> None:
        self.precision = precision
        self.channels_last = channels_last
        self.autotune = autotune

    @property
    def name(self) -> str:
        """For the names of ratios."""
        parts = [self.precision, "channels_last" if self.channels_last else "", "autotune" if self.autotune else ""]
        return "_".join(part for part in parts if part)

    def params(self, batch: int, pixels: int) -> dict[str, Any]:
        """What a record says of it."""
        return {
            "precision": self.precision,
            "channels_last": self.channels_last,
            "autotune": self.autotune,
            "batch": batch,
            "pixels": pixels,
        }


def variants(kinds: list[str], *, on_gpu: bool) -> list[Variant]:
    """The combinations, that of all switches first; ``kinds`` are the device's precisions, the best first."""
    best = kinds[0]
    chosen = [Variant(best, channels_last=True, autotune=False), Variant(best, channels_last=False, autotune=False)]
    if on_gpu:
        chosen.insert(0, Variant(best, channels_last=True, autotune=True))
    for kind in ("tf32", "fp32", "bf16"):
        if kind in kinds and kind != best:
            chosen.append(Variant(kind, channels_last=False, autotune=False))
    return chosen


def run(context: BenchContext) -> Iterator[Measurement]:
    """Train with each combination; the last record tells what each switch gained."""
    torch = context.torch
    chosen = variants(training.precisions(torch, context.device), on_gpu=context.cuda)
    batch, pixels = shape_for(context)
    if not batch:
        yield Measurement.skipped(chosen[0].params(BATCHES[-1], pixels), "memory: even the smallest batch is too much")
        return
    speeds: dict[str, float] = {}
    before = torch.backends.cudnn.benchmark
    try:
        for number, variant in enumerate(chosen):
            params = variant.params(batch, pixels)
            context.report("training a ResNet, {}".format(variant.name.replace("_", " ")))
            torch.backends.cudnn.benchmark = variant.autotune
            try:
                if speeds:
                    training.see_time(context.left_s, _FEWEST * batch / min(speeds.values()))
                measurement = measure(context, variant, batch, pixels, slice_s=context.budget_s * 0.6 / len(chosen))
            except Exception as error:
                measurement = Measurement.failed(params, error)
            if measurement.score is not None:
                speeds[variant.name] = measurement.score
            measurement.headline = number == 0
            if number == len(chosen) - 1:
                measurement.values.update(gains(chosen, speeds))
            yield measurement
    finally:
        torch.backends.cudnn.benchmark = before


def shape_for(context: BenchContext) -> tuple[int, int]:
    """Images a step and their width; no images when they do not fit."""
    if not context.cuda:
        return 4, 64
    try:
        allowed = data.allowance(context.torch, context.device)
    except Skip:
        return 0, PIXELS
    fitting = [batch for batch in BATCHES if batch * _BYTES_PER_IMAGE + _CUDNN_BYTES <= allowed]
    return (fitting[0] if fitting else 0), PIXELS


def measure(context: BenchContext, variant: Variant, batch: int, pixels: int, *, slice_s: float) -> Measurement:
    """Train one ResNet and look at its losses."""
    torch, device = context.torch, context.device
    params = variant.params(batch, pixels)
    trainer = network = images = labels = optimizer = None
    try:
        network, images, labels = parts(torch, device, batch, pixels, small=not context.cuda)
        if variant.channels_last:
            network = network.to(memory_format=torch.channels_last)
            images = images.contiguous(memory_format=torch.channels_last)
        optimizer = torch.optim.SGD(network.parameters(), lr=_RATE, momentum=0.9)
        trainer = training.Trainer(
            torch, network, (images, labels), optimizer, device=device, precision=variant.precision, clip=False
        )
        timing = timed(torch, trainer.step, device=device, min_s=slice_s, heat_s=slice_s / 3, most_s=2 * slice_s)
        losses = trainer.losses()
    finally:
        trainer = network = images = labels = optimizer = None
        training.let_go(torch, device)
    # Activations of a ResNet that was not trained yet are far from those of a language model: its first loss is less
    # near the logarithm of its classes.
    fault = training.fault_of(losses, math.log(CLASSES), tolerance=0.3)
    if fault:
        return Measurement.wrong(params, fault, loss_first=losses[0], loss_last=losses[-1])
    values = {"loss_first": round(losses[0], 4), "loss_last": round(losses[-1], 4)}
    return Measurement(params, unit=UNIT, score=round(batch / timing.median_s, 2), timing=timing, values=values)


def parts(torch: Any, device: str, batch: int, pixels: int, *, small: bool) -> tuple[Any, Any, Any]:
    """The network, and the images and labels it is trained on."""
    torch.manual_seed(0)
    network = model.ResNet((1, 1, 1, 1), width=16) if small else model.ResNet()
    generator = data.seeded(torch, "cpu")
    images = torch.randn((batch, 3, pixels, pixels), generator=generator)
    labels = torch.randint(CLASSES, (batch,), generator=generator)
    return network.to(device), images.to(device), labels.to(device)


def gains(chosen: list[Variant], speeds: dict[str, float]) -> dict[str, float]:
    """What each switch gained, as a ratio of speeds, and all of them together."""
    found: dict[str, float] = {}
    pairs = [(chosen[place - 1], chosen[place]) for place in range(1, len(chosen))]
    for faster, slower in [*pairs, (chosen[0], chosen[-1])]:
        one, other = speeds.get(faster.name), speeds.get(slower.name)
        if one and other:
            found["{}_over_{}".format(faster.name, slower.name)] = round(one / other, 4)
    return found
