"""C14: GPUs reach each other directly, and what one sends the other gets."""

from __future__ import annotations

from typing import Any

from gpuconsole.probes.payload.cards import Card, beside_full, cards, is_full, no_room
from gpuconsole.probes.payload.outcome import FAIL, OK, SKIP, WARN, Context, Outcome, count_of, first_line

_NUMBERS = 1 << 21
"""int32 numbers in a copy: 8 MiB."""
_ACS = "Look at the IOMMU and ACS settings of the host's firmware; NCCL_P2P_DISABLE=1 goes without."


def run(context: Context) -> Outcome:
    """Ask for each ordered pair whether it can, and copy between them both ways."""
    found = cards(context)
    if len(found) < 2:
        return Outcome(SKIP, "there is one GPU only")
    torch = context.torch
    pairs, full = [], []
    for one in found:
        for other in found:
            if one.position != other.position:
                context.report("a copy from {} to {}".format(one.label, other.label))
                try:
                    pairs.append(pair(torch, one, other))
                except RuntimeError as error:
                    if is_full(error):
                        full.append("{} or {}".format(one.label, other.label))
                        continue
                    pairs.append({"from": one.label, "to": other.label, "direct": None, "error": first_line(error)})
    if not pairs:
        return no_room(full[0])
    outcome = judge(pairs)
    outcome.value = matrices([card.label for card in found], pairs)
    return beside_full(outcome, full[:1])


def matrices(labels: list[str], pairs: list[dict[str, Any]]) -> dict[str, Any]:
    """The pairs as rows (from) of columns (to), in the order of ``labels``; None where nothing is known."""
    known = {(one["from"], one["to"]): one for one in pairs}
    rows = [[known.get((sender, receiver), {}) for receiver in labels] for sender in labels]
    return {
        "gpus": labels,
        "direct": [[one.get("direct") for one in row] for row in rows],
        "right": [[one.get("right") for one in row] for row in rows],
    }


def pair(torch: Any, one: Card, other: Card) -> dict[str, Any]:
    """What is to be told of copies from ``one`` to ``other``."""
    direct = bool(torch.cuda.can_device_access_peer(one.position, other.position))
    sent = torch.arange(_NUMBERS, dtype=torch.int32).mul_(2654435 + 2 * int(one.position or 0))
    arrived = sent.to(one.device).to(other.device).to("cpu")
    return {"from": one.label, "to": other.label, "direct": direct, "right": bool(torch.equal(sent, arrived))}


def judge(pairs: list[dict[str, Any]]) -> Outcome:
    """The outcome for all ordered pairs."""
    wrong = [one for one in pairs if one.get("right") is False]
    if wrong:
        why = "what {} sends to {} arrives changed".format(wrong[0]["from"], wrong[0]["to"])
        return Outcome(FAIL, why + _and(len(wrong) - 1, "pair"), _ACS)
    failed = [one for one in pairs if "error" in one]
    if failed:
        why = "a copy from {} to {} fails: {}".format(failed[0]["from"], failed[0]["to"], failed[0]["error"])
        return Outcome(FAIL, why, _ACS)
    apart = [one for one in pairs if not one["direct"]]
    if len(apart) == len(pairs):
        why = "GPUs do not reach each other directly: what they exchange goes through the host's memory"
        return Outcome(WARN, why, "It is so on many workstation cards; a bridge or another slot may help on others.")
    if apart:
        why = "{} does not reach {} directly".format(apart[0]["from"], apart[0]["to"])
        fix = "Train on GPUs that reach each other: nvidia-smi topo -p2p r shows which."
        return Outcome(WARN, why + _and(len(apart) - 1, "pair"), fix)
    return Outcome(OK, "{} reach each other directly, and copies are right".format(count_of(len(pairs), "pair")))


def _and(more: int, what: str) -> str:
    return " (and {})".format(count_of(more, "more " + what)) if more else ""
