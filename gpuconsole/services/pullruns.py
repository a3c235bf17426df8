"""A pull by itself: what keeps it is said before, how far it is meanwhile, and what became of it in the end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from gpuconsole.core.errors import ConsoleError, UsageError
from gpuconsole.engine.model import Image
from gpuconsole.images.reference import Reference, is_image_id, parse
from gpuconsole.images.registry import Manifest, Registries
from gpuconsole.services.cancelling import Cancellation, Cancelled
from gpuconsole.services.imagenames import digest_in, local_image
from gpuconsole.services.pulling import PullState, pull
from gpuconsole.services.pullobstacles import (
    Room,
    ask_in_time,
    explained,
    platform_of,
    refuse_other_platform,
    registries,
    room,
)
from gpuconsole.services.session import Session

AT_ONCE = 3
"""Pulls side by side: an engine fetches three layers of each at a time."""


class Outcome(StrEnum):
    """What a pull brought."""

    NEW = "new"
    """The image was not here under this name."""
    MOVED = "moved"
    """The name led to another image here before."""
    SAME = "same"
    """It was here already."""


_WORDS = {
    Outcome.NEW: "is here",
    Outcome.MOVED: "is here; the name led to another image before, which stays without it",
    Outcome.SAME: "is here already",
}


@dataclass(frozen=True, slots=True)
class Pulled:
    """An image that is here now."""

    reference: str
    """As docker writes it."""
    image: Image
    digest: str | None
    """``sha256:…`` in its repository."""
    outcome: Outcome
    download_bytes: int | None = None
    """Of the whole image, as its registry counts; None when that was not asked or gave no answer."""

    @property
    def words(self) -> str:
        """What became of it, as a sentence goes on after its name."""
        return _WORDS[self.outcome]

    @property
    def pinned_name(self) -> str:
        """``name:tag@sha256:…``: what brings this very image back."""
        if self.digest is None or "@" in self.reference:
            return self.reference
        return f"{self.reference}@{self.digest}"


def read_reference(text: str) -> Reference:
    """The reference written as ``text``.

    Raises:
        UsageError: It is none, or an image's id.
    """
    if is_image_id(text):
        raise UsageError(
            "An image's id cannot be pulled: registries do not know it.",
            hint="Name a reference with a tag or digest; 'gpuconsole catalog' lists some.",
        )
    try:
        return parse(text)
    except ValueError as error:
        raise UsageError(
            f"{str(error)[:1].upper()}{str(error)[1:]}.",
            hint="Write it like pytorch/pytorch:2.9.0-cuda12.8-cudnn9-runtime.",
        ) from error


class Puller:
    """Pulls images, several at once if asked from several threads.

    Args:
        session: Whose engine.
        force: Pull also where the disk seems too small.
    """

    def __init__(self, session: Session, *, force: bool = False) -> None:
        self._engine = session.engine
        self._info = self._engine.info()
        self._platform = platform_of(self._info)
        self._space = session.pull_space
        self._ask: Registries = registries()
        self._force = force

    def pull(self, reference: Reference, *, cancel: Cancellation, on_state: Callable[[PullState], None]) -> Pulled:
        """Bring one image here.

        Args:
            reference: Which.
            cancel: Ends it, also in the engine; nothing half made is left.
            on_state: Told how far it is, hundreds of times a second.

        Raises:
            Cancelled: ``cancel`` was used.
            Conflict: The engine's disk has no room for it.
            ConsoleError: The registry or the engine failed, with the remedy for this image.
        """
        name = str(reference)
        if cancel.requested:  # it waited for its turn meanwhile: nothing is asked for it any more
            raise self._interrupted(name)
        before = local_image(self._engine, name)
        if before is not None and reference.digest is not None:
            return Pulled(name, before, reference.digest, Outcome.SAME)  # a digest means the same image for ever
        on_state(PullState(name))
        manifest = ask_in_time(lambda: self._ask.describe(reference, self._platform or ""), cancel)
        if cancel.requested:
            raise self._interrupted(name)
        if manifest is not None:
            refuse_other_platform(reference, manifest, self._info)
        download = None if manifest is None else manifest.sizes.get(self._platform or "")
        layers = self._layers(manifest)
        fills = layers if layers or download is None else {name: download}
        try:
            with self._space.share(name, fills, self._room(reference, manifest, before)) as share:

                def told(state: PullState) -> None:
                    share.reached(state)
                    on_state(state)

                pull(self._engine, name, cancel=cancel, on_pull=told, sizes=layers)
            image = self._engine.image(name)
        except Cancelled as error:
            raise self._interrupted(name) from error
        except ConsoleError as error:
            if cancel.requested:
                raise self._interrupted(name) from error
            better = explained(error, reference, self._info, self._ask)
            if better is error:
                raise
            raise better from error
        outcome = Outcome.NEW if before is None else Outcome.SAME if before.id == image.id else Outcome.MOVED
        return Pulled(name, image, digest_in(image, reference), outcome, download)

    def _room(self, reference: Reference, manifest: Manifest | None, before: Image | None) -> Room | None:
        """The room there is for a pull; None where it need not be looked at, or cannot be."""
        download = None if manifest is None else manifest.sizes.get(self._platform or "")
        here = manifest is not None and before is not None and digest_in(before, reference) == manifest.digest
        return None if download is None or here or self._force else room(self._info, download)

    def _layers(self, manifest: Manifest | None) -> dict[str, int]:
        return {} if manifest is None else dict(manifest.layers.get(self._platform or "", {}))

    def _interrupted(self, name: str) -> Cancelled:
        return Cancelled(
            f"Interrupted: {name} was not pulled, and what was here before is as it was.",
            hint="Layers that were complete may be kept; pull again to go on from them.",
        )
