"""Building images, with the builder that every engine has in its interface: no client of BuildKit is needed for it."""

from __future__ import annotations

import io
import json
import re
import tarfile
from collections.abc import Iterator

from docker import APIClient

from gpuconsole.core.errors import ConsoleError
from gpuconsole.core.text import plain_line
from gpuconsole.engine.buildfailures import StepFailed
from gpuconsole.engine.docker.answers import line, part
from gpuconsole.engine.docker.connection import Connection
from gpuconsole.engine.docker.pull import described
from gpuconsole.engine.docker.refusals import pull_refusal, refusal
from gpuconsole.engine.docker.streams import EngineStream, json_objects
from gpuconsole.engine.model import BuildProgress

_STEP = re.compile(r"^step (\d+)/(\d+) ?: (.*)", re.IGNORECASE | re.DOTALL)
_IMAGE = re.compile(r"^(?:--->|-->) (?:sha256:)?([0-9a-f]{11,64})$")
_CONTAINER = re.compile(r"^---> Running in ([0-9a-f]{12,64})$")
_CACHED = ("---> Using cache", "--> Using cache")
_TIDIES = re.compile(r"^(?:---> Removed|Removing) intermediate container [0-9a-f]+$")
_STEP_FAILED = re.compile(
    r"returned a non-zero code: (\d+)|while running runtime: exit status (\d+)|exit status (\d+)$"
)


def build(
    connection: Connection, dockerfile: str, *, tag: str, network: str | None, fresh: bool
) -> EngineStream[BuildProgress]:
    """Build ``dockerfile``; closing the stream ends it in the engine too."""
    proxies = connection.tell(_proxies)
    exchange = connection.exchange(
        "POST",
        "/build",
        query={
            "t": tag,
            "rm": "1",
            "forcerm": "1",  # also the container of a step that failed or was cancelled
            "version": "1",
            "networkmode": network,
            "nocache": "1" if fresh else None,
            "buildargs": json.dumps(proxies) if proxies else None,
        },
        body=_context(dockerfile),
        answer_timeout_s=None,
        refused=refusal,
    )
    return EngineStream(exchange, decode)


def _context(dockerfile: str) -> bytes:
    """An archive with the Dockerfile alone."""
    out, content = io.BytesIO(), dockerfile.encode()
    with tarfile.open(fileobj=out, mode="w") as archive:
        member = tarfile.TarInfo("Dockerfile")
        member.size, member.mode = len(content), 0o644
        archive.addfile(member, io.BytesIO(content))
    return out.getvalue()


def _proxies(client: APIClient) -> dict[str, str]:
    """The proxies of Docker's configuration, as ``docker build`` passes them: no layer and no history keeps them."""
    configured = getattr(client, "_proxy_configs", None)
    found = configured.get_environment() if configured else {}
    return {str(name): str(value) for name, value in found.items() if value}


def decode(chunks: Iterator[bytes]) -> Iterator[BuildProgress]:
    """What the engine tells, a thing at a time; its pieces of output made whole lines."""
    rest, cached = "", False
    for answer in json_objects(chunks):
        failure = line(answer, "error") or line(part(answer, "errorDetail"), "message")
        if failure:
            raise _failed(failure)
        image = line(part(answer, "aux"), "ID")
        if image:
            yield BuildProgress(image_id=image)
        elif answer.get("status"):
            yield BuildProgress(pull=described(answer))
        piece = answer.get("stream")
        if not isinstance(piece, str):
            continue
        *whole, rest = (rest + piece).split("\n")
        for text in whole:
            told = _told(text, cached=cached)
            cached = text.strip().startswith(_CACHED) or (cached and not told.image_id)
            if told != BuildProgress():
                yield told
    if rest.strip():
        yield _told(rest, cached=cached)


def _told(text: str, *, cached: bool) -> BuildProgress:
    words = plain_line(text)
    if match := _STEP.match(words):
        return BuildProgress(text=match[3], step=int(match[1]), steps=int(match[2]))
    if match := _CONTAINER.match(words):
        return BuildProgress(container_id=match[1])
    if match := _IMAGE.match(words):
        return BuildProgress(image_id=match[1], cached=cached)
    return BuildProgress() if words.startswith(_CACHED) or _TIDIES.match(words) else BuildProgress(text=words)


def _failed(text: str) -> ConsoleError:
    match = _STEP_FAILED.search(text)
    if match is not None:
        code = next(int(group) for group in match.groups() if group)
        return StepFailed(
            f"A step of the build ended with exit code {code}.", hint="Its last lines say why.", detail=plain_line(text)
        )
    return pull_refusal(500, text)
