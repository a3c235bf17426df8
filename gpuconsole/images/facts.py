"""What is inside an image, from its environment, its labels and its tag: nothing is started for it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from gpuconsole.core.text import shorten
from gpuconsole.engine.model import Image
from gpuconsole.images.reference import ngc_month, parse, pytorch_tag


class Source(StrEnum):
    """Where a fact was read."""

    ENVIRONMENT = "env"
    LABEL = "label"
    TAG = "tag"
    HISTORY = "history"
    CHECK = "check"
    """It was seen by a check that ran inside."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A version, and who says so."""

    value: str
    source: Source
    key: str
    """The variable, label, tag or build command it was read from, or the check."""


@dataclass(frozen=True, slots=True)
class ImageFacts:
    """Versions inside an image; None is unknown without starting it."""

    torch: Fact | None = None
    cuda: Fact | None = None
    cudnn: Fact | None = None
    nccl: Fact | None = None
    python: Fact | None = None
    system: Fact | None = None
    """``ubuntu 24.04``."""
    ngc: Fact | None = None
    """Month of an NVIDIA image, ``25.10``."""
    kind: Fact | None = None
    """``runtime`` or ``devel``."""
    require_cuda: Fact | None = None
    """``NVIDIA_REQUIRE_CUDA`` as written: what NVIDIA's hook demands of the driver."""
    archs: Fact | None = None
    """What its torch has code for, ``sm_80 sm_90 compute_90``; only a check tells."""
    cpu_only: bool | None = None
    """True when torch says itself that it is a CPU build; None when nothing tells."""
    contradictions: tuple[str, ...] = ()
    """Where two sources disagree, a sentence each; the first source is believed."""
    seen_at: float | None = None
    """When the check ran that saw some of this, in seconds since the epoch; None when none is remembered."""


_VERSION = re.compile(r"^\d+(?:\.\d+)+")
_DEBIAN_VERSION = re.compile(r"^(\d+(?:\.\d+)+)")


def as_version(text: str) -> str | None:
    """``text`` when it is a version as people write them, with suffixes such as ``2.9.0a0+145a3a7bda`` kept."""
    word = text.strip()
    return word if _VERSION.match(word) and len(word) <= 64 and " " not in word else None


def _package_version(text: str) -> str | None:
    """The upstream part of a Debian package's version: ``9.8.0.87-1`` is ``9.8.0.87``."""
    match = _DEBIAN_VERSION.match(text.strip())
    return match[1] if match else None


def _any(text: str) -> str | None:
    return text.strip()[:4096] or None


_Reader = Callable[[str], str | None]
# For each fact, the places that tell it, the most trustworthy first. Labels of our names stand only where somebody
# meant to say what is inside; the environment comes from the image's makers; other labels are often
# inherited from a base image.
_PLACES: Mapping[str, tuple[tuple[Source, str, _Reader], ...]] = {
    "torch": (
        (Source.LABEL, "gpuconsole.torch", as_version),
        (Source.ENVIRONMENT, "PYTORCH_VERSION", as_version),
        (Source.ENVIRONMENT, "PYTORCH_BUILD_VERSION", as_version),
        (Source.ENVIRONMENT, "TORCH_VERSION", as_version),
    ),
    "cuda": (
        (Source.LABEL, "gpuconsole.cuda", as_version),
        (Source.ENVIRONMENT, "CUDA_VERSION", as_version),
        (Source.ENVIRONMENT, "NV_CUDA_CUDART_VERSION", _package_version),
        (Source.LABEL, "com.nvidia.cuda.version", as_version),
    ),
    "cudnn": (
        (Source.LABEL, "gpuconsole.cudnn", as_version),
        (Source.ENVIRONMENT, "CUDNN_VERSION", as_version),
        (Source.ENVIRONMENT, "NV_CUDNN_VERSION", _package_version),
        (Source.LABEL, "com.nvidia.cudnn.version", _package_version),
    ),
    "nccl": (
        (Source.LABEL, "gpuconsole.nccl", as_version),
        (Source.ENVIRONMENT, "NCCL_VERSION", _package_version),
        (Source.ENVIRONMENT, "NV_LIBNCCL_PACKAGE_VERSION", _package_version),
        (Source.LABEL, "com.nvidia.nccl.version", _package_version),
    ),
    "python": (
        (Source.LABEL, "gpuconsole.python", as_version),
        (Source.ENVIRONMENT, "PYTHON_VERSION", as_version),
        (Source.ENVIRONMENT, "PYVER", as_version),
    ),
    "ngc": ((Source.ENVIRONMENT, "NVIDIA_PYTORCH_VERSION", as_version),),
    "require_cuda": ((Source.ENVIRONMENT, "NVIDIA_REQUIRE_CUDA", _any),),
}
_OUR_SYSTEM = "gpuconsole.system"
_SYSTEM = re.compile(r"^[a-z]{1,16} \d+(?:\.\d+)*$")
_TELL_SYSTEM = ("org.opencontainers.image.ref.name", "org.opencontainers.image.version")
# The one official tag whose torch is not the one it names (pytorch/pytorch issue 91097).
_WRONG_TAGS = {("1.13.1", "11.6"): "1.13.0"}


