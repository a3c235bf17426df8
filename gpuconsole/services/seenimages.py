"""What checks saw in images, from the runs that are remembered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from gpuconsole.core.errors import ConsoleError
from gpuconsole.core.paths import state_dir
from gpuconsole.core.store import FILE
from gpuconsole.images.reference import parse
from gpuconsole.images.seen import Seen, seen_in
from gpuconsole.services.runs import Run, RunKind, Runs

if TYPE_CHECKING:
    from gpuconsole.engine.model import Image
    from gpuconsole.services.session import Session


class SeenImages:
    """Reads each run once: asked for every picture, it looks only at those that are new. For one thread at a time."""

    def __init__(self) -> None:
        self._read: dict[str, tuple[str, Seen] | None] = {}

    def of(self, runs: Iterable[Run]) -> dict[str, Seen]:
        """Image id → what was seen in it: in a container made for the check before any other, of those the last."""
        found: dict[str, Seen] = {}
        for run in runs:
            if run.kind is not RunKind.CHECK or run.document is None:
                continue
            if run.id not in self._read:
                self._read[run.id] = seen_in(run.document, run.ended_at or run.started_at)
            told = self._read[run.id]
            if told is None:
                continue
            image, seen = told
            before = found.get(image)
            if before is None or (seen.fresh, seen.at) > (before.fresh, before.at):
                found[image] = seen
        return found


def seen_by_name(images: Iterable[Image], seen: Mapping[str, Seen]) -> dict[str, Seen]:
    """Reference, as the catalog writes it → what a check saw in the local image of that name."""
    found: dict[str, Seen] = {}
    for image in images:
        if image.id not in seen:
            continue
        for name in (*image.tags, *image.digests):
            try:
                found[str(parse(name))] = seen[image.id]
            except ValueError:
                continue
    return found


def seen_in_catalog(session: Session) -> dict[str, Seen]:
    """The same for the engine of a session; nothing where no check is remembered, or the engine does not answer."""
    seen = seen_images()
    if not seen:
        return {}
    try:
        return seen_by_name(session.engine.images(), seen)
    except ConsoleError:
        return {}


def seen_images(runs: Runs | None = None) -> Mapping[str, Seen]:
    """Image id → what a check saw in it.

    Args:
        runs: Where checks are remembered; None reads what other runs of gpuconsole left, and writes nothing.
    """
    if runs is not None:
        return SeenImages().of(runs.all())
    if not (state_dir() / FILE).exists():
        return {}
    kept = Runs()
    try:
        return SeenImages().of(kept.all())
    finally:
        kept.close()
