"""C05: products, and the forward and backward pass of a small network, agree with float64 on the CPU.

Errors are relative in the norm: ``‖got - wanted‖ / ‖wanted‖``. Inputs are rounded to the type first, so that only the
arithmetic is judged.
"""

from __future__ import annotations

import math
import os
import sys
from typing import Any

from gpuconsole.probes.payload import libcuda
from gpuconsole.probes.payload.outcome import FAIL, OK, SKIP, Context, Outcome, count_of, first_line

SIZE = 512
TOLERANCES = {"float32": 1e-5, "tf32": 2e-3, "float16": 2e-3, "bfloat16": 1e-2, "float8": 5e-2, "network": 1e-4}
_SEED = 20240229


def run(context: Context) -> Outcome:
    """Compare on every GPU, else on the CPU."""
    torch = context.torch
    results: dict[str, dict[str, float | str]] = {}
    if context.cuda:
        uuids = libcuda.ask()["uuids"]
        for position in range(int(torch.cuda.device_count())):
            label = context.label(uuids[position] if position < len(uuids) else None, position)
            context.report("results on {}".format(label))
            results[label] = compare(torch, "cuda:{}".format(position))
    else:
        results["CPU"] = compare(torch, "cpu")
    outcome = judge(results, on_cpu=not context.cuda)
    outcome.value = {"device": "cuda" if context.cuda else "cpu", "errors": results, "tolerances": TOLERANCES}
    return outcome


def compare(torch: Any, device: str) -> dict[str, float | str]:
    """Name of the arithmetic → its relative error on ``device``, or the words of the failure."""
    errors: dict[str, float | str] = {}
    for kind in kinds(torch, device):
        try:
            errors[kind] = product_error(torch, device, kind)
        except RuntimeError as error:
            if "not implemented" not in str(error):  # an old torch has no half-precision product on the CPU
                errors[kind] = first_line(error)
    if has_float8(torch, device):
        try:
            errors["float8"] = float8_error(torch, device)
        except (RuntimeError, TypeError) as error:
            # Its interface changes from version to version: only a result can be wrong.
            sys.stderr.write("float8 products are not tried: {}\n".format(first_line(error)))
    try:
        errors["network"] = network_error(torch, device)
    except RuntimeError as error:
        errors["network"] = first_line(error)
    return errors


def kinds(torch: Any, device: str) -> list[str]:
    """The arithmetics that ``device`` has."""
    if device == "cpu":
        return ["float32"]  # old versions accumulate half precision in half precision here
    major = int(torch.cuda.get_device_capability(device)[0])
    return ["float32", "float16"] + (["tf32", "bfloat16"] if major >= 8 else [])


def has_float8(torch: Any, device: str) -> bool:
    """``device`` and this torch have products in float8."""
    if device == "cpu" or not (hasattr(torch, "_scaled_mm") and hasattr(torch, "float8_e4m3fn")):
        return False
    return tuple(torch.cuda.get_device_capability(device)) >= (8, 9)


def allow_tf32(torch: Any, allowed: bool) -> None:
    """Set the precision of float32 products by torch's new names where it has them.

    The two generations of names must not be mixed: reading the old after setting the new raises.
    """
    if hasattr(torch.backends, "fp32_precision"):
        word = "tf32" if allowed else "ieee"
        cudnn = torch.backends.cudnn
        for place in (torch.backends.cuda.matmul, getattr(cudnn, "conv", None), getattr(cudnn, "rnn", None)):
            if hasattr(place, "fp32_precision"):
                place.fp32_precision = word
    else:
        torch.backends.cuda.matmul.allow_tf32 = allowed
        torch.backends.cudnn.allow_tf32 = allowed


def product_error(torch: Any, device: str, kind: str) -> float:
    """Relative error of a square product of random numbers."""
    allow_tf32(torch, kind == "tf32")
    generator = torch.Generator().manual_seed(_SEED)
    dtype = torch.float32 if kind == "tf32" else getattr(torch, kind)
    one = torch.randn((SIZE, SIZE), generator=generator, dtype=torch.float64).to(dtype)
    other = torch.randn((SIZE, SIZE), generator=generator, dtype=torch.float64).to(dtype)
    got = torch.mm(one.to(device), other.to(device)).to("cpu", torch.float64)
    wanted = torch.matmul(one.to(torch.float64), other.to(torch.float64))
    return relative(got, wanted)


