"""Pulling images."""

from __future__ import annotations

from collections.abc import Iterator

from docker import APIClient
from docker.auth import get_config_header, resolve_repository_name
from docker.errors import DockerException
from docker.utils import parse_repository_tag

from gpuconsole.core.errors import EngineRefused, UsageError
from gpuconsole.core.text import plain_line
from gpuconsole.engine.docker.answers import Answer, line, part, whole
from gpuconsole.engine.docker.connection import Connection
from gpuconsole.engine.docker.refusals import pull_refusal
from gpuconsole.engine.docker.streams import EngineStream, json_objects
from gpuconsole.engine.model import PullProgress


def pull(connection: Connection, reference: str, *, platform: str | None) -> EngineStream[PullProgress]:
    """Pull an image; the pull begins with the iteration, and closing the stream ends it in the engine too.

    Raises:
        UsageError: The reference is none.
        EngineRefused: The login for the registry cannot be read.
    """
    repository, tag = parse_repository_tag(reference.strip())
    written = reference.strip()
    if (
        not repository
        or any(char.isspace() for char in written)
        or "://" in written
        or written.endswith((":", "@", "/"))
    ):
        raise UsageError(
            f"{plain_line(reference)!r} is no name of an image.",
            hint="Write it like pytorch/pytorch:2.9.0-cuda12.8-cudnn9-runtime.",
        )
    if "@" in written:
        # Beside a digest a tag says nothing, and the engine would take it for a part of the repository.
        head, slash, last = repository.rpartition("/")
        repository = head + slash + last.partition(":")[0]
    login = connection.tell(lambda client: _login(client, repository))
    exchange = connection.exchange(
        "POST",
        "/images/create",
        query={"fromImage": repository, "tag": tag or "latest", "platform": platform},
        headers={"X-Registry-Auth": login} if login else None,
        # Nothing is answered until the registry has said something, and an engine waits for it long.
        answer_timeout_s=None,
        refused=pull_refusal,
    )
    return EngineStream(exchange, _decode)


def _login(client: APIClient, repository: str) -> str | None:
    """The header that logs in at the registry, as ``docker login`` left it; None without a login."""
    try:
        registry, _ = resolve_repository_name(repository)
        header = get_config_header(client, registry)
    except DockerException as error:
        raise EngineRefused(
            f"The login for the registry of {plain_line(repository)} cannot be read: {plain_line(str(error))}.",
            hint="A credential helper (credsStore in ~/.docker/config.json) often needs a desktop session; "
            "over SSH use 'pass', or take the entry out.",
        ) from error
    if header is None:
        return None
    return header.decode() if isinstance(header, bytes) else str(header)


def _decode(chunks: Iterator[bytes]) -> Iterator[PullProgress]:
    for answer in json_objects(chunks):
        failure = line(answer, "error") or line(part(answer, "errorDetail"), "message")
        if failure:
            raise pull_refusal(500, failure)
        yield described(answer)


def described(answer: Answer) -> PullProgress:
    """One step; only layers have an id in it, beside the tag in the first line."""
    status, layer = line(answer, "status"), line(answer, "id")
    detail = part(answer, "progressDetail")
    return PullProgress(
        status=status,
        layer="" if status.startswith("Pulling from") else layer,
        current_bytes=whole(detail, "current"),
        total_bytes=whole(detail, "total"),
    )
