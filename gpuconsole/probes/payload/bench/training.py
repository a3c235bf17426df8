"""One step of training, in the arithmetic asked for: what the benchmarks that train have in common."""

from __future__ import annotations

import math
from typing import Any

from gpuconsole.probes.payload.bench.measurement import Skip
from gpuconsole.probes.payload.checks.numerics import allow_tf32

MIXED = {"bf16": "bfloat16", "fp16": "float16"}
"""The precisions that are mixed: weights stay float32, most of the work is done in this type."""
_NORM = 1.0
_FALLS_AFTER = 8
"""Steps after which the loss must have become smaller."""


class Trainer:
    """Trains ``module`` on one batch over and over, so that the loss must fall.

    Args:
        torch: The module.
        module: Called with the batch it gives the loss.
        batch: What it is called with.
        optimizer: Of the module's parameters.
        device: ``cuda:0``, or ``cpu``.
        precision: ``bf16`` and ``fp16`` (with a GradScaler on GPUs) are mixed; ``tf32`` and ``fp32`` are plain.
        clip: Gradients are clipped by their norm.
    """

    def __init__(
        self,
        torch: Any,
        module: Any,
        batch: tuple[Any, ...],
        optimizer: Any,
        *,
        device: str,
        precision: str,
        clip: bool = True,
    ) -> None:
        self._torch = torch
        self.module = module
        self._batch = batch
        self._optimizer = optimizer
        self._clip = clip
        self._kind = device.split(":")[0]
        self._dtype = getattr(torch, MIXED[precision]) if precision in MIXED else None
        self._scaler = grad_scaler(torch) if precision == "fp16" and self._kind == "cuda" else None
        self._losses: list[Any] = []
        allow_tf32(torch, precision == "tf32")

    def step(self) -> None:
        """One step. The loss stays on the device: reading it would make the GPU wait for the host."""
        loss = self._loss()
        self._optimizer.zero_grad(set_to_none=True)
        if self._scaler is None:
            loss.backward()
        else:
            self._scaler.scale(loss).backward()
        if self._clip:
            if self._scaler is not None:
                self._scaler.unscale_(self._optimizer)
            self._torch.nn.utils.clip_grad_norm_(self.module.parameters(), _NORM)
        if self._scaler is None:
            self._optimizer.step()
        else:
            self._scaler.step(self._optimizer)
            self._scaler.update()
        self._losses.append(loss.detach())

    def _loss(self) -> Any:
        if self._dtype is None:
            return self.module(*self._batch)
        with self._torch.autocast(self._kind, dtype=self._dtype):
            return self.module(*self._batch)

    def losses(self) -> list[float]:
        """The loss of every step so far."""
        return [float(loss) for loss in self._torch.stack(self._losses).float().cpu()] if self._losses else []


def grad_scaler(torch: Any) -> Any:
    """A GradScaler by its newer name, where torch has it: the older warns there."""
    if hasattr(torch.amp, "GradScaler"):
        return torch.amp.GradScaler("cuda")
    return torch.cuda.amp.GradScaler()


def fault_of(losses: list[float], expected: float, tolerance: float = 0.1) -> str:
    """What is wrong with the losses of training on one batch, as a phrase; empty when nothing is.

    Args:
        losses: One for each step.
        expected: The first, which for random weights and targets is the logarithm of the number of choices.
        tolerance: How far off it may be, as a share.
    """
    bad = [number for number, loss in enumerate(losses) if not math.isfinite(loss)]
    if bad:
        return "the loss of step {} is not a number".format(bad[0] + 1)
    if abs(losses[0] - expected) > tolerance * expected:
        return "the loss begins at {:.2f}, not near {:.2f}".format(losses[0], expected)
    later = losses[len(losses) // 2 :]
    if len(losses) >= _FALLS_AFTER and min(later) >= losses[0]:
        return "the loss did not fall in {} steps: {:.4f}, then {:.4f}".format(len(losses), losses[0], min(later))
    return ""


def precisions(torch: Any, device: str) -> list[str]:
    """What ``device`` computes in hardware, in the order to train in: the first is the one people would take."""
    if device == "cpu":
        return ["fp32", "bf16"]
    major = int(torch.cuda.get_device_capability(device)[0])
    return ["bf16", "fp16", "tf32", "fp32"] if major >= 8 else ["fp16", "fp32"] if major == 7 else ["fp32"]


def ratios(speeds: dict[str, float], base: str) -> dict[str, float]:
    """How many times as fast as ``base`` each other was: ``{"bf16_over_fp32": 2.1}``."""
    if not speeds.get(base):
        return {}
    return {
        "{}_over_{}".format(name, base): round(speed / speeds[base], 4)
        for name, speed in speeds.items()
        if name != base
    }


def let_go(torch: Any, device: str) -> None:
    """Give the memory that nothing uses any more back to the GPU."""
    if device != "cpu":
        torch.cuda.empty_cache()


def see_time(left_s: float, expected_s: float) -> None:
    """See that there is time.

    Raises:
        Skip: What comes is expected to take longer than what is left.
    """
    if expected_s > left_s:
        raise Skip("time: it would take {:.1f} s, and {:.1f} s are left".format(expected_s, max(0.0, left_s)))
