"""C04: torch was compiled for every card here, and a kernel really runs on it."""

from __future__ import annotations

import re
from typing import Any

from gpuconsole.probes.payload import libcuda
from gpuconsole.probes.payload.outcome import FAIL, OK, SKIP, Context, Outcome, count_of, first_line

_NEWER = "Take an image with a newer CUDA build of torch, which knows this card."
_OLDER = "Take an image with an older CUDA build of torch, which still knows this card."


def run(context: Context) -> Outcome:
    """Compare the list of architectures with each card, and run three small kernels on each."""
    torch = context.torch
    built = [str(name) for name in torch.cuda.get_arch_list()]
    uuids = libcuda.ask()["uuids"]
    failures, full, cards = [], [], []
    for position in range(int(torch.cuda.device_count())):
        label = context.label(uuids[position] if position < len(uuids) else None, position)
        context.report("a kernel on {}".format(label))
        capability = tuple(int(part) for part in torch.cuda.get_device_capability(position))
        card: dict[str, Any] = {"gpu": label, "capability": list(capability), "covered": covers(built, capability)}
        try:
            card["exact"] = three_kernels(torch, "cuda:{}".format(position))
        except RuntimeError as error:
            card["error"] = first_line(error)
        cards.append(card)
        if "out of memory" in card.get("error", ""):
            full.append(label)
        elif "error" in card or not card["exact"]:
            failures.append(describe(card, built))
    value = {"built_for": built, "gpus": cards}
    if failures:
        fix = failures[0][1]
        return Outcome(FAIL, "; ".join(why for why, _ in failures), fix, value)
    if full:
        return Outcome(SKIP, "no memory is free on {}".format(", ".join(full)), "See check.gpu-memory.", value)
    return Outcome(OK, "kernels run on {}".format(count_of(len(cards), "GPU")), "", value)


def three_kernels(torch: Any, device: str) -> bool:
    """An elementwise kernel, a reduction and a matrix product on ``device`` give exact results."""
    numbers = torch.arange(1 << 16, device=device, dtype=torch.int64)
    doubled = (numbers * 2 + 1).sum().item()
    ones = torch.ones((64, 64), device=device)
    product = torch.mm(ones, ones)
    torch.cuda.synchronize(device)
    return bool(doubled == (1 << 32) and bool((product == 64).all().item()))


def describe(card: dict[str, Any], built: list[str]) -> tuple[str, str]:
    """Why a card failed, and what to do."""
    label, capability = card["gpu"], tuple(card["capability"])
    if not card["covered"]:
        why = "torch has no code for {}: it is sm_{}{}, the build is for {}".format(
            label, capability[0], capability[1], ", ".join(built) or "nothing"
        )
        newest = max((arch[1] for arch in map(parse, built) if arch), default=(0, 0))
        return why, _NEWER if capability > newest else _OLDER
    if "error" in card:
        fix = "Look at gpuconsole doctor and at the kernel log."
        return "a kernel fails on {}: {}".format(label, card["error"]), fix
    return "a kernel gives a wrong result on {}".format(label), "The card may be defective: test it with dcgmi diag."


def parse(name: str) -> tuple[str, tuple[int, int], str] | None:
    """``sm_90a`` as (``sm``, (9, 0), ``a``)."""
    match = re.fullmatch(r"(sm|compute)_(\d+)(\d)([a-z]?)", name)
    return (match.group(1), (int(match.group(2)), int(match.group(3))), match.group(4)) if match else None


def covers(built: list[str], capability: tuple[int, ...]) -> bool:
    """Code for these architectures runs on a card of ``capability``.

    Machine code (``sm_``) runs on the same major and the same or a higher minor; with ``a`` on that card alone.
    PTX (``compute_``) is translated for any card not older.
    """
    for name in built:
        arch = parse(name)
        if arch is None:
            continue
        kind, version, suffix = arch
        if suffix == "a":
            if version == capability:
                return True
        elif kind == "compute":
            if version <= capability:
                return True
        elif version[0] == capability[0] and version[1] <= capability[1]:
            return True
    return False
