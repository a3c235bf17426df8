"""C10: the fused optimizer step gives what the plain one gives."""

from __future__ import annotations

from typing import Any

from gpuconsole.probes.payload.cards import is_full, no_room, one_of_each, relative, where
from gpuconsole.probes.payload.outcome import OK, SKIP, WARN, Context, Outcome, first_line

TOLERANCE = 1e-5
_STEPS = 5
_SEED = 20240229


def run(context: Context) -> Outcome:
    """Compare AdamW in both forms on one GPU of each model, else on the CPU."""
    errors: dict[str, float] = {}
    value = {"errors": errors, "tolerance": TOLERANCE}
    found = one_of_each(context)
    for card in found:
        context.report("AdamW on {}".format(card.label))
        try:
            plain, fused = (steps(context.torch, card.device, fused=fused) for fused in (False, True))
        except (RuntimeError, TypeError) as error:
            if is_full(error):
                return no_room(card.label, value)
            if isinstance(error, TypeError) or "fused" in str(error):
                why = "torch {} has no fused AdamW for {}".format(context.torch.__version__, card.label)
                return Outcome(SKIP, why, "", value)
            why = "the fused AdamW fails on {}: {}".format(card.label, first_line(error))
            return Outcome(WARN, why, "Train with fused=False, or take another version of torch.", value)
        errors[card.label] = max(relative(mine, other) for mine, other in zip(fused, plain))
        if not errors[card.label] < TOLERANCE:
            why = "the fused AdamW on {} is off by {:.0e}".format(card.label, errors[card.label])
            return Outcome(WARN, why, "Train with fused=False, or take another version of torch.", value)
    return Outcome(OK, "the fused AdamW agrees with the plain one on {}".format(where(found)), "", value)


def steps(torch: Any, device: str, *, fused: bool) -> list[Any]:
    """The parameters after a few steps with the same gradients."""
    generator = torch.Generator().manual_seed(_SEED)
    shapes = ((64, 64), (64,), (7, 33))
    parameters = [torch.randn(shape, generator=generator).to(device).requires_grad_() for shape in shapes]
    optimizer = torch.optim.AdamW(parameters, lr=1e-2, weight_decay=0.1, fused=fused)
    for _ in range(_STEPS):
        for parameter in parameters:
            parameter.grad = torch.randn(parameter.shape, generator=generator).to(device)
        optimizer.step()
    return [parameter.detach() for parameter in parameters]
