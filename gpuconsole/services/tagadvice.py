"""A better tag than ``latest``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuconsole.core.errors import ConsoleError
from gpuconsole.images.reference import parse
from gpuconsole.launch.changes import Change
from gpuconsole.launch.preflight import Said
from gpuconsole.services.startingimage import moving_tag

if TYPE_CHECKING:
    from gpuconsole.services.session import Session


def latest_note(session: Session, written: str) -> str | None:
    """A sentence for a reference with the tag ``latest`` or none, with the newest tag that runs here; else None."""
    advice = latest_advice(session, written)
    return advice.message if advice is not None else None


def latest_advice(session: Session, written: str) -> Said | None:
    """The same, and the change of the image where the catalog has one for it."""
    if not moving_tag(written):
        return None
    name = parse(written).name
    best = _newest_fitting(session, name)
    told = f"{name}:latest means another image with every release"
    if best is None:
        return Said(f"{told}; name a tag, or pin it.")
    return Said(f"{told}; the newest of the catalog that runs here is {best}.", change=Change("image", best))


def _newest_fitting(session: Session, name: str) -> str | None:
    """The newest image of that repository in the catalog that runs on this machine; None when that is not known."""
    from gpuconsole.images.verdict import Word
    from gpuconsole.images.versions import version
    from gpuconsole.services.catalog import load_catalog, view_catalog
    from gpuconsole.services.fitting import engine_machine

    try:
        catalog = load_catalog()
        if not any(image.parsed.name == name for image in catalog.images):
            return None
        views = view_catalog(catalog, engine_machine(session).traits)
    except ConsoleError:
        return None
    fitting = [
        view
        for view in views
        if view.image.parsed.name == name and not view.image.gone and view.verdict.word in (Word.RUNS, Word.RUNS_WITH)
    ]
    best = max(
        fitting,
        key=lambda view: (
            view.verdict.word is Word.RUNS,
            version(view.image.torch or ""),
            view.image.variant == "runtime",
            version(view.image.cuda or ""),
        ),
        default=None,
    )
    return best.image.reference if best else None
