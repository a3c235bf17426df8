"""C06: convolutions, forward and backward, agree with float64 on the CPU; on a GPU they are cuDNN's."""

from __future__ import annotations

import math
from typing import Any

from gpuconsole.probes.payload import environment
from gpuconsole.probes.payload.cards import beside_full, cards, is_full, no_room, relative, where
from gpuconsole.probes.payload.checks.numerics import allow_tf32
from gpuconsole.probes.payload.outcome import FAIL, OK, WARN, Context, Outcome, first_line

TOLERANCE = 1e-4
_SEED = 20240229
SHAPES: tuple[tuple[str, tuple[int, ...], tuple[int, ...], dict[str, int]], ...] = (
    ("3x3", (8, 16, 32, 32), (32, 16, 3, 3), {"padding": 1}),
    ("grouped", (4, 32, 28, 28), (64, 4, 3, 3), {"padding": 1, "stride": 2, "groups": 8}),
    ("dilated", (2, 8, 40, 40), (16, 8, 5, 5), {"dilation": 2}),
)
"""Name, shape of the input, shape of the weights, options."""


def run(context: Context) -> Outcome:
    """Compare three convolutions on every GPU, else on the CPU."""
    torch = context.torch
    value: dict[str, Any] = {"cudnn": None, "tolerance": TOLERANCE, "errors": {}}
    found = cards(context)
    if context.cuda:
        problem = cudnn_problem(torch, value)
        if problem is not None:
            return problem
    allow_tf32(torch, False)
    wanted = {name: _wanted(torch, name) for name, _, _, _ in SHAPES}
    full: list[str] = []
    for card in found:
        context.report("convolutions on {}".format(card.label))
        try:
            value["errors"][card.label] = {name: error_of(torch, card.device, name, wanted[name]) for name in wanted}
        except RuntimeError as error:
            if is_full(error):
                full.append(card.label)
                continue
            why = "a convolution fails on {}: {}".format(card.label, first_line(error))
            fix = "Most often another cuDNN is in the way: pip list, and LD_LIBRARY_PATH; else take another image."
            return Outcome(FAIL, why, fix, value)
    if not value["errors"]:
        return no_room(", ".join(full), value)
    outcome = judge(value["errors"], where(found), value["cudnn"])
    outcome.value = value
    return beside_full(outcome, full)


def cudnn_problem(torch: Any, value: dict[str, Any]) -> Outcome | None:
    """What is wrong with the cuDNN that torch finds; its version goes into ``value``."""
    try:
        value["cudnn"] = environment.dotted_cudnn(torch.backends.cudnn.version())
        usable = bool(torch.backends.cudnn.is_available())
    except RuntimeError as error:
        return Outcome(
            FAIL,
            "torch finds a cuDNN that does not fit: {}".format(first_line(error)),
            "Take the other cuDNN out of LD_LIBRARY_PATH, or install the one that torch asks for.",
            value,
        )
    if not usable:
        return Outcome(WARN, "torch has no cuDNN", "Take an image with cuDNN: convolutions are slow without.", value)
    return None


def error_of(torch: Any, device: str, name: str, wanted: list[Any]) -> float:
    """The largest relative error of output and gradients of the convolution called ``name``."""
    inputs, kernel, options = _operands(torch, name)
    got = _pass(torch, inputs.to(device), kernel.to(device), options)
    errors = [relative(mine, reference) for mine, reference in zip(got, wanted)]
    return max(error if math.isfinite(error) else math.inf for error in errors)


def _wanted(torch: Any, name: str) -> list[Any]:
    """Output and gradients in float64, on the CPU."""
    inputs, kernel, options = _operands(torch, name)
    return _pass(torch, inputs.double(), kernel.double(), options)


def _operands(torch: Any, name: str) -> tuple[Any, Any, dict[str, int]]:
    _, shape, weights, options = next(one for one in SHAPES if one[0] == name)
    generator = torch.Generator().manual_seed(_SEED)
    inputs = torch.randn(shape, generator=generator, dtype=torch.float64).float()
    kernel = torch.randn(weights, generator=generator, dtype=torch.float64).float()
    return inputs, kernel, options


def _pass(torch: Any, inputs: Any, kernel: Any, options: dict[str, int]) -> list[Any]:
    inputs, kernel = inputs.requires_grad_(), kernel.requires_grad_()
    output = torch.nn.functional.conv2d(inputs, kernel, **options)
    (output * output).sum().backward()
    return [output, inputs.grad, kernel.grad]


def judge(errors: dict[str, dict[str, float]], place: str, cudnn: str | None) -> Outcome:
    """The outcome for the errors by device and convolution."""
    wrong = [
        "the {} convolution on {} is {}".format(
            name, device, "not a number" if not math.isfinite(error) else "off by {:.0e}".format(error)
        )
        for device, by_name in errors.items()
        for name, error in by_name.items()
        if not error < TOLERANCE
    ]
    if wrong:
        fix = "Run the check again; if it stays so, take another image, or test the card with dcgmi diag."
        return Outcome(FAIL, "; ".join(wrong[:3]), fix)
    by = "" if cudnn is None else ", by cuDNN {}".format(cudnn)
    return Outcome(OK, "forward and backward agree with float64 on {}{}".format(place, by))
