"""Local images of either image store."""

from __future__ import annotations

from collections import Counter

from gpuconsole.core.errors import Conflict, EngineRefused, NotFound
from gpuconsole.engine.docker.answers import Answer, labels, line, lines, moment, pairs, part, whole, words
from gpuconsole.engine.docker.connection import Connection
from gpuconsole.engine.model import Image, ImageStep

_NONE = "<none>"
_REMOVE_TIMEOUT_S = 300.0
"""Many gigabytes in many small files take a disk its time."""
_HOLDERS = (
    (
        "dependent child images",
        "Another image here is made from it.",
        "Remove that one first; 'gpuconsole images' lists them.",
    ),
    (
        "multiple repositories",
        "It has several names by now.",
        "Remove them by name; 'gpuconsole images --all' lists them.",
    ),
    ("is using", "A container is made from it.", "Remove that one first; 'gpuconsole ps' lists them."),
    ("being used", "A container is made from it.", "Remove that one first; 'gpuconsole ps' lists them."),
)
"""Engines' words for why an image cannot go, and ours."""


def list_images(connection: Connection, *, nameless: bool = False) -> tuple[Image, ...]:
    """All images that have a tag or digest or are in use, newest first. One that vanishes meanwhile is left out.

    Args:
        connection: The engine.
        nameless: Also those that have neither and are not in use: what builds and moved tags leave behind.
    """
    summaries = {line(item, "Id"): item for item in connection.ask(lambda client: client.images())}
    users = _users(connection)
    found = []
    for reference, summary in summaries.items():
        named = _names(summary, "RepoTags") or _names(summary, "RepoDigests")
        if not (named or users[reference] or nameless):
            continue
        try:
            found.append(described(_inspection(connection, reference), summary, containers=users[reference]))
        except NotFound:
            continue
        except EngineRefused:
            found.append(described({}, summary, containers=users[reference]))
    # Engines give them in no order; images of one second, as some builds date all of theirs, must not change places.
    return tuple(sorted(found, key=lambda image: (-(image.created_at or 0.0), image.name, image.id)))


def find_image(connection: Connection, reference: str) -> Image:
    """The local image with this tag, digest or id.

    Raises:
        NotFound: There is none.
    """
    if not reference.strip():
        raise NotFound("There is no image without a name.", hint="'gpuconsole images' lists the names.")
    return described(_inspection(connection, reference), {})


def image_history(connection: Connection, reference: str) -> tuple[str, ...]:
    """The commands an image was built with, the newest first; empty where the engine kept none.

    Raises:
        NotFound: There is no such image.
    """
    return tuple(step.command for step in image_steps(connection, reference))


def image_steps(connection: Connection, reference: str) -> tuple[ImageStep, ...]:
    """The steps an image was built in with their sizes, the newest first; empty where the engine kept none.

    Raises:
        NotFound: There is no such image.
    """
    steps = connection.ask(lambda client: client.history(reference))  # type: ignore[no-untyped-call]
    found = [step for step in steps if isinstance(step, dict)] if isinstance(steps, list) else []
    return tuple(ImageStep(line(step, "CreatedBy"), whole(step, "Size"), moment(step.get("Created"))) for step in found)


def remove_image(connection: Connection, reference: str) -> None:
    """Take a name from an image, and with its last name the image; by its id the image, unless it has several names.

    Raises:
        NotFound: There is none.
        Conflict: A container uses it, an image is made from it, or it has several names.
    """
    try:
        connection.tell(lambda client: client.remove_image(reference, force=False), timeout_s=_REMOVE_TIMEOUT_S)
    except Conflict as error:
        for words, message, hint in _HOLDERS:
            if words in f"{error.message} {error.detail}":
                raise Conflict(message, hint=hint, detail=error.detail) from error
        raise


def _inspection(connection: Connection, reference: str) -> Answer:
    answer: Answer = connection.ask(lambda client: client.inspect_image(reference))  # type: ignore[no-untyped-call]
    return answer


def _users(connection: Connection) -> Counter[str]:
    """How many containers use each image, by image id."""
    return Counter(line(item, "ImageID") for item in connection.ask(lambda client: client.containers(all=True)))


def described(inspection: Answer, summary: Answer, *, containers: int | None = None) -> Image:
    """An image from its inspection and its line in the list; either may lack anything."""
    config = part(inspection, "Config")
    tags = _names(inspection, "RepoTags") or _names(summary, "RepoTags")
    return Image(
        id=line(inspection, "Id") or line(summary, "Id"),
        # containerd's store lists an image pulled by its digest under that name among the tags too.
        tags=tuple(name for name in tags if "@" not in name),
        digests=_names(inspection, "RepoDigests") or _names(summary, "RepoDigests"),
        size_bytes=whole(summary, "Size") if "Size" in summary else whole(inspection, "Size"),
        created_at=moment(inspection.get("Created") or summary.get("Created")),
        architecture=line(inspection, "Architecture"),
        os=line(inspection, "Os"),
        environment=pairs(config, "Env"),
        labels=labels(config) or labels(summary),
        entrypoint=words(config, "Entrypoint"),
        command=words(config, "Cmd"),
        user=line(config, "User"),
        working_dir=line(config, "WorkingDir"),
        containers=containers,
    )


def _names(answer: Answer, key: str) -> tuple[str, ...]:
    """Tags or digests; engines write an image without any as ``<none>:<none>``."""
    return tuple(name for name in lines(answer, key) if _NONE not in name)
