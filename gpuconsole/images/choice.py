"""Which image of the catalog would run instead of one that does not."""

from __future__ import annotations

from collections.abc import Mapping

from gpuconsole.images.catalog import Catalog, CatalogImage, Evidence
from gpuconsole.images.verdict import Verdict, Word
from gpuconsole.images.versions import major, version


def nearest(image: CatalogImage, catalog: Catalog, verdicts: Mapping[str, Verdict]) -> CatalogImage | None:
    """The image that runs and is most like ``image``: by the same makers, of the same kind, with the nearest torch.

    A driver within minor-version compatibility is as good as a native one; what only may run, or must be compiled
    first, comes last.

    Args:
        image: The one that does not run.
        catalog: Where to look.
        verdicts: Reference → verdict, for all of the catalog.
    """
    fitting = [
        (other, verdict)
        for other in catalog.images
        if not other.gone and (verdict := verdicts.get(other.reference)) and verdict.word in (Word.RUNS, Word.RUNS_WITH)
    ]
    found = min(fitting, key=lambda pair: _distance(image, *pair), default=None)
    return found[0] if found else None


def _distance(image: CatalogImage, other: CatalogImage, verdict: Verdict) -> tuple[object, ...]:
    return (
        verdict.reasons[0].id not in ("ok-native", "ok-minor-compat"),
        other.evidence is Evidence.INFERRED,
        other.parsed.name != image.parsed.name,
        other.variant != image.variant,
        _apart(image.torch, other.torch),
        major(image.cuda or "") != major(other.cuda or ""),
        verdict.word is not Word.RUNS,
        _newness(other.torch),
        _newness(other.cuda),
    )


def _apart(one: str | None, other: str | None) -> int:
    """How many releases two versions of torch are apart; an unknown one counts as one apart."""
    return abs(_place(one) - _place(other)) if one and other else 1


def _place(text: str) -> int:
    parts = (*version(text), 0, 0)
    # 2.0 came right after 1.13.
    return parts[1] + (14 if parts[0] >= 2 else 0)


def _newness(text: str | None) -> tuple[int, ...]:
    """For sorting the newest first."""
    return tuple(-part for part in version(text or ""))
