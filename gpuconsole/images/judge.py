"""Does this image run on these GPUs with this driver? A pure function of what is known of both.

The rule: the driver must be at least the floor of the image's CUDA, or the image brings a newer libcuda for a
data-centre GPU; its torch must have machine code of the GPU's generation, or code that the driver may compile; on the
hook's path the image's own demands must hold. What is not known is never guessed: where it matters the answer is
unknown, and names what is missing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from gpuconsole.images.compatibility import Compatibility
from gpuconsole.images.criteria import CRITERIA, Case
from gpuconsole.images.generation import known_to_driver
from gpuconsole.images.traits import ImageTraits
from gpuconsole.images.verdict import (
    WORD_OF,
    Effect,
    GpuTraits,
    HostTraits,
    Judgement,
    Reason,
    Verdict,
    Word,
    merge_needs,
)

_WEIGHT = {Effect.PREVENTS: 0, Effect.UNKNOWN: 1, Effect.LIMITS: 2, Effect.RUNS: 3, Effect.NOTE: 4}
_ORDER = tuple(Word)


def judge(image: ImageTraits, host: HostTraits, compatibility: Compatibility) -> Verdict:
    """The verdict on ``image`` for ``host``; a machine whose GPUs are unknown is judged as having one unknown GPU."""
    offered = _offered(host, compatibility)
    reached: dict[GpuTraits, tuple[Reason, ...]] = {}
    judgements = []
    for gpu in host.gpus or (GpuTraits(),):
        kind = dataclasses.replace(gpu, label="")
        if kind not in reached:
            reached[kind] = _reasons(Case(image, host, gpu, compatibility, offered))
        reasons = reached[kind]
        judgements.append(Judgement(gpu=gpu.label, word=WORD_OF[reasons[0].effect], reasons=reasons))
    return _worst(judgements)


def _offered(host: HostTraits, compatibility: Compatibility) -> tuple[str | None, bool]:
    """The CUDA of the driver: what it said itself, else what follows from its version."""
    if host.cuda:
        return host.cuda, True
    return (host.driver and compatibility.cuda_of(host.driver)) or (None, True)


def _reasons(case: Case) -> tuple[Reason, ...]:
    """All reasons, the decisive ones first. Each criterion speaks; the worst of what they say decides."""
    found = [reason for criterion in (*CRITERIA, known_to_driver) for reason in criterion(case)]
    return tuple(sorted(found, key=lambda reason: _WEIGHT[reason.effect]))


def _worst(judgements: Sequence[Judgement]) -> Verdict:
    word = max((each.word for each in judgements), key=_ORDER.index)
    worst = [each for each in judgements if each.word is word]
    reasons = {(reason.id, reason.text): reason for each in worst for reason in each.reasons}
    return Verdict(
        word=word,
        reasons=tuple(sorted(reasons.values(), key=lambda reason: _WEIGHT[reason.effect])),
        needs=merge_needs([each.needs for each in worst]),
        gpus=tuple(judgements),
    )
