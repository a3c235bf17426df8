"""Bringing an image to the engine, with progress that a person can follow."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from gpuconsole.core.text import duration, gib, size
from gpuconsole.engine.model import PullProgress
from gpuconsole.engine.protocol import Engine
from gpuconsole.images.reference import parse
from gpuconsole.services.cancelling import Cancellation, Cancelled
from gpuconsole.services.pace import Pace, left_s

_DONE = ("pull complete", "already exists")
_DOWNLOADED = ("download complete", "verifying checksum", "extracting", *_DONE)


@dataclass(frozen=True, slots=True)
class PullState:
    """How far a pull is."""

    reference: str
    layers: int = 0
    layers_done: int = 0
    """Downloaded and unpacked; containerd's image store does not tell of each layer's unpacking."""
    layers_downloaded: int = 0
    current_bytes: int = 0
    """Downloaded so far, of the layers whose size is known."""
    total_bytes: int = 0
    """Of the layers whose size is known by now: it grows during a pull, unless the registry told all sizes before."""
    status: str = ""
    """The engine's last word on the whole."""
    each: tuple[PullProgress, ...] = field(default=(), compare=False)
    """The last word on each layer."""
    rate: float | None = None
    """Bytes a second over the last seconds; None as long as too little was seen."""
    left_s: float | None = None
    """Until all is downloaded, at that rate; None as long as not all sizes are known."""

    @property
    def unpacking(self) -> bool:
        """All is downloaded, and not all unpacked."""
        return self.layers_downloaded == self.layers and self.layers_done < self.layers

    @property
    def words(self) -> str:
        """The same as it is told in a narrow place: bytes, rate and time first."""
        if not self.layers:
            return self.status or "asking the registry"
        layers = f"{self.layers_downloaded}/{self.layers} layers"
        if not self.total_bytes:
            return layers
        parts = [_of(self.current_bytes, self.total_bytes)]
        if self.unpacking:
            parts.append("unpacking")
        elif self.current_bytes < self.total_bytes and self.rate is not None:
            parts += [
                f"{size(int(self.rate))}/s",
                *([f"{duration(self.left_s)} left"] if self.left_s is not None else []),
            ]
        return ", ".join([*parts, layers])

    def __str__(self) -> str:
        if not self.layers:
            return self.status or "asking the registry"
        text = f"{self.layers_downloaded} of {self.layers} layers downloaded"
        if self.total_bytes:
            text += f", {_of(self.current_bytes, self.total_bytes)}"
            if self.unpacking:
                text += ", unpacking"
            elif self.current_bytes < self.total_bytes and self.rate is not None:
                text += f", {size(int(self.rate))}/s"
                text += f", {duration(self.left_s)} left" if self.left_s is not None else ""
        return text


def _of(current: int, total: int) -> str:
    if total >= 2**30:
        return f"{gib(current)} of {gib(total)} GiB"
    return f"{size(current)} of {size(total)}"


class PullMeter:
    """Adds up the steps of a pull.

    Args:
        reference: What is pulled.
        sizes: Digest of each layer → its compressed bytes, when the registry told them.
        clock: Seconds that only grow.
    """

    def __init__(
        self, reference: str, sizes: Mapping[str, int] | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._reference = reference
        # Engines call a layer by the first twelve digits of its digest.
        self._promised = {digest.rpartition(":")[2][:12]: count for digest, count in (sizes or {}).items()}
        self._layers: dict[str, PullProgress] = {}
        self._sizes: dict[str, tuple[int, int]] = {}
        self._status = ""
        self._pace = Pace(clock)
        self._rate: float | None = None

    def add(self, step: PullProgress) -> PullState:
        """The state after ``step``."""
        status = step.status.lower()
        if not step.layer or status.startswith("pulling from"):
            self._status = step.status
            return self.state
        self._layers[step.layer] = step
        promised = self._promised.get(step.layer)
        if status.startswith("downloading") and (step.total_bytes or promised):
            self._sizes[step.layer] = (step.current_bytes or 0, step.total_bytes or promised or 0)
        elif status.startswith("already exists"):
            self._sizes.pop(step.layer, None)
            self._promised.pop(step.layer, None)
        elif status.startswith(_DOWNLOADED) and (step.layer in self._sizes or promised):
            total = self._sizes[step.layer][1] if step.layer in self._sizes else promised or 0
            self._sizes[step.layer] = (total, total)
        self._rate = self._pace.reached(sum(current for current, _ in self._sizes.values()))
        return self.state

    @property
    def state(self) -> PullState:
        """How far it is now."""
        statuses = [step.status.lower() for step in self._layers.values()]
        current = sum(current for current, _ in self._sizes.values())
        waiting = sum(count for layer, count in self._promised.items() if layer not in self._sizes)
        total = sum(total for _, total in self._sizes.values()) + waiting
        # A configuration, which some engines list among the layers, is too small to wait for its size.
        known = bool(self._promised) or all(
            layer in self._sizes or step.status.lower().startswith(_DOWNLOADED) for layer, step in self._layers.items()
        )
        return PullState(
            reference=self._reference,
            layers=len(statuses),
            layers_done=sum(status.startswith(_DONE) for status in statuses),
            layers_downloaded=sum(status.startswith(_DOWNLOADED) for status in statuses),
            current_bytes=current,
            total_bytes=total,
            status=self._status,
            each=tuple(self._layers.values()),
            rate=self._rate,
            left_s=left_s(total - current, self._rate) if known and self._sizes else None,
        )


def pull(
    engine: Engine,
    reference: str,
    *,
    cancel: Cancellation,
    on_pull: Callable[[PullState], None],
    sizes: Mapping[str, int] | None = None,
) -> PullState:
    """Pull ``reference``; ``on_pull`` is called at every step.

    Args:
        engine: What pulls.
        reference: With a tag or digest.
        cancel: Ends it.
        on_pull: Told how far it is.
        sizes: Digest of each layer → its compressed bytes, when the registry told them.

    Raises:
        Cancelled: The stop was asked for.
        ConsoleError: The registry or the engine failed.
    """
    full = str(parse(reference))
    meter = PullMeter(full, sizes)
    on_pull(meter.state)
    stream = engine.pull(full)
    with cancel.closing(stream):
        for step in stream:
            if cancel.requested:
                break
            on_pull(meter.add(step))
    if cancel.requested:
        raise Cancelled(
            f"Interrupted while pulling {reference}.",
            hint="Layers that were complete are kept; pull again to go on from them.",
        )
    return meter.state
