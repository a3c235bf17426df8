"""C18: the memory of every GPU gives back what was written to it."""

from __future__ import annotations

from typing import Any

from gpuconsole.probes.payload.cards import Card, beside_full, cards, is_full, no_room
from gpuconsole.probes.payload.outcome import FAIL, OK, Context, Outcome, size

MOST_BYTES = 4 << 30
SHARE = 0.4
"""Of the memory that is free: others may need the rest."""
_LEAST_BYTES = 64 << 20
_CHUNK = 16 << 20
"""int32 numbers written or compared at a time: 64 MiB."""


def run(context: Context) -> Outcome:
    """Write two patterns to a part of every GPU's memory and read them back."""
    torch = context.torch
    results, full = [], []
    for card in cards(context):
        free = int(torch.cuda.mem_get_info(card.position)[0])
        count = bytes_to_test(free)
        if count < _LEAST_BYTES:
            full.append(card.label)
            continue
        context.report("{} on {}".format(size(count), card.label))
        try:
            wrong = mismatches(torch, card, count)
        except RuntimeError as error:
            if is_full(error):
                full.append(card.label)
                continue
            raise
        finally:
            torch.cuda.empty_cache()
        results.append({"gpu": card.label, "bytes": count, "wrong": wrong})
    if not results:
        return no_room(", ".join(full))
    outcome = judge(results)
    outcome.value = {"gpus": results}
    return beside_full(outcome, full)


def bytes_to_test(free: int) -> int:
    """How much is tested where ``free`` bytes are: whole chunks, with room for two more of them."""
    whole = 4 * _CHUNK
    return max(0, min(MOST_BYTES, int(free * SHARE) - 2 * whole) // whole * whole)


def mismatches(torch: Any, card: Card, count: int) -> int:
    """Numbers that came back different. Each place has a number of its own, then its complement.

    All is written before anything is read, so that the caches cannot answer for the memory.
    """
    buffer = torch.empty(count // 4, dtype=torch.int32, device=card.device)
    numbers = torch.arange(_CHUNK, dtype=torch.int32, device=card.device)
    wrong = 0
    for inverted in (False, True):
        base = numbers.bitwise_not() if inverted else numbers
        step = -_CHUNK if inverted else _CHUNK
        for place, part in enumerate(buffer.split(_CHUNK)):
            torch.add(base, place * step, out=part)
        for place, part in enumerate(buffer.split(_CHUNK)):
            wrong += int((part - place * step).ne(base).sum().item())
    return wrong


def judge(results: list[dict[str, Any]]) -> Outcome:
    """The outcome for what each GPU gave back."""
    bad = [one for one in results if one["wrong"]]
    if bad:
        which = ", ".join("{} ({} of {} numbers)".format(one["gpu"], one["wrong"], one["bytes"] // 2) for one in bad)
        fix = "Take that card out of use, and test it with dcgmi diag -r 3."
        return Outcome(FAIL, "memory gives back what was not written: {}".format(which), fix)
    least = min(one["bytes"] for one in results)
    more = "" if len(results) == 1 else " on each GPU"
    return Outcome(OK, "{}{} gave back two patterns".format(size(least), more))
