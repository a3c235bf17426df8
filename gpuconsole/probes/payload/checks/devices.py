"""C02: the GPUs in the container are those it was given."""

from __future__ import annotations

import os
from typing import Any

from gpuconsole.probes.payload import libcuda
from gpuconsole.probes.payload.checks.available import device_nodes
from gpuconsole.probes.payload.outcome import FAIL, OK, SKIP, WARN, Asked, Context, Outcome, count_of, same_gpu

_RESTART = "Restart the container; if it stays so, launch it again with the GPUs you want."


def run(context: Context) -> Outcome:
    """Compare by UUID where CUDA works; else by device nodes, which prove less."""
    if context.cuda:
        seen = libcuda.ask()["uuids"] or [None] * int(context.torch.cuda.device_count())
        outcome = compare(seen, context.asked, context.asked_count, os.environ.get("CUDA_VISIBLE_DEVICES"))
        outcome.value = {"seen": seen, "asked": _uuids(context.asked), "asked_count": context.asked_count}
        return outcome
    nodes = device_nodes()
    outcome = compare_nodes(nodes, context.asked)
    outcome.value = {"nodes": nodes, "asked": _uuids(context.asked), "asked_count": context.asked_count}
    return outcome


def _uuids(asked: list[Asked] | None) -> list[str] | None:
    return None if asked is None else [one.uuid for one in asked]


def compare(seen: list[Any], asked: list[Asked] | None, asked_count: int | None, visible: str | None) -> Outcome:
    """The outcome for the UUIDs CUDA shows (None where it does not tell) and the GPUs given."""
    count = len(seen)
    if asked_count is None:
        return Outcome(OK, "torch sees {}; how many were given is not known".format(count_of(count, "GPU")))
    named = [uuid for uuid in seen if uuid]
    if asked is not None and len(named) == count:
        missing = [one for one in asked if not any(same_gpu(one.uuid, uuid) for uuid in named)]
        strange = [uuid for uuid in named if not any(same_gpu(one.uuid, uuid) for one in asked)]
    else:
        missing, strange = [], []
    if missing or count < asked_count:
        which = ", ".join(one.label for one in missing) or "{} of them".format(asked_count - count)
        why = "given {}, torch sees {}: {} missing".format(count_of(asked_count, "GPU"), count, which)
        if visible is not None:
            return Outcome(
                FAIL,
                why + ", CUDA_VISIBLE_DEVICES is {!r}".format(visible[:80]),
                "Unset CUDA_VISIBLE_DEVICES in the container: GPUs are chosen at launch.",
            )
        return Outcome(FAIL, why, _RESTART)
    if strange or count > asked_count:
        return Outcome(
            WARN,
            "given {}, torch sees {}: it can reach GPUs that are not its own".format(
                count_of(asked_count, "GPU"), count
            ),
            "Launch it without --privileged and with the GPUs it shall have.",
        )
    labels = ", ".join(one.label for one in asked) if asked else count_of(count, "GPU")
    return Outcome(OK, "torch sees what was given: {}".format(labels))


def compare_nodes(nodes: list[str], asked: list[Asked] | None) -> Outcome:
    """The outcome where CUDA does not work: are the device nodes of the GPUs given there?"""
    if asked is None:
        return Outcome(SKIP, "CUDA does not work here, and which GPUs were given is not known")
    if not asked:
        return Outcome(SKIP, "no GPU was given")
    wanted = {"/dev/nvidia{}".format(one.minor): one for one in asked if one.minor is not None}
    missing = [one.label for path, one in sorted(wanted.items()) if path not in nodes]
    if missing:
        return Outcome(FAIL, "the device node of {} is not in the container".format(", ".join(missing)), _RESTART)
    if wanted:
        labels = ", ".join(one.label for one in asked)
        return Outcome(SKIP, "the device nodes of {} are there, but CUDA does not work".format(labels))
    return Outcome(SKIP, "CUDA does not work here")
