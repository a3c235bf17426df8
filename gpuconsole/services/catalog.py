"""The catalog for a machine: what is shipped, what users and teams add, and the verdict on each image."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpuconsole.core.paths import config_dir, state_dir
from gpuconsole.images.catalog import FINDINGS, Catalog, CatalogImage, shipped_catalog, traits
from gpuconsole.images.choice import Alternatives
from gpuconsole.images.compatibility import shipped_compatibility
from gpuconsole.images.judge import judge
from gpuconsole.images.reference import is_pytorch, parse, pytorch_tag
from gpuconsole.images.seen import Seen
from gpuconsole.images.traits import traits_with
from gpuconsole.images.verdict import HostTraits, Verdict, Word
from gpuconsole.images.versions import minor, version

VARIABLE = "GPUCONSOLE_CATALOG"
"""Names further catalog files, separated as in PATH."""


@dataclass(frozen=True, slots=True)
class CatalogView:
    """An entry with its verdict."""

    image: CatalogImage
    verdict: Verdict
    recommended: bool
    """It is in the short list for the machine's driver."""
    instead: CatalogImage | None = None
    """What would run, for an image that will not."""
    seen_at: float | None = None
    """When a check looked into it here, in seconds since the epoch; None when none is remembered."""

    @property
    def needs(self) -> dict[str, Any]:
        """What would make it run, or what would run instead, or which facts are missing."""
        needs = dict(self.verdict.needs)
        if self.instead is not None:
            needs["image"] = self.instead.reference
        return needs


def catalog_paths(environ: Mapping[str, str] | None = None) -> tuple[Path, ...]:
    """The catalog files of this user and team: ``catalog.toml`` in the configuration folder, then those of VARIABLE."""
    environ = os.environ if environ is None else environ
    own = config_dir() / "catalog.toml"
    named = [Path(part).expanduser() for part in environ.get(VARIABLE, "").split(os.pathsep) if part]
    return (*([own] if own.exists() else []), *named)


def load_catalog(paths: Sequence[Path] | None = None) -> Catalog:
    """The shipped catalog with the entries of ``paths`` before it, and what registries said of both.

    Args:
        paths: Files of users and teams; None takes :func:`catalog_paths`.

    Raises:
        BadFile: One of the files cannot be read or has mistakes.
    """
    paths = catalog_paths() if paths is None else paths
    catalog = shipped_catalog()
    if paths:
        from gpuconsole.images.catalog_files import read_catalog_files

        catalog = catalog.with_entries(read_catalog_files(paths))
    return with_findings(catalog)


def catalog_marks() -> tuple[object, ...]:
    """What changes when the catalog would be read otherwise: the files it is made of, with when they were written."""
    return tuple((path, _written(path)) for path in (*catalog_paths(), state_dir() / FINDINGS))


def _written(path: Path) -> int | None:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return None


def with_findings(catalog: Catalog) -> Catalog:
    """``catalog`` with what ``catalog verify`` found out."""
    if not (state_dir() / FINDINGS).exists():
        return catalog
    from gpuconsole.images.findings import apply, load_findings

    return apply(catalog, load_findings())


def judge_entry(image: CatalogImage, host: HostTraits, seen: Seen | None = None) -> Verdict:
    """The verdict on one entry; with what a check saw in the image, where it lies here."""
    compatibility = shipped_compatibility()
    known = traits(image, compatibility)
    if seen is not None:
        known = traits_with(known, seen, f"linux/{host.architecture}" if host.architecture else None)
    return judge(known, host, compatibility)


def never_published(catalog: Catalog, reference: str) -> str | None:
    """A sentence when a tag has the form of PyTorch's official ones and names a build that there never was.

    Of a release that the catalog does not know nothing is said.
    """
    try:
        parsed = parse(reference)
    except ValueError:
        return None
    tag = pytorch_tag(parsed)
    if (why := catalog.phantoms.get(str(parsed))) is not None and tag is None:
        return f"{reference} is none of PyTorch's tags: {why}."
    if tag is None or catalog.find(reference) is not None:
        return None
    official = (image for image in catalog.images if is_pytorch(image.parsed) and image.torch and image.cuda)
    published = {image.cuda for image in official if minor(image.torch or "") == minor(tag.torch)}
    if not published or tag.cuda in published:
        return None
    listed = ", ".join(sorted((cuda for cuda in published if cuda), key=version))
    return f"PyTorch published no image of {minor(tag.torch)} with CUDA {tag.cuda}; there are those with {listed}."


def view_catalog(
    catalog: Catalog, host: HostTraits, *, seen: Mapping[str, Seen] | None = None
) -> tuple[CatalogView, ...]:
    """Every entry with its verdict: the recommended ones first, of those the best verdict first.

    Args:
        catalog: The entries.
        host: The machine to judge them for.
        seen: Reference → what a check saw in the image of that name which lies here.
    """
    seen = seen or {}
    verdicts = {image.reference: judge_entry(image, host, seen.get(image.reference)) for image in catalog.images}
    words = {reference: verdict.word for reference, verdict in verdicts.items()}
    listed = [image for image in catalog.recommended(host.driver) if _is_for(image, host)]
    recommended = sorted(listed, key=lambda image: _ORDER.index(words[image.reference]))
    alternatives = Alternatives(catalog, verdicts)
    first = {image.reference for image in recommended}
    others = [image for image in catalog.images if image.reference not in first]
    return tuple(
        CatalogView(
            image=image,
            verdict=verdicts[image.reference],
            recommended=image.reference in first,
            instead=alternatives.nearest(image) if words[image.reference] is Word.WILL_NOT_RUN else None,
            seen_at=told.at if (told := seen.get(image.reference)) is not None else None,
        )
        for image in (*recommended, *others)
    )


def _is_for(image: CatalogImage, host: HostTraits) -> bool:
    """Whether it is built for the machine's processor, as far as both are known."""
    platforms, architecture = image.platforms, host.architecture
    return platforms is None or architecture is None or f"linux/{architecture}" in platforms


_ORDER = tuple(Word)
