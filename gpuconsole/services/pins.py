"""Pinning: what a reference means now, held to that; and whether its registry still says the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from functools import partial

from gpuconsole.core.errors import ConsoleError, EngineRefused, EngineUnavailable, NotFound, Refused, TimedOut
from gpuconsole.engine.model import Image
from gpuconsole.engine.protocol import Engine
from gpuconsole.images.findings import Trouble
from gpuconsole.images.pins import Pin
from gpuconsole.images.reference import Reference, parse, short_digest
from gpuconsole.images.registry import Manifest, Registries
from gpuconsole.images.registrycalls import RegistryError
from gpuconsole.services.gather import gather
from gpuconsole.services.imagenames import digest_in, local_image
from gpuconsole.services.pullobstacles import platform_of
from gpuconsole.services.pullruns import Pulled
from gpuconsole.services.session import Session

_WORKERS = 4
"""Questions at once: a registry is not to be pressed."""
_DEADLINE_S = 120.0
_LATE = TimedOut("Its registry was not heard: it did not answer in time.", hint="Try again later.")


class PinState(StrEnum):
    """What became of a pin."""

    SAME = "same"
    """The tag still leads to it."""
    MOVED = "moved"
    """The tag leads to another image, or is gone; the pinned image is still there by its digest."""
    GONE = "gone"
    """The pinned image is there no more."""
    UNKNOWN = "unknown"
    """The registry gave no answer to go by."""


@dataclass(frozen=True, slots=True)
class PinCheck:
    """A pin, and what its registry says of it."""

    pin: Pin
    state: PinState
    text: str
    """In half a sentence."""
    now: str | None = None
    """What the tag leads to now, when it moved: a digest, or an id."""
    here: bool | None = None
    """The pinned image is on this machine; None without an engine that answers."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """What a reference means, ready to be pinned."""

    pin: Pin
    notes: tuple[str, ...] = ()
    """Sentences about what may not be meant."""


class Pinner:
    """Finds out what references mean.

    Args:
        session: Whose engine; none has to answer.
        ask: The registries.
    """

    def __init__(self, session: Session, ask: Registries) -> None:
        self._ask = ask
        self._engine: Engine | None = None
        self._platform: str | None = None
        try:
            self._engine = session.engine
            self._platform = platform_of(self._engine.info())
        except (EngineUnavailable, Refused):
            self._engine = None

    @property
    def has_engine(self) -> bool:
        """An engine answers, so that it is known what is here."""
        return self._engine is not None

    def here(self, pin: Pin) -> bool | None:
        """Whether the pinned image is on this machine; None without an engine."""
        return None if self._engine is None else local_image(self._engine, pin.image) is not None

    def meaning(self, reference: Reference) -> Resolved:
        """What ``reference`` means here; of an image that is not here, what its registry says.

        Raises:
            NotFound: It is neither here nor in its registry.
            Refused: The registry does not tell without a login.
            EngineRefused: It is not here, and its registry gives no answer.
        """
        image = self._local(reference)
        try:
            manifest = self._ask.describe(reference, self._platform or "")
        except RegistryError as error:
            if image is None:
                raise _unresolved(reference, error, engine=self.has_engine) from error
            return self._local_only(reference, image, error)
        if image is None:
            return Resolved(self._pin(reference, manifest.digest, None, manifest))
        digest = digest_in(image, reference)
        if digest is None:
            other = f"{reference} is the image that is here, by its id; its registry has another one of that name."
            return Resolved(self._by_id(reference, image), (other,))
        if digest == manifest.digest:
            return Resolved(self._pin(reference, digest, image, manifest))
        moved = (
            f"{reference} is pinned to the image that is here ({short_digest(digest)}); in its registry the tag leads "
            f"to another one by now ({short_digest(manifest.digest)}), which 'gpuconsole pin --update' takes."
        )
        return Resolved(self._pin(reference, digest, image, None), (moved,))

    def newest(self, reference: Reference) -> Resolved:
        """What ``reference`` means to its registry now; of an image no registry gave, what it means here.

        Raises:
            ConsoleError: As :meth:`meaning`.
        """
        image = self._local(reference)
        try:
            manifest = self._ask.describe(reference, self._platform or "")
        except RegistryError as error:
            if image is not None and digest_in(image, reference) is None:
                return Resolved(self._by_id(reference, image))
            raise _not_heard(reference, error) from error
        same = image is not None and digest_in(image, reference) == manifest.digest
        return Resolved(self._pin(reference, manifest.digest, image if same else None, manifest))

    def hold(self, pin: Pin) -> None:
        """Let the engine keep a pinned image that is here."""
        if self._engine is not None and self.here(pin):
            hold(self._engine, pin)

    def _local(self, reference: Reference) -> Image | None:
        return None if self._engine is None else local_image(self._engine, str(reference))

    def _local_only(self, reference: Reference, image: Image, error: RegistryError) -> Resolved:
        digest = digest_in(image, reference)
        if digest is not None:
            why = f"{reference} is pinned as it is here; its registry was not heard: {error.text}."
            return Resolved(self._pin(reference, digest, image, None), (why,))
        only = f"{reference} is known here only: it is pinned by its id, and other machines cannot fetch it."
        return Resolved(self._by_id(reference, image), (only,))

    def _pin(self, reference: Reference, digest: str, image: Image | None, manifest: Manifest | None) -> Pin:
        platform = f"{image.os}/{image.architecture}" if image and image.os and image.architecture else self._platform
        return Pin(
            str(reference),
            digest=digest,
            platform=platform,
            size_bytes=image.size_bytes if image else None,
            download_bytes=manifest.sizes.get(platform or "") if manifest else None,
            pinned=date.today(),
        )

    def _by_id(self, reference: Reference, image: Image) -> Pin:
        pin = self._pin(reference, image.id, image, None)
        return Pin(
            pin.reference, image_id=image.id, platform=pin.platform, size_bytes=pin.size_bytes, pinned=pin.pinned
        )

    def check(self, pins: Sequence[Pin]) -> tuple[PinCheck, ...]:
        """Ask for each pin whether its tag has moved or its image is gone; in their order."""
        here = [self.here(pin) for pin in pins]  # beforehand: that does not depend on what registries say, or when
        questions: list[Callable[[], PinCheck]] = [
            partial(self._check, pin, is_here) for pin, is_here in zip(pins, here, strict=True)
        ]
        answers = gather(questions, workers=_WORKERS, deadline_s=_DEADLINE_S, late=_LATE)
        return tuple(
            PinCheck(pin, PinState.UNKNOWN, answer.message.rstrip("."), here=is_here)
            if isinstance(answer, ConsoleError)
            else answer
            for pin, is_here, answer in zip(pins, here, answers, strict=True)
        )

    def _check(self, pin: Pin, here: bool | None) -> PinCheck:
        if pin.digest is None:
            return self._check_id(pin, here)
        reference = parse(pin.reference)
        try:
            now: str | None = self._ask.digest(reference)
        except RegistryError as error:
            if error.trouble is not Trouble.GONE:
                return PinCheck(pin, PinState.UNKNOWN, f"its registry was not heard: {error.text}", here=here)
            now = None
        if now == pin.digest:
            return PinCheck(pin, PinState.SAME, "the tag leads to it", here=here)
        where = "the tag is gone" if now is None else f"the tag leads to {short_digest(now)} now"
        if reference.digest is not None:
            return PinCheck(pin, PinState.GONE, "its registry has it no more", here=here)
        try:
            self._ask.digest(Reference(reference.registry, reference.repository, digest=pin.digest))
        except RegistryError as error:
            if error.trouble is Trouble.GONE:
                return PinCheck(pin, PinState.GONE, f"{where}, and its registry has it no more", now=now, here=here)
            still = f"whether its registry still has the pinned one is not known: {error.text}"
            return PinCheck(pin, PinState.UNKNOWN, f"{where}; {still}", now=now, here=here)
        return PinCheck(pin, PinState.MOVED, where, now=now, here=here)

    def _check_id(self, pin: Pin, here: bool | None) -> PinCheck:
        """Of an image that no registry gave, the engine is asked."""
        if self._engine is None:
            return PinCheck(pin, PinState.UNKNOWN, "no engine answers, and it is known on one machine only")
        if not here:
            return PinCheck(pin, PinState.GONE, "it is not on this machine, and no registry has it", here=here)
        image = local_image(self._engine, pin.reference)
        if image is not None and image.id == pin.image_id:
            return PinCheck(pin, PinState.SAME, "the name leads to it", here=here)
        where = "the name is gone" if image is None else "the name leads to another image now"
        return PinCheck(pin, PinState.MOVED, where, now=image.id if image else None, here=here)


def hold(engine: Engine, pin: Pin) -> None:
    """Let the engine keep a pinned image that is here, also when its tag leads to another one later.

    Containerd's image store drops an image with its last name, so the pinned one gets a name by its digest, for which
    its registry is asked; where that fails, a launch fetches it again. The other store keeps such names by itself.

    Raises:
        EngineUnavailable: The engine does not answer any more.
    """
    if pin.digest is None or engine.info().image_store != "containerd":
        return
    try:
        for _ in engine.pull(pin.image):
            pass
    except EngineUnavailable:
        raise
    except ConsoleError:
        return


def pin_of_pulled(pulled: Pulled) -> Pin:
    """The pin of an image that was just pulled."""
    image = pulled.image
    return Pin(
        pulled.reference,
        digest=pulled.digest,
        image_id=None if pulled.digest else image.id,
        platform=f"{image.os}/{image.architecture}" if image.os and image.architecture else None,
        size_bytes=image.size_bytes,
        download_bytes=pulled.download_bytes,
        pinned=date.today(),
    )


def _unresolved(reference: Reference, error: RegistryError, *, engine: bool) -> ConsoleError:
    """Why a reference that is not here cannot be resolved: said, not guessed."""
    here = "is not here" if engine else "may be here, but no engine answers"
    if error.trouble is Trouble.GONE:
        return NotFound(
            f"{reference} {here}, and {reference.registry} has no such image.",
            hint=f"'gpuconsole pull {reference}' names the nearest tags.",
        )
    message = f"{reference} {here}, and its registry does not say what it means: {error.text}."
    return _of_kind(error, reference, message)


def _not_heard(reference: Reference, error: RegistryError) -> ConsoleError:
    """Why a pin cannot be brought up to date; it stays as it is."""
    if error.trouble is Trouble.GONE:
        return NotFound(
            f"{reference.registry} has no {reference} any more, so its pin stays as it is.",
            hint="Pin another tag; 'gpuconsole pin --check' says whether the pinned image can still be pulled.",
        )
    return _of_kind(error, reference, f"The pin of {reference} stays: its registry was not heard: {error.text}.")


def _of_kind(error: RegistryError, reference: Reference, message: str) -> ConsoleError:
    if error.trouble is Trouble.REFUSED:
        return Refused(message, hint=f"Log in: docker login {reference.registry}")
    return EngineRefused(message, hint="Try again when the registry can be reached.")
