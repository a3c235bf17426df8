"""Which image of the catalog would run instead of one that does not."""

from __future__ import annotations

from collections.abc import Mapping

from gpuconsole.images.catalog import Catalog, CatalogImage, Evidence
from gpuconsole.images.verdict import Word
from gpuconsole.images.versions import major, version


def nearest(image: CatalogImage, catalog: Catalog, words: Mapping[str, Word]) -> CatalogImage | None:
    """The image that runs and is most like ``image``: without limits first, then same makers, kind and torch.

    Args:
        image: The one that does not run.
        catalog: Where to look.
        words: Reference → verdict, for all of the catalog.
    """
    fitting = [other for other in catalog.images if words.get(other.reference) in (Word.RUNS, Word.RUNS_WITH)]
    return min(fitting, key=lambda other: _distance(image, other, words[other.reference]), default=None)


def _distance(image: CatalogImage, other: CatalogImage, word: Word) -> tuple[object, ...]:
    return (
        word is not Word.RUNS,
        other.evidence is Evidence.INFERRED,
        other.parsed.name != image.parsed.name,
        other.variant != image.variant,
        _apart(image.torch, other.torch),
        major(image.cuda or "") != major(other.cuda or ""),
        _newness(other.torch),
        _newness(other.cuda),
    )


def _apart(one: str | None, other: str | None) -> int:
    """How far two versions of torch are apart, a major counting as a hundred minors."""
    return abs(_place(one) - _place(other))


def _place(text: str | None) -> int:
    parts = (*version(text or ""), 0, 0)
    # 2.0 came right after 1.13.
    return parts[1] + (14 if parts[0] >= 2 else 0)


def _newness(text: str | None) -> tuple[int, ...]:
    """For sorting the newest first."""
    return tuple(-part for part in version(text or ""))
