"""What happens to containers and images."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

from gpuconsole.engine.docker.answers import Answer, line, part, whole
from gpuconsole.engine.docker.connection import Connection
from gpuconsole.engine.docker.dial import CONNECT_TIMEOUT_S
from gpuconsole.engine.docker.info import is_podman
from gpuconsole.engine.docker.streams import EngineStream, json_objects
from gpuconsole.engine.model import EngineEvent

_KINDS = ("container", "image")


def events(connection: Connection, *, since: float | None) -> EngineStream[EngineEvent]:
    """Events from now on, or from ``since``; nothing that happens after the return is missed."""
    # Podman answers with the first event only, so it cannot be waited for; it is told from when it is meant.
    podman = is_podman(connection.version.answer)
    if podman and since is None:
        since = time.time()
    exchange = connection.exchange(
        "GET",
        "/events",
        query={
            "filters": json.dumps({"type": list(_KINDS)}),
            "since": None if since is None else f"{since:.9f}",
        },
        answer_timeout_s=None if podman else CONNECT_TIMEOUT_S,
    )
    if not podman:
        exchange.open()
    return EngineStream(exchange, _decode)


def _decode(chunks: Iterator[bytes]) -> Iterator[EngineEvent]:
    for answer in json_objects(chunks):
        if answer.get("Type") in _KINDS:
            yield described(answer)


def described(answer: Answer) -> EngineEvent:
    """One event; its action without what some engines append to it (``exec_start: bash``)."""
    attributes = part(answer, "Actor", "Attributes")
    nanoseconds, seconds = whole(answer, "timeNano"), whole(answer, "time")
    code = line(attributes, "exitCode") or line(attributes, "containerExitCode")
    sent = line(attributes, "signal")
    return EngineEvent(
        kind=line(answer, "Type"),
        action=line(answer, "Action").split(":", 1)[0].strip(),
        id=line(part(answer, "Actor"), "ID") or line(answer, "id"),
        name=line(attributes, "name"),
        at=nanoseconds / 1e9 if nanoseconds else None if seconds is None else float(seconds),
        exit_code=int(code) if code.lstrip("-").isdigit() else None,
        signal=int(sent) if sent.isascii() and sent.isdigit() else None,
    )
