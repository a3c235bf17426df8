"""Compiles a small function by ``torch.compile``, runs it, and compares it with the plain one.

On a GPU backward too; the CPU's back end calls the C++ compiler so often that forward alone takes half a minute there.
"""

from __future__ import annotations

import time
from typing import Any

from gpuconsole.probes.payload.apart import teller
from gpuconsole.probes.payload.outcome import first_line

_SEED = 20240229


def main(config: dict[str, Any]) -> int:
    """Compile on ``config["device"]`` and tell ``error`` (relative), or ``failure``."""
    tell = teller()
    import torch

    tell(stage="imported")
    device = str(config["device"])
    generator = torch.Generator().manual_seed(_SEED)
    inputs = torch.randn((64, 256), generator=generator)
    scale = torch.randn((256,), generator=generator)
    wanted = _pass(torch, _chain(torch), inputs, scale, device)
    begun = time.monotonic()
    try:
        got = _pass(torch, torch.compile(_chain(torch)), inputs, scale, device)
    except Exception as error:
        tell(failure=first_line(error), kind=type(error).__name__, text=str(error)[-1500:])
        return 0
    errors = [float((mine - other).norm() / other.norm()) for mine, other in zip(got, wanted)]
    tell(error=max(errors), compile_s=round(time.monotonic() - begun, 2))
    return 0


def _chain(torch: Any) -> Any:
    functional = torch.nn.functional

    def chain(inputs: Any, scale: Any) -> Any:
        return functional.layer_norm(functional.gelu(inputs * scale) + inputs, (256,))

    return chain


def _pass(torch: Any, function: Any, inputs: Any, scale: Any, device: str) -> list[Any]:
    if device == "cpu":
        return [function(inputs, scale).double()]
    inputs, scale = (part.detach().to(device).requires_grad_() for part in (inputs, scale))
    output = function(inputs, scale)
    output.pow(2).mul(0.5).add(output.sin()).sum().backward()
    return [part.detach().to("cpu").double() for part in (output, inputs.grad, scale.grad)]
