"""Local images with what is inside them and who uses them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from gpuconsole.core.errors import ConsoleError
from gpuconsole.engine.model import Container, Image
from gpuconsole.engine.protocol import Engine
from gpuconsole.images.facts import ImageFacts, image_facts
from gpuconsole.images.seen import Seen, with_seen
from gpuconsole.images.verdict import HostTraits, Verdict
from gpuconsole.services.gather import gather

_WORKERS = 4
_DEADLINE_S = 20.0


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
    images: Sequence[Image],
    containers: Sequence[Container],
    host: HostTraits | None = None,
    *,
    histories: Mapping[str, Sequence[str]] | None = None,
    seen: Mapping[str, Seen] | None = None,
) -> tuple[ImageView, ...]:
    """``images`` in their order, joined with the containers that use them.

    Args:
        images: The local images.
        containers: All containers.
        host: The machine to judge the images for; None judges none.
        histories: Image id → the commands it was built with, as :func:`read_histories` gives them.
        seen: Image id → what a check saw in it, as :func:`gpuconsole.services.seenimages.seen_images` gives them.
    """
    names: dict[str, list[str]] = {}
    for container in containers:
        names.setdefault(container.image_id, []).append(container.name)
    told = {
        image.id: known_facts(image, (histories or {}).get(image.id, ()), (seen or {}).get(image.id))
        for image in images
    }
    return tuple(_view(image, names.get(image.id, []), host, told[image.id]) for image in images)


def known_facts(image: Image, history: Sequence[str] = (), seen: Seen | None = None) -> ImageFacts:
    """What is inside an image: what it says of itself, and what a check saw there."""
    facts = image_facts(image, history)
    return facts if seen is None else with_seen(facts, seen)


def _view(image: Image, users: Sequence[str], host: HostTraits | None, facts: ImageFacts) -> ImageView:
    return ImageView(image, facts, tuple(sorted(users)), None if host is None else judge_local(image, host, facts))


def read_histories(engine: Engine, images: Sequence[Image]) -> dict[str, tuple[str, ...]]:
    """Image id → the commands it was built with, several asked for at once; without those that gave no answer."""
    answers = gather(
        [partial(engine.image_history, image.id) for image in images], workers=_WORKERS, deadline_s=_DEADLINE_S
    )
    return {
        image.id: answer for image, answer in zip(images, answers, strict=True) if not isinstance(answer, ConsoleError)
    }


def judge_local(image: Image, host: HostTraits, facts: ImageFacts | None = None) -> Verdict:
    """Whether an image that lies here runs on ``host``, from what it says of itself."""
    from gpuconsole.images.compatibility import shipped_compatibility
    from gpuconsole.images.judge import judge
    from gpuconsole.images.traits import from_local

    compatibility = shipped_compatibility()
    return judge(from_local(image, compatibility, facts), host, compatibility)
