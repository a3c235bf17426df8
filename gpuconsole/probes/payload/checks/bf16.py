"""C09: bfloat16 is the card's own, not emulated."""

from __future__ import annotations

import re
from typing import Any

from gpuconsole.probes.payload import environment
from gpuconsole.probes.payload.cards import Card, cards
from gpuconsole.probes.payload.outcome import OK, SKIP, WARN, Context, Outcome, count_of, first_line

_TOLERANCE = 1e-2
_SEED = 20240229


def run(context: Context) -> Outcome:
    """Ask every GPU; on the CPU look whether a product in bfloat16 works, and by which instructions."""
    if not context.cuda:
        return on_cpu(context.torch)
    native = {card.label: is_native(context.torch, card) for card in cards(context)}
    outcome = judge(native)
    outcome.value = {"native": native}
    return outcome


def is_native(torch: Any, card: Card) -> bool:
    """The card computes bfloat16 itself: Ampere and newer do."""
    try:
        with torch.cuda.device(card.position):
            return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    except TypeError:  # older than 2.4: no such question, and its answer would count emulation in
        return card.capability is not None and card.capability >= (8, 0)


def judge(native: dict[str, bool]) -> Outcome:
    """The outcome for whether each GPU has it."""
    lacking = [label for label, has in native.items() if not has]
    if lacking:
        why = "{} only emulates bfloat16, which is slow".format(", ".join(lacking))
        if len(lacking) > 1:
            why = "{} only emulate bfloat16, which is slow".format(", ".join(lacking))
        return Outcome(WARN, why, "Train in float16 with a gradient scaler there.")
    return Outcome(OK, "{} compute{} bfloat16".format(count_of(len(native), "GPU"), "s" if len(native) == 1 else ""))


def on_cpu(torch: Any) -> Outcome:
    """The outcome where there is no GPU."""
    generator = torch.Generator().manual_seed(_SEED)
    one, other = (torch.randn((64, 64), generator=generator, dtype=torch.float64).bfloat16() for _ in range(2))
    try:
        got = torch.mm(one, other).double()
    except RuntimeError as error:
        return Outcome(SKIP, "torch has no bfloat16 products on the CPU: {}".format(first_line(error)))
    wanted = one.double() @ other.double()
    error = float((got - wanted).norm() / wanted.norm())
    instructions = sorted(set(re.findall(r"\b(avx512_bf16|amx_bf16|bf16)\b", environment.read("/proc/cpuinfo") or "")))
    value = {"cpu_instructions": instructions, "error": error}
    if not error < _TOLERANCE:
        why = "a product in bfloat16 on the CPU is off by {:.0e}".format(error)
        return Outcome(WARN, why, "Take another version of torch.", value)
    how = "by instructions of its own" if instructions else "without instructions of its own, which is slow"
    return Outcome(OK, "the CPU computes bfloat16 {} (no GPU took part)".format(how), "", value)
