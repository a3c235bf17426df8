"""The catalog: images known by name, with what is inside and who has seen it; shipped, and added by users and teams."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

from gpuconsole.images.compatibility import Compatibility, Kernels
from gpuconsole.images.reference import Reference, is_ngc_pytorch, is_pytorch, parse, pytorch_tag
from gpuconsole.images.traits import ImageTraits, is_published
from gpuconsole.images.versions import at_least, capability, minor

SHIPPED = "gpuconsole"
"""Where the entries that come with gpuconsole say they are from."""
FINDINGS = "catalog-findings.json"
"""The file in the state folder with what registries said of the catalog's images."""
AMD64, ARM64 = "linux/amd64", "linux/arm64"


class Evidence(StrEnum):
    """Who has seen an image."""

    MEASURED = "measured"
    """Somebody ran it and printed what is inside."""
    DIGEST = "digest"
    """It was seen pinned with its digest."""
    SEEN = "seen"
    """Its tag is used in public files."""
    INFERRED = "inferred"
    """Nobody was seen using it; its runtime or devel twin was."""
    REGISTRY = "registry"
    """Its registry was asked, and has it."""
    OWN = "own"
    """A user or team entered it."""


@dataclass(frozen=True, slots=True)
class CatalogImage:
    """One entry. None is unknown."""

    reference: str
    """As docker writes it: ``pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime``."""
    torch: str | None = None
    cuda: str | None = None
    variant: str | None = None
    """``runtime`` or ``devel``: with compilers or without."""
    platforms: tuple[str, ...] | None = None
    python: str | None = None
    os: str | None = None
    cudnn: str | None = None
    nccl: str | None = None
    sm: tuple[str, ...] = ()
    """Compute capabilities torch has machine code for; empty takes the list PyTorch publishes for its builds."""
    sm_arm64: tuple[str, ...] = ()
    """The same on arm64, where it differs."""
    ptx: str | None = None
    min_cc: str | None = None
    """The oldest compute capability its makers name, where they publish no list."""
    sure_cc: str | None = None
    """From which capability on it is certain, where that is not ``min_cc``."""
    driver: str | None = None
    """The driver its CUDA came with, where it is not that of the toolkit's first release."""
    floor: str | None = None
    require: str | None = None
    """Its ``NVIDIA_REQUIRE_CUDA``; None takes what is known of its base image, and is unknown without one."""
    cuda_compat: bool | None = None
    """It brings a libcuda for older drivers."""
    forward: tuple[str, ...] = ()
    """Older drivers its makers name for data-centre GPUs."""
    evidence: Evidence = Evidence.OWN
    digest: str | None = None
    unsure: tuple[str, ...] = ()
    """Facts no source states for this very image."""
    note: str | None = None
    recommended: bool = False
    source: str = SHIPPED
    """``gpuconsole``, or the file it stands in."""
    sizes: Mapping[str, int] | None = None
    """Platform → compressed bytes of a pull, once its registry was asked."""
    asked_at: float | None = None
    """When its registry was asked last, in seconds since the epoch."""
    gone: bool = False
    """Its registry said that it has no such image."""

    @property
    def parsed(self) -> Reference:
        """The reference in parts."""
        return parse(self.reference)


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The short list for machines from one driver on."""

    driver: str
    images: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Catalog:
    """All entries, the newest first within a repository as the files list them."""

    images: tuple[CatalogImage, ...]
    recommendations: tuple[Recommendation, ...] = ()
    """The newest driver first."""
    phantoms: Mapping[str, str] = field(default_factory=dict)
    """Tags that circulate and do not exist → why."""

    def find(self, reference: str) -> CatalogImage | None:
        """The entry of a reference, however it is written; None when there is none, or it is no reference."""
        try:
            wanted = str(parse(reference))
        except ValueError:
            return None
        return next((image for image in self.images if image.reference == wanted), None)

    def recommended(self, driver: str | None) -> tuple[CatalogImage, ...]:
        """The short list for a driver, and whatever users recommend; without a driver, of every generation."""
        groups = self.recommendations
        if driver is not None:
            fitting = [each for each in groups if at_least(driver, each.driver)]
            groups = tuple(fitting[:1]) or groups[-1:]
        wanted = dict.fromkeys(name for group in groups for name in group.images)
        listed = [image for name in wanted if (image := self.find(name)) is not None]
        own = [image for image in self.images if image.recommended and image not in listed]
        return (*own, *listed)

    def with_entries(self, entries: Sequence[CatalogImage]) -> Catalog:
        """The catalog with ``entries`` before its own; an entry replaces the one of the same reference."""
        replaced = {entry.reference for entry in entries}
        kept = [image for image in self.images if image.reference not in replaced]
        latest = {entry.reference: entry for entry in entries}
        return Catalog((*latest.values(), *kept), self.recommendations, self.phantoms)


def entry(row: Mapping[str, Any], *, source: str = SHIPPED) -> CatalogImage:
    """The entry of a row in a catalog file; what the official tag says needs not be written.

    Raises:
        ValueError: The reference is none.
    """
    reference = parse(row["reference"])
    values: dict[str, Any] = dict(_from_tag(reference)) | {
        key: tuple(value) if isinstance(value, list) else value for key, value in row.items() if value is not None
    }
    values["reference"] = str(reference)
    values["evidence"] = Evidence(values.get("evidence", Evidence.OWN))
    return CatalogImage(**values, source=source)


def _from_tag(reference: Reference) -> dict[str, Any]:
    if (tag := pytorch_tag(reference)) is not None:
        return {"torch": tag.torch, "cuda": tag.cuda, "variant": tag.kind, "platforms": (AMD64,)}
    return {"variant": "devel"} if is_ngc_pytorch(reference) else {}


@cache
def shipped_catalog() -> Catalog:
    """The catalog that comes with gpuconsole."""
    with (Path(__file__).parent / "catalog.toml").open("rb") as file:
        table = tomllib.load(file)
    recommendations = [Recommendation(row["driver"], tuple(row["images"])) for row in table["recommended"]]
    return Catalog(
        images=tuple(reversed([entry(row) for row in table["image"]])),
        recommendations=tuple(recommendations),
        phantoms={str(parse(row["reference"])): row["why"] for row in table["phantom"]},
    )


def traits(image: CatalogImage, compatibility: Compatibility) -> ImageTraits:
    """What a verdict needs to know of an entry."""
    official, ngc = is_pytorch(image.parsed), is_ngc_pytorch(image.parsed)
    libcuda = image.cuda_compat
    if libcuda is None and (official or ngc):
        libcuda = ngc or image.variant == "devel"
    return ImageTraits(
        name=image.reference,
        platforms=image.platforms,
        torch=image.torch,
        cuda=image.cuda,
        kernels=_kernels(image, compatibility),
        min_capability=capability(image.min_cc) if image.min_cc else None,
        sure_capability=capability(image.sure_cc) if image.sure_cc else None,
        driver=image.driver,
        floor=image.floor,
        demands=_demands(image, compatibility, official=official),
        libcuda=libcuda,
        forward=image.forward,
        unsure=image.unsure,
    )


def _kernels(image: CatalogImage, compatibility: Compatibility) -> dict[str, Kernels]:
    found: dict[str, Kernels] = {}
    ptx = capability(image.ptx) if image.ptx else None
    for platform in image.platforms or ():
        written = image.sm_arm64 if platform == ARM64 and image.sm_arm64 else image.sm
        kernels = Kernels(tuple(capability(each) for each in written), ptx) if written else None
        if kernels is None and image.torch and image.cuda and is_published(image.torch):
            kernels = compatibility.kernels(image.torch, image.cuda, platform)
        if kernels is not None:
            found[platform] = kernels
    return found


def _demands(
    image: CatalogImage, compatibility: Compatibility, *, official: bool
) -> tuple[tuple[str, ...], ...] | None:
    if image.require is not None:
        return ((image.require,),) if image.require.strip() else ((),)
    if not official or image.cuda is None:
        return None
    if image.variant == "runtime":
        return ((),)
    texts = compatibility.demanded.get(minor(image.cuda))
    return tuple((text,) for text in texts) if texts else None
