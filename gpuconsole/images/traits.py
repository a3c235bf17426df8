"""What a verdict needs to know of an image, whether it comes from the catalog or lies here already."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from gpuconsole.engine.model import Image
from gpuconsole.images.compatibility import Compatibility, Kernels
from gpuconsole.images.facts import Fact, ImageFacts, Source, image_facts
from gpuconsole.images.reference import is_ngc_pytorch, is_pytorch, parse
from gpuconsole.images.requirements import demands
from gpuconsole.images.seen import Seen, kernels_of
from gpuconsole.images.versions import minor


@dataclass(frozen=True, slots=True)
class ImageTraits:
    """An image as the verdict sees it. None is unknown."""

    name: str
    platforms: tuple[str, ...] | None = None
    """``linux/amd64`` …"""
    torch: str | None = None
    cuda: str | None = None
    cpu_only: bool = False
    """Its torch is a build without CUDA."""
    kernels: Mapping[str, Kernels] = field(default_factory=dict)
    """Platform → what its torch has code for; a platform that is missing is unknown."""
    min_capability: tuple[int, int] | None = None
    """The oldest GPU its makers name, where they publish no list."""
    sure_capability: tuple[int, int] | None = None
    """From which GPU on that is certain; None when all of it is."""
    driver: str | None = None
    """The driver its CUDA came with; None takes the toolkit's."""
    floor: str | None = None
    """The oldest driver; None takes the toolkit's."""
    demands: tuple[tuple[str, ...], ...] | None = ((),)
    """What its ``NVIDIA_REQUIRE_*`` say, all of one tuple; several tuples are values it may have, one of them."""
    libcuda: bool | None = None
    """It brings a libcuda of its own for older drivers (cuda-compat)."""
    unsure: tuple[str, ...] = ()
    """Facts above that no source states for this very image."""
    seen: str | None = None
    """Where what is inside was seen, ``a check on 2026-11-30``; None when it was only read from outside."""
    forward: tuple[str, ...] = ()
    """Older drivers its makers name for data-centre GPUs, ``470.57``."""


def from_local(image: Image, compatibility: Compatibility, facts: ImageFacts | None = None) -> ImageTraits:
    """The traits of an image that lies here, from its environment, labels and tag.

    What its torch has code for is taken from the list PyTorch publishes for its builds, when its torch calls itself one
    of them; NVIDIA's own images say it themselves.
    """
    facts = facts or image_facts(image)
    environment = {name: value for name, value in image.environment if value is not None}
    platform = _platform(image)
    torch, cuda = _value(facts.torch), _value(_cuda_of_torch(facts))
    kernels = _kernels(facts, environment, compatibility, platform) if platform else None
    return ImageTraits(
        name=image.name,
        platforms=(platform,) if platform else None,
        torch=torch,
        cuda=cuda,
        cpu_only=facts.cpu_only is True,
        kernels={platform: kernels} if platform and kernels else {},
        demands=(demands(environment),),
        libcuda=_has_libcuda(image, environment),
        seen=facts.torch.key if facts.torch is not None and facts.torch.source is Source.CHECK else None,
    )


_KERNEL_DOUBTS = ("which GPUs torch has code for", "whether GPUs before")
"""How the catalog begins to write of doubts that a look inside ends."""


def traits_with(traits: ImageTraits, seen: Seen, platform: str | None) -> ImageTraits:
    """The traits of an image of the catalog that lies here, with what a check saw in it.

    Args:
        traits: As the catalog has them.
        seen: What a check saw.
        platform: ``linux/amd64``, which the image here is for; None when that is not known.
    """
    kernels = kernels_of(seen.archs) if seen.archs else None
    same = seen.cuda is None or traits.cuda is None or minor(seen.cuda) == minor(traits.cuda)
    settled = ("torch", "cuda", *(_KERNEL_DOUBTS if kernels else ()))
    return replace(
        traits,
        torch=seen.torch,
        cuda=seen.cuda or traits.cuda,
        driver=traits.driver if same else None,
        floor=traits.floor if same else None,
        unsure=tuple(doubt for doubt in traits.unsure if not doubt.startswith(settled)),
        cpu_only=seen.cuda is None,
        kernels={**traits.kernels, platform: kernels} if kernels and platform else traits.kernels,
        seen=seen.where,
    )


def _value(fact: Fact | None) -> str | None:
    return None if fact is None else fact.value


def _cuda_of_torch(facts: ImageFacts) -> Fact | None:
    """The CUDA that torch was built for. Of a torch installed later, a variable of the base image does not tell it."""
    if facts.torch is not None and facts.torch.source is Source.HISTORY:
        return facts.cuda if facts.cuda is not None and facts.cuda.source is Source.HISTORY else None
    return facts.cuda


def _platform(image: Image) -> str | None:
    return f"{image.os or 'linux'}/{image.architecture}" if image.architecture else None


def _kernels(
    facts: ImageFacts, environment: Mapping[str, str], compatibility: Compatibility, platform: str
) -> Kernels | None:
    if facts.archs is not None:
        return kernels_of(facts.archs.value)
    if facts.ngc is not None and (facts.torch is None or facts.torch.source is not Source.HISTORY):
        # NVIDIA builds torch itself, for what this variable of its images says. In other images the same variable is
        # for extensions that are compiled there, and says nothing of torch.
        return arch_list(environment.get("TORCH_CUDA_ARCH_LIST", ""))
    cuda = _cuda_of_torch(facts)
    if facts.torch is None or cuda is None or not is_published(facts.torch.value):
        return None
    return compatibility.kernels(facts.torch.value, cuda.value, platform)


def is_published(torch: str) -> bool:
    """Whether a version is one that PyTorch publishes: ``2.9.0``, ``2.9.0+cu128``, not ``2.9.0a0+145a3a7``."""
    release, _, local = torch.partition("+")
    return release.replace(".", "").isdigit() and (not local or local.startswith("cu"))


def arch_list(text: str) -> Kernels | None:
    """The kernels ``TORCH_CUDA_ARCH_LIST`` names: ``7.5 8.0 9.0+PTX``; None when it cannot be read in full."""
    cubins: list[tuple[int, int]] = []
    ptx: tuple[int, int] | None = None
    for word in text.replace(";", " ").split():
        number, plus, suffix = word.partition("+")
        whole, dot, part = number.partition(".")
        if not (dot and whole.isdigit() and part.isdigit()) or (plus and suffix != "PTX"):
            return None
        cubins.append((int(whole), int(part)))
        if plus:
            ptx = cubins[-1]
    return Kernels(cubins=tuple(cubins), ptx=ptx) if cubins else None


def _has_libcuda(image: Image, environment: Mapping[str, str]) -> bool | None:
    """NVIDIA's base images install cuda-compat; PyTorch's runtime images stand on plain Ubuntu."""
    if "NV_CUDA_CUDART_VERSION" in environment or "NVIDIA_PYTORCH_VERSION" in environment:
        return True
    for tag in image.tags:
        try:
            reference = parse(tag)
        except ValueError:
            continue
        if is_ngc_pytorch(reference):
            return True
        if is_pytorch(reference):
            return bool((reference.tag or "").endswith("-devel"))
    return None
