"""Which image of the catalog would run instead of one that does not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gpuconsole.images.catalog import Catalog, CatalogImage, Evidence
from gpuconsole.images.verdict import Verdict, Word
from gpuconsole.images.versions import major, version


@dataclass(frozen=True, slots=True)
class _Kind:
    """What makes images alike."""

    name: str
    """Registry and repository."""
    variant: str | None
    torch: int | None
    """Place of its torch in the order of releases."""
    cuda: int | None
    """Major version."""


class Alternatives:
    """The images that run, ready to be compared with those that do not.

    Args:
        catalog: Where to look.
        verdicts: Reference → verdict, for all of the catalog.
    """

    def __init__(self, catalog: Catalog, verdicts: Mapping[str, Verdict]) -> None:
        self._fitting = [
            (image, _kind(image), _hesitation(image, verdict), _newness(image, verdict))
            for image in catalog.images
            if not image.gone
            and (verdict := verdicts.get(image.reference))
            and verdict.word in (Word.RUNS, Word.RUNS_WITH)
        ]
        self._found: dict[_Kind, CatalogImage | None] = {}

    def nearest(self, image: CatalogImage) -> CatalogImage | None:
        """The one most like ``image``: by the same makers, of the same kind, with the nearest torch; None if none runs.

        A driver within minor-version compatibility is as good as a native one; what only may run, or must be compiled
        first, comes last, as do images nobody was seen using.
        """
        wanted = _kind(image)
        if wanted not in self._found:
            order = min(
                self._fitting, key=lambda other: (other[2], _distance(wanted, other[1]), other[3]), default=None
            )
            self._found[wanted] = order[0] if order else None
        return self._found[wanted]


def _kind(image: CatalogImage) -> _Kind:
    name = image.reference.partition("@")[0]
    repository, colon, tag = name.rpartition(":")
    return _Kind(
        name=repository if colon and "/" not in tag else name,
        variant=image.variant,
        torch=_place(image.torch) if image.torch else None,
        cuda=major(image.cuda or ""),
    )


def _hesitation(image: CatalogImage, verdict: Verdict) -> tuple[bool, bool]:
    return verdict.reasons[0].id not in ("ok-native", "ok-minor-compat"), image.evidence is Evidence.INFERRED


def _distance(one: _Kind, other: _Kind) -> tuple[bool, bool, int, bool]:
    # A torch that is not known counts as one release apart.
    apart = 1 if one.torch is None or other.torch is None else abs(one.torch - other.torch)
    return one.name != other.name, one.variant != other.variant, apart, one.cuda != other.cuda


def _place(torch: str) -> int:
    parts = (*version(torch), 0, 0)
    # 2.0 came right after 1.13.
    return parts[1] + (14 if parts[0] >= 2 else 0)


def _newness(image: CatalogImage, verdict: Verdict) -> tuple[bool, tuple[int, ...], tuple[int, ...]]:
    """For sorting what runs without limits first, and then the newest."""
    return verdict.word is not Word.RUNS, _backwards(image.torch), _backwards(image.cuda)


def _backwards(text: str | None) -> tuple[int, ...]:
    return tuple(-part for part in version(text or ""))
