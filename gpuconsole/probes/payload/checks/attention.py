"""C07: which back ends of ``scaled_dot_product_attention`` work, and whether they agree with float64."""

from __future__ import annotations

import math
import warnings
from contextlib import contextmanager
from typing import Any, Iterator

from gpuconsole.probes.payload.cards import Card, beside_full, is_full, no_room, one_of_each, relative
from gpuconsole.probes.payload.outcome import FAIL, OK, SKIP, WARN, Context, Outcome, first_line

TOLERANCE = 2e-2
BACK_ENDS = {
    "flash": "FLASH_ATTENTION",
    "efficient": "EFFICIENT_ATTENTION",
    "cudnn": "CUDNN_ATTENTION",
    "math": "MATH",
}
"""Our name → torch's."""
_SHAPE = (2, 4, 256, 64)
_SEED = 20240229
_CANNOT = ("no available kernel", "no viable backend", "not supported", "not compiled", "not implemented", "invalid")


def run(context: Context) -> Outcome:
    """Try each back end alone on one GPU of each model, else on the CPU."""
    torch = context.torch
    if not hasattr(torch.nn.functional, "scaled_dot_product_attention"):
        return Outcome(SKIP, "torch {} has no attention of its own".format(torch.__version__))
    value: dict[str, Any] = {"tolerance": TOLERANCE, "back_ends": {}}
    worries, full = [], []
    for card in one_of_each(context):
        context.report("attention on {}".format(card.label))
        dtype = torch.float32 if card.capability is None else torch.bfloat16
        if card.capability is not None and card.capability < (8, 0):
            dtype = torch.float16
        try:
            found = compare(torch, card.device, dtype)
        except RuntimeError as error:
            if is_full(error):
                full.append(card.label)
                continue
            raise
        value["back_ends"][card.label] = found
        worries.append(judge(card, found))
    if not worries:
        return no_room(", ".join(full), value)
    outcome = next((one for status in (FAIL, WARN, OK) for one in worries if one.status == status), worries[0])
    outcome.value = value
    return beside_full(outcome, full)


def compare(torch: Any, device: str, dtype: Any) -> dict[str, float | str]:
    """Back end → its largest relative error over output and gradients, or why it does not work here."""
    generator = torch.Generator().manual_seed(_SEED)
    parts = [torch.randn(_SHAPE, generator=generator, dtype=torch.float64).to(dtype) for _ in range(4)]
    wanted = _by_hand(torch, [part.double() for part in parts])
    results: dict[str, float | str] = {}
    for name, torchs_name in BACK_ENDS.items():
        try:
            with warnings.catch_warnings(), only(torch, torchs_name) as offered:
                warnings.simplefilter("ignore")
                if not offered:
                    continue
                got = _by_torch(torch, [part.to(device) for part in parts])
            errors = [relative(mine, reference) for mine, reference in zip(got, wanted)]
            results[name] = max(error if math.isfinite(error) else math.inf for error in errors)
        except RuntimeError as error:
            if is_full(error):
                raise
            results[name] = first_line(error, 160)
    return results


@contextmanager
def only(torch: Any, back_end: str) -> Iterator[bool]:
    """Within it only ``back_end`` (torch's name) is used; false where this torch has none of that name."""
    home = getattr(torch.nn, "attention", None)
    if home is not None and hasattr(home, "sdpa_kernel"):
        choice = getattr(home.SDPBackend, back_end, None)
        if choice is None:
            yield False
            return
        with home.sdpa_kernel(choice):
            yield True
        return
    switches = {"enable_flash": "FLASH_ATTENTION", "enable_mem_efficient": "EFFICIENT_ATTENTION", "enable_math": "MATH"}
    old = getattr(torch.backends.cuda, "sdp_kernel", None)
    if old is None or back_end not in switches.values():
        yield False
        return
    with old(**{switch: name == back_end for switch, name in switches.items()}):
        yield True


def _by_torch(torch: Any, parts: list[Any]) -> list[Any]:
    query, key, value = (part.detach().clone().requires_grad_() for part in parts[:3])
    output = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
    output.backward(parts[3])
    return [output, query.grad, key.grad, value.grad]


def _by_hand(torch: Any, parts: list[Any]) -> list[Any]:
    query, key, value = (part.detach().clone().requires_grad_() for part in parts[:3])
    length = query.shape[-2]
    scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
    hidden = torch.ones((length, length), dtype=torch.bool).tril().logical_not()
    output = torch.softmax(scores.masked_fill(hidden, -math.inf), -1) @ value
    output.backward(parts[3])
    return [output, query.grad, key.grad, value.grad]


def judge(card: Card, found: dict[str, float | str]) -> Outcome:
    """The outcome for what each back end gave on one device."""
    errors = {name: result for name, result in found.items() if not isinstance(result, str)}
    wrong = [name for name, error in errors.items() if not error < TOLERANCE]
    broken = [
        "{}: {}".format(name, words)
        for name, words in found.items()
        if isinstance(words, str) and not any(part in words.lower() for part in _CANNOT)
    ]
    if wrong:
        why = "{} attention gives wrong results on {}".format(_list(wrong), card.label)
        return Outcome(FAIL, why, "Take another version of torch; if it stays so, test the card with dcgmi diag.")
    if not errors:
        words = "; ".join(broken) or "no back end works"
        return Outcome(FAIL, "attention fails on {}: {}".format(card.label, words), "Take another version of torch.")
    works = [name for name in BACK_ENDS if name in errors]
    if works == ["math"] and card.capability is not None and card.capability >= (8, 0):
        why = "only plain attention works on {}: slow, and its memory grows with the square of the length".format(
            card.label
        )
        return Outcome(WARN, why, "Take a newer torch, which has flash attention for this card.")
    return Outcome(OK, "{} on {} agree with float64".format(_list(works), card.label))


def _list(names: list[str]) -> str:
    return names[0] if len(names) == 1 else "{} and {}".format(", ".join(names[:-1]), names[-1])
