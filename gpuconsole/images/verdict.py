"""A verdict: whether an image runs on the GPUs of a machine, and why. Here are its words; ``judge.py`` reaches it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from gpuconsole.images.boards import Segment
from gpuconsole.images.versions import version


class Word(StrEnum):
    """The verdict in a word, from the best to the worst."""

    RUNS = "runs"
    RUNS_WITH = "runs_with"
    """It runs, with a limit the reasons name."""
    UNKNOWN = "unknown"
    WILL_NOT_RUN = "will_not_run"


class Effect(StrEnum):
    """What a reason does to the verdict."""

    NOTE = "note"
    """Worth knowing; it changes nothing."""
    RUNS = "runs"
    LIMITS = "limits"
    UNKNOWN = "unknown"
    PREVENTS = "prevents"


WORD_OF = {
    Effect.NOTE: Word.RUNS,
    Effect.RUNS: Word.RUNS,
    Effect.LIMITS: Word.RUNS_WITH,
    Effect.UNKNOWN: Word.UNKNOWN,
    Effect.PREVENTS: Word.WILL_NOT_RUN,
}
"""What a reason of that effect makes of the verdict when nothing worse is there."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why, in one sentence without a full stop."""

    id: str
    """``ok-native``, ``driver-too-old``, ``no-kernel-image`` …; ``missing-…`` names a fact that is not known."""
    text: str
    effect: Effect
    needs: Mapping[str, Any] = field(default_factory=dict)
    """What would make it run: ``driver``, ``platform``, ``gpu_path`` …; or ``facts`` that are missing."""


@dataclass(frozen=True, slots=True)
class GpuTraits:
    """A GPU as the verdict sees it. None is unknown."""

    label: str = "the GPU"
    name: str | None = None
    capability: tuple[int, int] | None = None
    segment: Segment | None = None
    brands: tuple[str, ...] = ()
    """The brands NVML may give for it; empty is unknown."""
    unified_memory: bool = False
    mig_instances: int | None = None
    """How many MIG instances it is divided into; None when it is not divided."""


@dataclass(frozen=True, slots=True)
class HostTraits:
    """A machine as the verdict sees it. None is unknown."""

    driver: str | None = None
    cuda: str | None = None
    """The CUDA version of the driver, when it was asked; else it follows from the driver."""
    architecture: str | None = None
    """``amd64`` or ``arm64``."""
    gpus: tuple[GpuTraits, ...] = ()
    checks_demands: bool | None = None
    """Whether the way GPUs take into a container checks ``NVIDIA_REQUIRE_*``: NVIDIA's hook does, CDI does not."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on one image for one GPU."""

    gpu: str
    word: Word
    reasons: tuple[Reason, ...]
    """The decisive ones first."""

    @property
    def needs(self) -> dict[str, Any]:
        """What would make it run, or what is missing to tell, from the reasons that decide."""
        return merge_needs([reason.needs for reason in self.reasons if WORD_OF[reason.effect] is self.word])


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict for all GPUs of a machine: the worst one, and each."""

    word: Word
    reasons: tuple[Reason, ...]
    needs: Mapping[str, Any]
    gpus: tuple[Judgement, ...]


def merge_needs(all_needs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Several needs as one: facts and platforms are joined, of drivers the newest counts, else the first."""
    merged: dict[str, Any] = {}
    for needs in all_needs:
        for key, value in needs.items():
            if isinstance(value, tuple):
                merged[key] = tuple(dict.fromkeys((*merged.get(key, ()), *value)))
            elif key == "driver" and key in merged:
                merged[key] = max(merged[key], value, key=version)
            else:
                merged.setdefault(key, value)
    return merged
