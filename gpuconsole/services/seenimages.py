"""What checks saw in images, from the runs that are remembered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gpuconsole.core.paths import state_dir
from gpuconsole.core.store import FILE
from gpuconsole.images.seen import Seen, seen_in
from gpuconsole.services.runs import Run, RunKind, Runs


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
