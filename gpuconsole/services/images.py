"""Local images with what is inside them and who uses them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpuconsole.engine.model import Container, Image
from gpuconsole.images.facts import ImageFacts, image_facts
from gpuconsole.images.verdict import HostTraits, Verdict


@dataclass(frozen=True, slots=True)
class ImageView:
    """An image, what is inside it, and the containers made from it."""

    image: Image
    facts: ImageFacts
    used_by: tuple[str, ...] = ()
    """Names of the containers made from it, running or not."""
    verdict: Verdict | None = None
    """Whether it runs on the machine that was asked about; None when none was."""


def view_images(
    images: Sequence[Image], containers: Sequence[Container], host: HostTraits | None = None
) -> tuple[ImageView, ...]:
    """``images`` in their order, joined with the containers that use them, and judged for ``host``."""
    names: dict[str, list[str]] = {}
    for container in containers:
        names.setdefault(container.image_id, []).append(container.name)
    return tuple(_view(image, names.get(image.id, []), host) for image in images)


def _view(image: Image, users: Sequence[str], host: HostTraits | None) -> ImageView:
    facts = image_facts(image)
    return ImageView(image, facts, tuple(sorted(users)), None if host is None else judge_local(image, host, facts))


def judge_local(image: Image, host: HostTraits, facts: ImageFacts | None = None) -> Verdict:
    """Whether an image that lies here runs on ``host``, from what it says of itself."""
    from gpuconsole.images.compatibility import shipped_compatibility
    from gpuconsole.images.judge import judge
    from gpuconsole.images.traits import from_local

    compatibility = shipped_compatibility()
    return judge(from_local(image, compatibility, facts), host, compatibility)
