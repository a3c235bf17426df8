"""Removing images: what would go, what it frees, and what has to stay because a pin or a container needs it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gpuconsole.core.errors import BadFile, Conflict, ConsoleError, NotFound
from gpuconsole.core.nearness import did_you_mean
from gpuconsole.core.text import plain_line
from gpuconsole.engine.model import Image
from gpuconsole.engine.protocol import Engine
from gpuconsole.images.pins import Pin
from gpuconsole.images.reference import is_image_id
from gpuconsole.services.lockfile import AllPins


@dataclass(frozen=True, slots=True)
class Removal:
    """What is to go."""

    image: Image
    names: tuple[str, ...]
    """The names that are taken from it; without any it is removed by its id."""
    whole: bool
    """The image goes, not only a name of it."""

    @property
    def name(self) -> str:
        """What a person calls it."""
        return self.names[0] if self.names else self.image.name

    @property
    def freed_bytes(self) -> int | None:
        """At most so many: layers that other images share stay. None when not known."""
        return self.image.size_bytes if self.whole else 0


@dataclass(frozen=True, slots=True)
class Need:
    """Why an image stays."""

    text: str
    """In half a sentence."""
    remedy: str
    """What would let it go, one sentence."""
    pinned: bool = False
    """A lock file names it."""


@dataclass(frozen=True, slots=True)
class Kept:
    """An image that stays, and why."""

    image: Image
    need: Need


@dataclass(frozen=True, slots=True)
class Removed:
    """What became of a removal."""

    removal: Removal
    error: ConsoleError | None = None
    """Why it is still there."""


class Keeper:
    """Knows what may not go.

    Args:
        engine: Whose images and containers.
        pins: The pins of every lock file that is known.

    Raises:
        BadFile: A lock file cannot be read, so that it is not known what it pins.
    """

    def __init__(self, engine: Engine, pins: AllPins) -> None:
        if pins.unread:
            error = pins.unread[0]
            raise BadFile(
                f"It is not known which images are pinned: {error.message}", hint=error.hint, detail=error.detail
            )
        self._pins = pins.pins
        self._users: dict[str, list[str]] = {}
        for container in engine.containers():
            self._users.setdefault(container.image_id, []).append(container.name)

    def need(self, image: Image) -> Need | None:
        """Why it stays; None when it may go."""
        for lock, pin in self._pins:
            if is_pinned(image, pin):
                remove = f"gpuconsole pin --remove {pin.reference}"
                where = "" if lock.shown.startswith("./") else f", in {plain_line(str(lock.path.parent))}"
                return Need(f"{lock.shown} pins it as {pin.reference}", f"Take the pin away{where}: {remove}", True)
        users = sorted(self._users.get(image.id, ()))
        if not users:
            return None
        more = f" and {len(users) - 3} more" if len(users) > 3 else ""
        text = f"{', '.join(users[:3])}{more} {'was' if len(users) == 1 else 'were'} made from it"
        return Need(text, f"Remove the containers first: gpuconsole rm {' '.join(users)}")


def is_pinned(image: Image, pin: Pin) -> bool:
    """Whether the pin is of this very image, under whatever name it is here."""
    if pin.image_id is not None:
        return image.id == pin.image_id
    return pin.digest == image.id or any(name.partition("@")[2] == pin.digest for name in image.digests)


def removal(engine: Engine, text: str, keeper: Keeper) -> Removal:
    """What ``image rm text`` takes: a tag, and with its last tag the image; by its id or digest the image.

    Raises:
        NotFound: There is no such image; the hint names the nearest.
        Conflict: It is pinned, or a container was made from it.
    """
    try:
        image = engine.image(text)
    except NotFound as error:
        raise NotFound(f"There is no image {text!r} here.", hint=_nearest(engine, text)) from error
    tag = _tag_of(image, text)
    names = (tag,) if tag else (*image.tags, *(() if image.tags else _digest_names(image)))
    whole = tag is None or len(image.tags) == 1
    need = keeper.need(image)
    if need is not None and (whole or need.pinned):
        raise Conflict(f"{image.name} stays: {need.text}.", hint=need.remedy)
    return Removal(image, names, whole)


def _tag_of(image: Image, text: str) -> str | None:
    """The tag that ``text`` names; None when it is an id or a digest."""
    if text in image.tags:
        return text
    if is_image_id(text) or "@" in text:
        return None
    completed = f"{text}:latest"
    return completed if completed in image.tags else None


def _digest_names(image: Image) -> tuple[str, ...]:
    """The names of an image without tags, when it has several; by its id it goes only with one."""
    return image.digests if len(image.digests) > 1 else ()


def _nearest(engine: Engine, text: str) -> str:
    tags = (tag for image in engine.images() for tag in image.tags)
    return did_you_mean(text, tags) or "'gpuconsole images' lists the names."


def prunable(engine: Engine, keeper: Keeper, *, everything: bool) -> tuple[tuple[Removal, ...], tuple[Kept, ...]]:
    """What ``image prune`` takes, and what it leaves although nothing else needs it.

    Args:
        engine: Whose images.
        keeper: Knows what may not go.
        everything: Also images with a tag that no container was made from; else only those without one.
    """
    taken: list[Removal] = []
    kept: list[Kept] = []
    for image in engine.images(nameless=True):
        if image.tags and not everything:
            continue
        need = keeper.need(image)
        if need is not None:
            kept.append(Kept(image, need))
        else:
            taken.append(Removal(image, image.tags or _digest_names(image), whole=True))
    return tuple(taken), tuple(kept)


def remove(engine: Engine, removals: Sequence[Removal]) -> tuple[Removed, ...]:
    """Take them; one that the engine holds on to does not keep the others from going.

    Nothing is forced: an image that a container uses by now, or that another one is made from, stays. What stands in
    another's way goes first, in whatever order they are given.
    """
    errors: list[ConsoleError | None] = [None] * len(removals)
    waiting = list(range(len(removals)))
    while waiting:
        for position in waiting:
            errors[position] = _removed(engine, removals[position])
        held = [position for position in waiting if isinstance(errors[position], Conflict)]
        if len(held) == len(waiting):
            break
        waiting = held
    return tuple(Removed(each, error) for each, error in zip(removals, errors, strict=True))


def _removed(engine: Engine, each: Removal) -> ConsoleError | None:
    # A name by digest may be left when the others are gone, and holds the image.
    for name in (*each.names, *([each.image.id] if each.whole else [])):
        try:
            _refuse_changed(engine, each, name)
            engine.remove_image(name)
        except NotFound:
            continue
        except ConsoleError as error:
            return error
    return None


def _refuse_changed(engine: Engine, each: Removal, name: str) -> None:
    """Look again just before: a question may have stood for minutes, and the answer was about what it named.

    Raises:
        NotFound: It is gone already.
        Conflict: The name leads to another image by now, or somebody gave the image a further name.
    """
    now = engine.image(name)
    again = "See what is there with 'gpuconsole images', then ask again."
    if now.id != each.image.id:
        raise Conflict(f"{name} leads to another image by now.", hint=again)
    fresh = [tag for tag in now.tags if tag not in each.names]
    if each.whole and fresh:
        raise Conflict(f"It has got another name meanwhile: {fresh[0]}.", hint=again)


def freed_bytes(removals: Iterable[Removal]) -> int:
    """At most so many bytes; an image that is there twice counts once."""
    sizes: Mapping[str, int] = {each.image.id: each.freed_bytes or 0 for each in removals if each.whole}
    return sum(sizes.values())
