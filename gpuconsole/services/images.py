"""Local images with what is inside them and who uses them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpuconsole.engine.model import Container, Image
from gpuconsole.images.facts import ImageFacts, image_facts


@dataclass(frozen=True, slots=True)
class ImageView:
    """An image, what is inside it, and the containers made from it."""

    image: Image
    facts: ImageFacts
    used_by: tuple[str, ...] = ()
    """Names of the containers made from it, running or not."""


def view_images(images: Sequence[Image], containers: Sequence[Container]) -> tuple[ImageView, ...]:
    """``images`` in their order, joined with the containers that use them."""
    names: dict[str, list[str]] = {}
    for container in containers:
        names.setdefault(container.image_id, []).append(container.name)
    return tuple(ImageView(image, image_facts(image), tuple(sorted(names.get(image.id, ())))) for image in images)