def float8_error(torch: Any, device: str) -> float:
    """Relative error of a square product of random numbers in float8, which needs scales and columns in a row."""
    generator = torch.Generator().manual_seed(_SEED)
    one, other = (
        torch.randn((SIZE, SIZE), generator=generator, dtype=torch.float32).to(torch.float8_e4m3fn) for _ in range(2)
    )
    wanted = torch.matmul(one.to(torch.float64), other.to(torch.float64))
    scale = torch.ones((), dtype=torch.float32).to(device)
    columns = other.to(device).t().contiguous().t()
    got = torch._scaled_mm(one.to(device), columns, scale_a=scale, scale_b=scale, out_dtype=torch.bfloat16)
    got = got[0] if isinstance(got, tuple) else got  # with a second result until 2.4
    return relative(got.to("cpu", torch.float64), wanted)


def network_error(torch: Any, device: str) -> float:
    """The largest relative error of loss and gradients of a small network in float32."""
    allow_tf32(torch, False)
    wanted = one_step(torch, "cpu", torch.float64)
    got = one_step(torch, device, torch.float32)
    return max(relative(mine, reference) for mine, reference in zip(got, wanted))


def one_step(torch: Any, device: str, dtype: Any) -> list[Any]:
    """Loss, output and every gradient of one forward and backward pass, on the CPU in float64."""
    generator = torch.Generator().manual_seed(_SEED)
    nn = torch.nn
    model = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.LayerNorm(128), nn.Linear(128, 10)).to(torch.float64)
    with torch.no_grad():
        for parameter in model.parameters():
            values = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            parameter.copy_((values * 0.1).to(torch.float32))
    inputs = torch.randn((32, 64), generator=generator, dtype=torch.float64).to(torch.float32).to(device, dtype)
    targets = torch.arange(32).remainder(10).to(device)
    model = model.to(device, dtype)
    output = model(inputs)
    loss = nn.functional.cross_entropy(output, targets)
    loss.backward()
    parts = [loss.detach(), output.detach()] + [parameter.grad for parameter in model.parameters()]
    return [part.to("cpu", torch.float64) for part in parts]


def relative(got: Any, wanted: Any) -> float:
    """``‖got - wanted‖ / ‖wanted‖``."""
    return float((got - wanted).norm() / wanted.norm())


def judge(results: dict[str, dict[str, Any]], *, on_cpu: bool) -> Outcome:
    """The outcome for the errors of each device."""
    wrong, full, worst = [], [], 0.0
    for device, errors in results.items():
        for kind, error in errors.items():
            if isinstance(error, str):
                (full if "out of memory" in error else wrong).append("{} fails on {}: {}".format(kind, device, error))
            elif not math.isfinite(error) or error > TOLERANCES[kind]:
                figure = "not a number" if not math.isfinite(error) else "off by {:.0e}".format(error)
                wrong.append(
                    "{} on {} is {}, more than {:.0e} of the right result".format(
                        kind, device, figure, TOLERANCES[kind]
                    )
                )
            else:
                worst = max(worst, error / TOLERANCES[kind])
    if wrong:
        return Outcome(FAIL, "; ".join(wrong[:3]), _remedy(wrong, on_cpu))
    if full:
        return Outcome(SKIP, full[0], "See check.gpu-memory.")
    where = "the CPU (no GPU took part)" if on_cpu else count_of(len(results), "GPU")
    return Outcome(OK, "forward and backward agree with float64 on {}".format(where))


def _remedy(wrong: list[str], on_cpu: bool) -> str:
    if os.environ.get("NVIDIA_TF32_OVERRIDE") == "1" and all(text.startswith(("float32", "network")) for text in wrong):
        return "NVIDIA_TF32_OVERRIDE=1 forces TF32: unset it to get full float32."
    if on_cpu:
        return "Go back to the image as it was published; if it stays so, test the machine's memory."
    return "Run the check again; if it stays so the card may be defective: test it with dcgmi diag."
