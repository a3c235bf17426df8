"""C12: two training runs from the same seed give the same bits when determinism is asked for."""

from __future__ import annotations

import os
from typing import Any

from gpuconsole.probes.payload.cards import is_full, no_room, one_of_each, where
from gpuconsole.probes.payload.outcome import OK, WARN, Context, Outcome, first_line

_SEED = 20240229
_WORKSPACE = "CUBLAS_WORKSPACE_CONFIG"


def run(context: Context) -> Outcome:
    """Train twice on one GPU of each model, else on the CPU, and compare every bit."""
    torch = context.torch
    value: dict[str, Any] = {"equal": {}}
    found = one_of_each(context)
    # Versions before 2.10 refuse deterministic products without it.
    ours = _WORKSPACE not in os.environ
    if ours:
        os.environ[_WORKSPACE] = ":4096:8"
    was = torch.are_deterministic_algorithms_enabled()
    state = torch.get_rng_state()
    torch.use_deterministic_algorithms(True)
    try:
        for card in found:
            context.report("the same run twice on {}".format(card.label))
            one, other = train(torch, card.device), train(torch, card.device)
            value["equal"][card.label] = all(torch.equal(mine, theirs) for mine, theirs in zip(one, other))
    except RuntimeError as error:
        if is_full(error):
            return no_room(card.label, value)
        why = "training with deterministic algorithms fails on {}: {}".format(card.label, first_line(error))
        return Outcome(WARN, why, "Do not count on runs that repeat, or take another version of torch.", value)
    finally:
        torch.use_deterministic_algorithms(was)
        torch.set_rng_state(state)
        if ours:
            os.environ.pop(_WORKSPACE, None)
    unequal = [label for label, equal in value["equal"].items() if not equal]
    if unequal:
        why = "the same run gives other bits the second time on {}".format(", ".join(unequal))
        return Outcome(WARN, why, "Run it again; a card that differs from run to run may be defective.", value)
    return Outcome(OK, "the same run gives the same bits twice on {}".format(where(found)), "", value)


def train(torch: Any, device: str) -> list[Any]:
    """Every parameter after two steps of a small network that starts from a fixed seed."""
    torch.manual_seed(_SEED)
    nn = torch.nn
    convolution = nn.Conv2d(3, 8, 3, padding=1)
    norm, linear, table = nn.BatchNorm2d(8), nn.Linear(8, 16), nn.Embedding(32, 16)
    layers = nn.ModuleList([convolution, norm, linear, table]).to(device)
    optimizer = torch.optim.SGD(layers.parameters(), lr=0.1, momentum=0.9)
    pictures = torch.randn((8, 3, 16, 16)).to(device)
    words = torch.randint(0, 32, (8, 64)).to(device)
    for _ in range(2):
        optimizer.zero_grad()
        seen = nn.functional.dropout(norm(convolution(pictures)).relu().mean((2, 3)), 0.1)
        loss = (linear(seen) - table(words).mean(1)).pow(2).mean()
        loss.backward()
        optimizer.step()
    return [parameter.detach().to("cpu") for parameter in layers.parameters()]