def image_facts(image: Image, history: Sequence[str] = ()) -> ImageFacts:
    """What ``image`` says of itself.

    Args:
        image: The image.
        history: The commands it was built with, the newest first, where they were asked for. A torch installed by one
            of them counts more than a variable that was set before it.
    """
    environment = {name: value for name, value in image.environment if value is not None}
    found = {name: _first(places, environment, image.labels) for name, places in _PLACES.items()}
    contradictions = []
    for name, fact in _from_history(history, found).items():
        known = found.get(name)
        if known is not None and not agree(known.value, fact.value):
            contradictions.append(f"{known.key} says {name} {known.value}, but {fact.value} was installed later")
        found[name] = fact
    told: dict[str, Fact] = {}
    for tag in image.tags:
        told = _from_tag(tag) | told
    for name, fact in told.items():
        known = found.get(name)
        if known is None:
            found[name] = fact
        elif not agree(known.value, fact.value):
            contradictions.append(f"{known.key} says {name} {known.value}, the tag {fact.key} says {fact.value}")
    return ImageFacts(
        **found,
        system=_system(image.labels),
        cpu_only=_cpu_only(found),
        contradictions=tuple(contradictions),
        seen_at=None,
    )


_INSTALLS = re.compile(r"\b(?:pip3?|uv|conda|mamba)\b.*?\binstall\b", re.DOTALL)
_INSTALLED = re.compile(r"\b(?:torch|pytorch)==?(\d+\.\d+(?:\.\d+)?)(?:\+(cpu|cu\d{3}))?(?![\w.+])")
_FOR_CUDA = re.compile(r"(?:/whl/|\bpytorch-cuda=)(cpu|cu\d{3}|\d+\.\d+)\b")
_MOST_KEY = 60


def _from_history(history: Sequence[str], found: Mapping[str, Fact | None]) -> dict[str, Fact]:
    """The torch that the newest command installed, unless a label of ours or a newer variable tells it."""
    known = found.get("torch")
    if known is not None and known.source is Source.LABEL:
        return {}
    for step in history:
        if known is not None and re.search(rf"\bENV {re.escape(known.key)}\b", step):
            return {}
        match = _INSTALLED.search(step) if _INSTALLS.search(step) else None
        if match is not None:
            return _installed(step, match)
    return {}


def _installed(step: str, match: re.Match[str]) -> dict[str, Fact]:
    other = _FOR_CUDA.search(step)
    build = match[2] or (other[1] if other else "")
    key = shorten(match[0], _MOST_KEY)
    facts = {"torch": Fact(f"{match[1]}+cpu" if build == "cpu" else match[1], Source.HISTORY, key)}
    if build and build != "cpu":
        cuda = f"{build[2:4]}.{build[4:]}" if build.startswith("cu") else build
        facts["cuda"] = Fact(cuda, Source.HISTORY, key)
    return facts


def _first(
    places: tuple[tuple[Source, str, _Reader], ...], environment: Mapping[str, str], labels: Mapping[str, str]
) -> Fact | None:
    for source, key, read in places:
        text = (labels if source is Source.LABEL else environment).get(key)
        value = read(text) if text else None
        if value is not None:
            return Fact(value=value, source=source, key=key)
    return None


def _from_tag(text: str) -> dict[str, Fact]:
    """The facts in a tag, for the two families whose tags follow a scheme."""
    try:
        reference = parse(text)
    except ValueError:
        return {}
    key = reference.tag or ""
    if (month := ngc_month(reference)) is not None:
        return {"ngc": Fact(value=month, source=Source.TAG, key=key)}
    if (tag := pytorch_tag(reference)) is None:
        return {}
    torch = _WRONG_TAGS.get((tag.torch, tag.cuda), tag.torch)
    values = {"torch": torch, "cuda": tag.cuda, "kind": tag.kind}
    return {name: Fact(value=value, source=Source.TAG, key=key) for name, value in values.items()}


def agree(one: str, other: str) -> bool:
    """Whether two versions are the same as far as both go: ``13.0.2`` and ``13.0``, ``2.9.0+cu128`` and ``2.9.0``."""
    pairs = zip(one.partition("+")[0].split("."), other.partition("+")[0].split("."), strict=False)
    return all(left == right for left, right in pairs)


def _system(labels: Mapping[str, str]) -> Fact | None:
    ours = labels.get(_OUR_SYSTEM, "").strip()
    if _SYSTEM.match(ours):
        return Fact(value=ours, source=Source.LABEL, key=_OUR_SYSTEM)
    name, version = (labels.get(key, "").strip() for key in _TELL_SYSTEM)
    if name in ("ubuntu", "debian") and _SYSTEM.match(f"{name} {version}"):
        return Fact(value=f"{name} {version}", source=Source.LABEL, key=_TELL_SYSTEM[1])
    return None


def _cpu_only(found: Mapping[str, Fact | None]) -> bool | None:
    torch = found.get("torch")
    local = torch.value.partition("+")[2] if torch else ""
    if local == "cpu":
        return True
    return False if local.startswith("cu") or found.get("cuda") else None
