"""The disk that pulls under way have yet to fill, so that one more is not begun into room that is promised already."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from gpuconsole.services.pullobstacles import UNPACKED, Room, refuse_full_disk

if TYPE_CHECKING:
    from gpuconsole.engine.model import PullProgress
    from gpuconsole.services.pulling import PullState

_DIGITS = 12
"""Engines call a layer by so many of its digest."""
_HERE = ("pull complete", "already exists")
_DOWNLOADED = ("download complete", "verifying checksum", "extracting")


class Share:
    """What one pull will still take."""

    def __init__(self, layers: Mapping[str, int]) -> None:
        self.sizes = {_short(digest): count for digest, count in layers.items()}
        self._left = {layer: float(count) * (1 + UNPACKED) for layer, count in self.sizes.items()}

    @property
    def left(self) -> Mapping[str, float]:
        """Layer → bytes that it has yet to fill: of its download, and of what it unpacks to."""
        return self._left

    def reached(self, state: PullState) -> None:
        """The pull has come so far."""
        left = dict(self._left)
        for step in state.each:
            if step.layer in left:
                left[step.layer] = self._of(step)
        self._left = left  # in one step: another thread may be adding it up

    def _of(self, step: PullProgress) -> float:
        status, count = step.status.lower(), self.sizes[step.layer]
        if status.startswith(_HERE):
            return 0.0
        if status.startswith(_DOWNLOADED):
            return count * UNPACKED
        return max(0, count - (step.current_bytes or 0)) + count * UNPACKED


def _short(digest: str) -> str:
    return digest.rpartition(":")[2][:_DIGITS]


class PullSpace:
    """The pulls under way of one session, and what they will still take of the engine's disk. Safe from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._shares: list[Share] = []

    def promised(self, beside: Mapping[str, int] | None = None) -> int:
        """Bytes that the pulls under way have yet to fill.

        Args:
            beside: Layers that come by another pull as well: what both bring is stored once.
        """
        known = {_short(digest) for digest in beside or {}}
        left: dict[str, float] = {}
        for share in tuple(self._shares):
            for layer, count in share.left.items():
                if layer not in known:
                    left[layer] = max(count, left.get(layer, 0.0))
        return int(sum(left.values()))

    @contextmanager
    def share(self, what: str, layers: Mapping[str, int], space: Room | None) -> Iterator[Share]:
        """A pull's own part, for as long as it goes on.

        Args:
            what: What is pulled.
            layers: Digest of each layer → its compressed bytes.
            space: The room there is; None where that is not looked at.

        Raises:
            Conflict: It has no room beside the others.
        """
        mine = Share(layers)
        with self._lock:  # from the look to the promise: else two take the same room
            if space is not None:
                refuse_full_disk(what, replace(space, promised_bytes=self.promised(layers)))
            self._shares.append(mine)
        try:
            yield mine
        finally:
            with self._lock:
                self._shares.remove(mine)
