"""Bringing an image to the engine, with progress that a person can follow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from gpuconsole.core.errors import NotFound
from gpuconsole.core.text import gib
from gpuconsole.engine.model import Image, PullProgress
from gpuconsole.engine.protocol import Engine
from gpuconsole.images.reference import is_image_id, parse
from gpuconsole.launch.spec import PullPolicy
from gpuconsole.services.cancelling import Cancellation, Cancelled

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
    """Of the layers whose size is known by now: it grows during a pull."""
    status: str = ""
    """The engine's last word on the whole."""
    each: tuple[PullProgress, ...] = field(default=(), compare=False)
    """The last word on each layer."""

    def __str__(self) -> str:
        if not self.layers:
            return self.status or "asking the registry"
        text = f"{self.layers_downloaded} of {self.layers} layers downloaded"
        if self.total_bytes:
            text += f", {gib(self.current_bytes)} of {gib(self.total_bytes)} GiB"
            if self.layers_downloaded == self.layers and self.layers_done < self.layers:
                text += ", unpacking"
        return text


class PullMeter:
    """Adds up the steps of a pull."""

    def __init__(self, reference: str) -> None:
        self._reference = reference
        self._layers: dict[str, PullProgress] = {}
        self._sizes: dict[str, tuple[int, int]] = {}
        self._status = ""

    def add(self, step: PullProgress) -> PullState:
        """The state after ``step``."""
        status = step.status.lower()
        if not step.layer or status.startswith("pulling from"):
            self._status = step.status
            return self.state
        self._layers[step.layer] = step
        if status.startswith("downloading") and step.total_bytes:
            self._sizes[step.layer] = (step.current_bytes or 0, step.total_bytes)
        elif status.startswith(_DOWNLOADED) and step.layer in self._sizes:
            total = self._sizes[step.layer][1]
            self._sizes[step.layer] = (total, total)
        return self.state

    @property
    def state(self) -> PullState:
        """How far it is now."""
        statuses = [step.status.lower() for step in self._layers.values()]
        return PullState(
            reference=self._reference,
            layers=len(statuses),
            layers_done=sum(status.startswith(_DONE) for status in statuses),
            layers_downloaded=sum(status.startswith(_DOWNLOADED) for status in statuses),
            current_bytes=sum(current for current, _ in self._sizes.values()),
            total_bytes=sum(total for _, total in self._sizes.values()),
            status=self._status,
            each=tuple(self._layers.values()),
        )


def ensure_image(
    engine: Engine,
    reference: str,
    *,
    policy: PullPolicy = PullPolicy.MISSING,
    cancel: Cancellation,
    on_pull: Callable[[PullState], None],
) -> tuple[Image, bool]:
    """The local image of ``reference``, pulled when the policy says so; and whether it was pulled.

    Raises:
        NotFound: It is not here and may not be pulled, or the registry does not have it.
        Cancelled: The stop was asked for; layers that were not complete are gone.
        EngineRefused: The registry or the engine failed.
    """
    if policy is not PullPolicy.ALWAYS:
        image = _local(engine, reference)
        if image is not None:
            return image, False
    if policy is PullPolicy.NEVER:
        raise NotFound(
            f"The image {reference} is not here, and --pull never forbids to fetch it.",
            hint="Leave --pull never out, or name one of 'gpuconsole images'.",
        )
    if is_image_id(reference):
        raise NotFound(
            f"There is no local image with the id {reference}, and an id cannot be pulled.",
            hint="Name one of 'gpuconsole images', or a reference with a tag or digest.",
        )
    pull(engine, reference, cancel=cancel, on_pull=on_pull)
    return engine.image(reference), True


def pull(engine: Engine, reference: str, *, cancel: Cancellation, on_pull: Callable[[PullState], None]) -> PullState:
    """Pull ``reference``; ``on_pull`` is called at every step."""
    full = str(parse(reference))
    meter = PullMeter(full)
    on_pull(meter.state)
    stream = engine.pull(full)
    with cancel.closing(stream):
        for step in stream:
            if cancel.requested:
                break
            on_pull(meter.add(step))
    if cancel.requested:
        raise Cancelled(
            f"Interrupted while pulling {reference}: nothing was launched.",
            hint="Layers that were complete are kept; pull again to go on from them.",
        )
    return meter.state


def _local(engine: Engine, reference: str) -> Image | None:
    try:
        return engine.image(reference)
    except NotFound:
        return None
