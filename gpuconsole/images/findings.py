"""What registries said of the catalog's images, kept beside the shipped facts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from gpuconsole.core.errors import BadFile
from gpuconsole.core.files import remedy, write_whole
from gpuconsole.core.paths import state_dir
from gpuconsole.core.text import plain_line
from gpuconsole.images.catalog import FINDINGS, Catalog, CatalogImage, Evidence
from gpuconsole.images.reference import is_content_digest, is_platform, parse

_SCHEMA = "gpuconsole.catalog-findings/1"
_LATEST_S = 253402300800
"""The year 10000: what lies behind it is no time that a calendar has."""
_TOO_LARGE = 2**63


class Trouble(StrEnum):
    """Why a registry gave no answer to go by."""

    GONE = "gone"
    """It has no such image."""
    REFUSED = "refused"
    """It does not give it out without a login."""
    LIMIT = "limit"
    """It has been asked too often."""
    UNREACHED = "unreached"
    """It cannot be reached."""
    ANSWER = "answer"
    """What it answered makes no sense."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What a registry said of one image."""

    reference: str
    asked_at: float
    """Seconds since the epoch."""
    digest: str | None = None
    sizes: Mapping[str, int] | None = None
    """Platform → compressed bytes."""
    trouble: Trouble | None = None
    """Why there is nothing more; None when the image is there."""
    text: str = ""
    """The trouble in half a sentence."""

    @property
    def settles(self) -> bool:
        """It says that the image is there, or that it is gone."""
        return self.trouble in (None, Trouble.GONE)


def findings_path() -> Path:
    """The file, whether it is there or not."""
    return state_dir() / FINDINGS


def load_findings(path: Path | None = None) -> dict[str, Finding]:
    """Reference → what was found last; a file that cannot be read counts as none, since asking again mends it."""
    path = path or findings_path()
    try:
        document = json.loads(path.read_bytes())
        if document["schema"] != _SCHEMA:
            return {}
        found = [_finding(row) for row in document["images"]]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {}
    return {finding.reference: finding for finding in found if finding is not None}


def _finding(row: Any) -> Finding | None:
    """One of them; None when something in it is not what we write, so that it is asked again."""
    try:
        digest, sizes, trouble = row["digest"], row["sizes"], row["trouble"]
        finding = Finding(
            reference=str(parse(row["reference"])),
            asked_at=float(row["asked_at"]),
            digest=digest,
            sizes=None if sizes is None else dict(sizes.items()),
            trouble=None if trouble is None else Trouble(trouble),
            text=plain_line(str(row["text"])),
        )
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
        return None
    good = (
        0 <= finding.asked_at < _LATEST_S
        and (digest is None or is_content_digest(digest))
        and all(is_platform(name) and _is_size(size) for name, size in (finding.sizes or {}).items())
    )
    return replace(finding, reference=row["reference"]) if good else None


def _is_size(value: object) -> bool:
    return isinstance(value, int) and 0 <= value < _TOO_LARGE


def save_findings(findings: Iterable[Finding], path: Path | None = None) -> Path:
    """Add ``findings`` to what was found before; those that settle nothing leave the older ones.

    Raises:
        BadFile: The file cannot be written.
    """
    path = path or findings_path()
    kept = load_findings(path) | {finding.reference: finding for finding in findings if finding.settles}
    rows = [_row(kept[reference]) for reference in sorted(kept)]
    text = json.dumps({"schema": _SCHEMA, "images": rows}, indent=1)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text)
    except OSError as error:
        raise BadFile(
            f"What the registries said cannot be kept in {plain_line(str(path))}: {error.strerror}.",
            hint=remedy(error, "Make the folder writable, or set XDG_STATE_HOME to one that is."),
        ) from error
    return path


def _row(finding: Finding) -> dict[str, Any]:
    return {
        "reference": finding.reference,
        "asked_at": finding.asked_at,
        "digest": finding.digest,
        "sizes": None if finding.sizes is None else dict(finding.sizes),
        "trouble": finding.trouble,
        "text": finding.text,
    }


def apply(catalog: Catalog, findings: Mapping[str, Finding]) -> Catalog:
    """The catalog with what registries said in the place of what was read elsewhere."""
    if not findings:
        return catalog
    images = tuple(_with(image, findings.get(image.reference)) for image in catalog.images)
    return replace(catalog, images=images)


def _with(image: CatalogImage, finding: Finding | None) -> CatalogImage:
    if finding is None:
        return image
    if finding.trouble is not None:
        return replace(image, asked_at=finding.asked_at, gone=True)
    return replace(
        image,
        digest=finding.digest or image.digest,
        platforms=tuple(finding.sizes or ()) or image.platforms,
        sizes=finding.sizes,
        evidence=Evidence.REGISTRY,
        asked_at=finding.asked_at,
        gone=False,
    )
