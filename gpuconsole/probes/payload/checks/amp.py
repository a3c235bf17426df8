"""C08: a training step in mixed precision is finite, and an infinite gradient skips the step and halves the scale."""

from __future__ import annotations

import warnings
from typing import Any

from gpuconsole.probes.payload.cards import Card, is_full, no_room, one_of_each
from gpuconsole.probes.payload.outcome import FAIL, OK, SKIP, Context, Outcome, first_line

SCALE = 1024.0
_SEED = 20240229


def run(context: Context) -> Outcome:
    """Train two steps on one GPU of each model in float16, else on the CPU in bfloat16."""
    torch = context.torch
    value: dict[str, Any] = {"results": {}}
    found = one_of_each(context)
    for card in found:
        context.report("mixed precision on {}".format(card.label))
        try:
            value["results"][card.label] = result = two_steps(torch, card)
        except RuntimeError as error:
            if is_full(error):
                return no_room(card.label, value)
            if card.position is None and "not implemented" in str(error):
                return Outcome(SKIP, "this torch has no mixed precision for the CPU", "", value)
            why = "a step in mixed precision fails on {}: {}".format(card.label, first_line(error))
            return Outcome(FAIL, why, "Take another version of torch.", value)
        outcome = judge(card.label, result)
        if outcome.status != OK:
            outcome.value = value
            return outcome
    dtype = next(iter(value["results"].values()))["dtype"]
    place = "the CPU (no GPU took part)" if found[0].position is None else found[0].label
    return Outcome(OK, "a step in {} on {} is finite, and an overflow is skipped".format(dtype, place), "", value)


def scaler_of(torch: Any, kind: str) -> Any:
    """A gradient scaler by torch's newer name, else by the older; None where there is none for ``kind``."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if hasattr(torch.amp, "GradScaler"):
            return torch.amp.GradScaler(kind, init_scale=SCALE)
        return torch.cuda.amp.GradScaler(init_scale=SCALE) if kind == "cuda" else None


def two_steps(torch: Any, card: Card) -> dict[str, Any]:
    """What came of one good step and one with an infinite gradient."""
    dtype = torch.bfloat16 if card.position is None else torch.float16
    generator = torch.Generator().manual_seed(_SEED)
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.1)
    model = model.to(card.device)
    inputs = torch.randn((32, 64), generator=generator).to(card.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = scaler_of(torch, card.kind)
    before = _copy(model)
    loss = _step(torch, model, inputs, optimizer, scaler, dtype=dtype, kind=card.kind)
    between = _copy(model)
    result: dict[str, Any] = {
        "dtype": str(dtype).replace("torch.", ""),
        "loss": float(loss),
        "finite": bool(torch.isfinite(loss)) and all(bool(torch.isfinite(part).all()) for part in between),
        "moved": any(not torch.equal(mine, old) for mine, old in zip(between, before)),
        "skipped": None,
        "scale": None,
    }
    if scaler is not None:
        _step(torch, model, inputs, optimizer, scaler, dtype=dtype, kind=card.kind, overflow=True)
        result["skipped"] = all(torch.equal(mine, old) for mine, old in zip(_copy(model), between))
        result["scale"] = float(scaler.get_scale())
    return result


def _copy(model: Any) -> list[Any]:
    return [parameter.detach().clone() for parameter in model.parameters()]


def _step(
    torch: Any, model: Any, inputs: Any, optimizer: Any, scaler: Any, *, dtype: Any, kind: str, overflow: bool = False
) -> Any:
    optimizer.zero_grad()
    with torch.autocast(device_type=kind, dtype=dtype):
        loss = model(inputs).float().pow(2).mean()
    if scaler is None:
        loss.backward()
        optimizer.step()
        return loss.detach()
    scaler.scale(loss).backward()
    if overflow:
        next(iter(model.parameters())).grad.view(-1)[0] = float("inf")
    scaler.step(optimizer)
    scaler.update()
    return loss.detach()


def judge(label: str, result: dict[str, Any]) -> Outcome:
    """The outcome for what came of the two steps."""
    if not result["finite"]:
        problem = "gives no finite numbers"
    elif not result["moved"]:
        problem = "changes nothing"
    elif result["skipped"] is False:
        problem = "is taken although a gradient is infinite"
    elif result["scale"] is not None and result["scale"] != SCALE / 2:
        problem = "does not halve the scale after an infinite gradient"
    else:
        return Outcome(OK, "")
    why = "a step in {} on {} {}".format(result["dtype"], label, problem)
    return Outcome(FAIL, why, "Take another version of torch; if it stays so, test the card with dcgmi diag.")
