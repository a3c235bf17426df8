"""What a check that ran in an image saw there: better known than anything the image says of itself."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gpuconsole.core.text import plain_line
from gpuconsole.images.compatibility import Kernels
from gpuconsole.images.facts import Fact, ImageFacts, Source, agree, as_version

_SCHEMA = "gpuconsole.check/1"
_ARCH = re.compile(r"^(sm|compute)_(\d{1,2})(\d)([a-z]?)$")
_SYSTEM = re.compile(r"^(Ubuntu|Debian GNU/Linux) (\d+(?:\.\d+)?)")
_LONGEST = 64
_HOPPER = 9
"""The last major of which there is one minor only, so that its special code is for all of it."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What a check saw in an image. What it did not get at is None."""

    at: float
    """When, in seconds since the epoch."""
    torch: str
    """``2.9.1+cu128``."""
    cuda: str | None
    """CUDA torch was built for; None of a build without."""
    cudnn: str | None = None
    python: str | None = None
    system: str | None = None
    """``ubuntu 24.04``."""
    archs: str | None = None
    """What torch has code for, ``sm_80 sm_90 compute_90``."""
    fresh: bool = True
    """It ran in a container made for it; in any other somebody may have installed another torch since."""

    @property
    def where(self) -> str:
        """``a check on 2026-11-30``, by the calendar of this machine."""
        return f"a check on {time.strftime('%Y-%m-%d', time.localtime(self.at))}"


def seen_in(document: str, at: float) -> tuple[str, Seen] | None:
    """The image's id and what a check saw there; None when its document does not tell, or torch could not be asked.

    Args:
        document: The check's, as it was remembered.
        at: When it ended, in seconds since the epoch.
    """
    try:
        told = json.loads(document)
        if told["schema"] != _SCHEMA:
            return None
        environment = told["environment"]
        image, torch = environment["image_id"], environment["torch"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if not isinstance(image, str) or not image or not isinstance(environment, dict):
        return None
    version = _version(torch)
    if version is None:
        return None
    return image, Seen(
        at=at,
        torch=version,
        cuda=_version(environment.get("torch_cuda")),
        cudnn=_version(environment.get("cudnn")),
        python=_version(environment.get("python")),
        system=_system(environment.get("os")),
        archs=_archs(environment, told.get("checks")),
        fresh=str(environment.get("where", "")).startswith("image "),
    )


def _version(value: object) -> str | None:
    return as_version(plain_line(value, limit=_LONGEST)) if isinstance(value, str) else None


def _system(value: object) -> str | None:
    match = _SYSTEM.match(value) if isinstance(value, str) else None
    return f"{match[1].split()[0].lower()} {match[2]}" if match else None


def _archs(environment: Mapping[str, Any], checks: object) -> str | None:
    """From torch itself; of checks before it was asked there, from the one that compared it with the GPUs."""
    told = environment.get("torch_archs")
    words: Sequence[object] = told.split() if isinstance(told, str) else ()
    if not words and isinstance(checks, list):
        values = [each.get("value") for each in checks if isinstance(each, dict) and each.get("id") == "check.kernel"]
        built = values[0].get("built_for") if values and isinstance(values[0], dict) else None
        words = built if isinstance(built, list) else ()
    found = [word for word in words if isinstance(word, str) and _ARCH.match(word)]
    return " ".join(found) if found and len(found) == len(words) else None


def kernels_of(archs: str) -> Kernels | None:
    """What ``sm_80 sm_90 compute_90`` has code for; None when it cannot be said in capabilities alone.

    Code for ``sm_100a`` runs on that very capability, which counts only where it is the only one of its generation.
    """
    cubins: list[tuple[int, int]] = []
    special: list[int] = []
    ptx: tuple[int, int] | None = None
    for word in archs.split():
        match = _ARCH.match(word)
        if match is None:
            return None
        kind, capability, suffix = match[1], (int(match[2]), int(match[3])), match[4]
        if kind == "compute":
            ptx = max(ptx or capability, capability) if not suffix else ptx
        elif suffix and capability[0] != _HOPPER:
            special.append(capability[0])
        else:
            cubins.append(capability)
    if any(major not in {capability[0] for capability in cubins} for major in special):
        return None
    return Kernels(tuple(sorted(set(cubins))), ptx) if cubins or ptx else None


def with_seen(facts: ImageFacts, seen: Seen) -> ImageFacts:
    """``facts`` with what a check saw in the place of what the image says; where the two differ, that is told.

    What was seen in a container that somebody works in counts only as far as the image does not say otherwise.
    """
    if not seen.fresh and facts.torch is not None and not agree(facts.torch.value, seen.torch):
        return facts
    where = seen.where
    found: dict[str, Fact] = {}
    contradictions = list(facts.contradictions)
    values = {
        "torch": seen.torch,
        "cuda": seen.cuda,
        "cudnn": seen.cudnn,
        "python": seen.python,
        "system": seen.system,
        "archs": seen.archs,
    }
    for name, value in values.items():
        if value is None:
            continue
        before: Fact | None = getattr(facts, name)
        found[name] = Fact(value, Source.CHECK, where)
        if before is not None and name in ("torch", "cuda") and not agree(before.value, value):
            contradictions.append(f"{before.key} says {name} {before.value}, {where} saw {value}")
    return replace(
        facts,
        **found,
        cpu_only=seen.cuda is None,
        seen_at=seen.at,
        contradictions=tuple(contradictions),
    )
