"""Which image a launch starts: the one that the folder's lock file names, else what the reference means here.

A tag moves; a digest does not. So a container is made from a digest, or from the id of an image that no registry gave,
and carries it in a label.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from gpuconsole.core.errors import BadFile, ConsoleError
from gpuconsole.engine.model import Image
from gpuconsole.engine.protocol import Engine
from gpuconsole.engine.request import CreateRequest
from gpuconsole.images.pins import Pin, pin_of
from gpuconsole.images.reference import is_image_id, parse, short_digest
from gpuconsole.launch import labels
from gpuconsole.services.imagenames import local_image, start_name
from gpuconsole.services.lockfile import LockFile, lock_file


@dataclass(frozen=True, slots=True)
class StartingImage:
    """The image of a launch, as far as it is known."""

    written: str
    """The reference as it was written."""
    fetch: str
    """What is looked for here, and pulled: with the digest where it is pinned."""
    start: str
    """What the engine is told: with a digest, or an id; as written as long as neither is known."""
    image: Image | None = None
    """None while it is not here."""
    notes: tuple[str, ...] = ()
    """Sentences that say so."""
    lock: LockFile | None = None
    """The lock file that pins it."""

    @property
    def known(self) -> str | None:
        """Its digest or id; None while neither is known."""
        if is_image_id(self.start):
            return self.start
        _, at, digest = self.start.partition("@")
        return digest if at else None

    @property
    def unresolved(self) -> str | None:
        """A sentence when no digest stands for it; None when one does."""
        if self.known is None:
            return f"{self.written} is not here: by which digest it is started is known once it is pulled."
        if is_image_id(self.start) and self.image is None:
            return f"{self.written} is not here, and an id cannot be pulled: a launch would fail."
        if is_image_id(self.start):
            return f"{self.written} is known on this machine only, by no digest: it is started by its id."
        return None

    def found(self, image: Image) -> StartingImage:
        """The same, now that it is here."""
        return replace(self, image=image, start=start_name(image, self.fetch))

    def in_request(self, request: CreateRequest) -> CreateRequest:
        """The request made with this image, which its label names."""
        own = {labels.DIGEST: self.known} if self.known else {}
        return replace(request, image=self.start, labels=dict(request.labels) | own)


UNKNOWN = StartingImage("", "", "")
"""Nothing was asked about it yet."""


def starting_image(engine: Engine, written: str) -> StartingImage:
    """The image that a launch of ``written`` in this folder starts.

    Raises:
        BadFile: The folder's lock file has mistakes.
        ConsoleError: The engine refused or failed.
    """
    file, pin = _pinned(written)
    fetch, lock = written, None
    notes = [file.note] if file is not None and file.note else []
    if file is not None and pin is not None:
        lock = file
        # Beside a digest the tag says nothing to an engine, and much to who reads the list of containers.
        fetch = f"{pin.reference}@{pin.digest}" if pin.digest and "@" not in pin.reference else pin.image
        notes.append(f"{lock.shown} pins {pin.reference} to {_short(pin)}.")
    image = local_image(engine, fetch)
    if pin is not None and image is not None:
        notes += _moved(engine, pin, image)
    start = start_name(image, fetch) if image is not None else fetch
    return StartingImage(written, fetch, start, image, tuple(notes), lock)


def _pinned(written: str) -> tuple[LockFile | None, Pin | None]:
    """The folder's lock file, and the pin in it."""
    if is_image_id(written):  # no lock file says what an id means, not even one with mistakes
        return None, None
    try:
        lock = lock_file()
    except BadFile:  # the folder is gone, and with it whatever was pinned there
        return None, None
    return lock, pin_of(written, lock.pins())


def _short(pin: Pin) -> str:
    return short_digest(pin.digest) if pin.digest else f"id {pin.content.removeprefix('sha256:')[:12]}"


def _moved(engine: Engine, pin: Pin, image: Image) -> list[str]:
    """A sentence when the name means another image here by now."""
    try:
        named = local_image(engine, pin.reference)
    except ConsoleError:
        return []
    if named is None or named.id == image.id:
        return []
    return ["The tag means another image here by now; the pinned one is started."]


def moving_tag(written: str) -> bool:
    """Whether the reference is one that means another image every few weeks: ``latest``, or without a tag."""
    if is_image_id(written):
        return False
    try:
        reference = parse(written)
    except ValueError:
        return False
    return reference.digest is None and reference.tag == "latest"
