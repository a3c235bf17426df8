"""B05: attention forward and backward by each of torch's back ends, and by the one torch takes itself."""

from __future__ import annotations

import contextlib
import math
import warnings
from typing import Any, Callable, Iterator

from gpuconsole.probes.payload.bench import data
from gpuconsole.probes.payload.bench.context import BenchContext
from gpuconsole.probes.payload.bench.measurement import OK, Measurement, Skip
from gpuconsole.probes.payload.bench.timing import rounded, timed
from gpuconsole.probes.payload.outcome import first_line

UNIT = "TFLOP/s"
BACKENDS = {
    "flash": "FLASH_ATTENTION",
    "efficient": "EFFICIENT_ATTENTION",
    "cudnn": "CUDNN_ATTENTION",
    "math": "MATH",
}
"""Our word → torch's."""
GPU_SIZE = (4, 16, 4096, 128)
CPU_SIZE = (1, 4, 256, 64)
"""Batch, heads, length, numbers a head."""
CHECK_SIZE = (1, 2, 256, 64)
TOLERANCES = {"bf16": 3e-2, "fp16": 5e-3, "fp32": 2e-3}
"""Relative error in the norm against float64, of output and gradients."""
_MOST_S = 1.5
"""For the iterations that a median takes, where a slow back end needs longer than its share."""
_MATH_BYTES = 14
"""What the plain way takes for each pair of positions, forward and backward."""


def run(context: BenchContext) -> Iterator[Measurement]:
    """Each back end, then torch's own choice, which is the headline."""
    torch = context.torch
    if not hasattr(torch.nn.functional, "scaled_dot_product_attention"):
        raise Skip("this torch is older than scaled_dot_product_attention")
    data.allowance(torch, context.device)
    kind = kind_of(torch, context.device)
    chosen = context.option("attn_size")
    shape = tuple(int(one) for one in chosen) if chosen else (GPU_SIZE if context.cuda else CPU_SIZE)
    # Torch's own choice is measured while there is time, and told last, with the back ends that work.
    names = ["default", *(BACKENDS if context.cuda else ("flash", "math"))]
    works, headline = [], None
    for place, name in enumerate(names):
        params = params_of(name, kind, shape)
        context.report("back end {}".format(name))
        slice_s = max(0.1, context.left_s / (len(names) - place))
        try:
            measured = measure(context, name, kind, shape, slice_s=slice_s)
        except (RuntimeError, Skip, MemoryError) as error:
            measured = Measurement.failed(params, error)
        if name == "default":
            headline = measured
            if context.cuda:
                # Told at the end, it would be given the others' memory.
                headline.peak_reserved_bytes = int(torch.cuda.max_memory_reserved(context.device))
                torch.cuda.reset_peak_memory_stats(context.device)
            continue
        if measured.status == OK:
            works.append(name)
        yield measured
    if headline is not None:
        headline.headline = True
        headline.values["backends"] = works
        yield headline


def kind_of(torch: Any, device: str) -> str:
    """The type of number it is measured in."""
    if device == "cpu":
        return "fp32"
    return "bf16" if torch.cuda.get_device_capability(device) >= (8, 0) else "fp16"


def params_of(name: str, kind: str, shape: tuple[int, ...]) -> dict[str, Any]:
    """The parameters as a record has them."""
    b, h, s, d = shape
    return {"backend": name, "dtype": kind, "b": b, "h": h, "s": s, "d": d, "causal": True, "backward": True}


def flop(shape: tuple[int, ...]) -> float:
    """Floating-point operations of forward and backward: ``3.5 × 4·b·h·s²·d``, half of it, since it is causal."""
    b, h, s, d = shape
    return 3.5 * 4.0 * b * h * s * s * d / 2.0


