"""Images as an engine has them, by the names people and registries give them."""

from __future__ import annotations

from collections.abc import Mapping

from gpuconsole.core.errors import NotFound
from gpuconsole.engine.model import Container, Image
from gpuconsole.engine.protocol import Engine
from gpuconsole.images.reference import Reference, is_image_id, parse
from gpuconsole.launch.labels import IMAGE


def written_name(container: Container, images: Mapping[str, Image] | None = None) -> str:
    """The reference a container was made from, as it was written also where the engine was told the image's id.

    Args:
        container: The container.
        images: Image id → local image; of one made from a bare id by others, it tells what the image is called now.
    """
    written = container.image
    image = (images or {}).get(container.image_id)
    if is_image_id(written) and (label := container.labels.get(IMAGE)):
        return label
    if image is not None and (is_image_id(written) or image.short_id.startswith(written)):
        return image.name
    return written


def local_image(engine: Engine, name: str) -> Image | None:
    """The image of that tag, digest or id; None when it is not here."""
    try:
        return engine.image(name)
    except NotFound:
        return None


def digest_in(image: Image, reference: Reference) -> str | None:
    """The digest by which the reference's own repository knows an image; None when no registry gave it."""
    for text in image.digests:
        try:
            known = parse(text)
        except ValueError:
            continue
        if known.name == reference.name and known.digest:
            return known.digest
    return None


def start_name(image: Image, written: str) -> str:
    """What an engine is told, so that it starts this very image: ``name:tag@sha256:…``, or its id.

    Args:
        image: The image.
        written: The reference it was found by.
    """
    try:
        reference = parse(written)
    except ValueError:
        return image.id
    if reference.digest is not None:
        return str(reference)
    digest = digest_in(image, reference)
    return f"{reference}@{digest}" if digest else image.id