def measure(context: BenchContext, name: str, kind: str, shape: tuple[int, ...], *, slice_s: float) -> Measurement:
    """One back end: there at all, right in small, then timed."""
    torch, device = context.torch, context.device
    params = params_of(name, kind, shape)
    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}[kind]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            wrong = error_of(torch, name, dtype, device=device)
        except RuntimeError as error:
            return Measurement.failed(params, unavailable(error, [str(one.message) for one in said]))
    if not wrong <= TOLERANCES[kind]:
        why = "the result is off by {:.0e}, more than {:.0e} of the right one".format(wrong, TOLERANCES[kind])
        return Measurement.wrong(params, why, relative_error=wrong)
    b, h, s, _ = shape
    if name == "math":
        data.need(torch, device, _MATH_BYTES * b * h * s * s)
    else:
        data.need(torch, device, 12 * math.prod(shape) * 4)
    tensors = inputs(torch, shape, dtype, device=device)
    step = stepper(torch, name, *tensors)
    try:
        most_s = max(slice_s, min(_MOST_S, 2 * context.budget_s))
        timing = timed(torch, step, device=device, min_s=0.5 * slice_s, heat_s=0.2 * slice_s, most_s=most_s)
    except RuntimeError as error:
        return Measurement.failed(params, unavailable(error, []))
    score = flop(shape) / timing.median_s / 1e12
    return Measurement(
        params, unit=UNIT, score=rounded(score), timing=timing, values={"relative_error": rounded(wrong, 2)}
    )


def unavailable(error: RuntimeError, said: list[str]) -> Exception:
    """A back end that is not for this card or build is no failure; ``said`` are the warnings torch gives its reason in.

    Of several, the one that speaks of the card or the build tells most.
    """
    words = str(error)
    if "No available kernel" in words or "no viable backend" in words.lower() or "not compiled" in words:
        empty = ("not used because", "runtime disabled")  # of the back ends that were not asked for
        reasons = [first_line(text) for text in said if text.strip() and not any(word in text for word in empty)]
        return Skip("not available here: {}".format(first_line(reasons[0] if reasons else error)))
    return error


def inputs(torch: Any, shape: tuple[int, ...], dtype: Any, *, device: str) -> tuple[Any, Any, Any, Any]:
    """Query, key, value and the gradient of the output."""
    generator = data.seeded(torch, device)
    q, k, v, grad = (data.random_matrix(torch, shape, dtype, device=device, generator=generator) for _ in range(4))
    for one in (q, k, v):
        one.requires_grad_(True)
    return q, k, v, grad


def stepper(torch: Any, name: str, q: Any, k: Any, v: Any, grad: Any) -> Callable[[], tuple[Any, ...]]:
    """Forward and backward once; output and gradients are what it returns."""
    attend = torch.nn.functional.scaled_dot_product_attention

    def step() -> tuple[Any, ...]:
        with only(torch, name):
            out = attend(q, k, v, is_causal=True)
        return (out, *torch.autograd.grad(out, (q, k, v), grad))

    return step


def only(torch: Any, name: str) -> Any:
    """A context in which torch may take this back end alone; for ``default`` any.

    Raises:
        Skip: This torch does not have it.
    """
    if name == "default":
        return contextlib.nullcontext()
    attention = getattr(torch.nn, "attention", None)
    if attention is None or not hasattr(attention, "sdpa_kernel"):
        try:
            from torch.nn import attention
        except ImportError:
            attention = None
    if attention is not None and hasattr(attention, "sdpa_kernel"):
        backend = getattr(attention.SDPBackend, BACKENDS[name], None)
        if backend is None:
            raise Skip("this torch has no such back end")
        return attention.sdpa_kernel(backend)
    if name == "cudnn":
        raise Skip("this torch has no such back end")
    flags = {
        "enable_flash": name == "flash",
        "enable_mem_efficient": name == "efficient",
        "enable_math": name == "math",
    }
    return torch.backends.cuda.sdp_kernel(**flags)


def error_of(torch: Any, name: str, dtype: Any, *, device: str) -> float:
    """The largest relative error of output and gradients, in small, against float64 on the CPU."""
    tensors = inputs(torch, CHECK_SIZE, dtype, device=device)
    got = stepper(torch, name, *tensors)()
    exact = [one.detach().to("cpu", torch.float64) for one in tensors]
    wanted = reference(torch, *exact)
    return max(
        float((mine.detach().to("cpu", torch.float64) - right.detach()).norm() / right.detach().norm())
        for mine, right in zip(got, wanted)
    )


def reference(torch: Any, q: Any, k: Any, v: Any, grad: Any) -> tuple[Any, ...]:
    """Attention written out."""
    q, k, v = (one.requires_grad_(True) for one in (q, k, v))
    length = q.shape[-2]
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    hidden = torch.ones((length, length), dtype=torch.bool).triu(1)
    out = torch.softmax(scores.masked_fill(hidden, float("-inf")), dim=-1) @ v
    return (out, *torch.autograd.grad(out, (q, k, v), grad))
