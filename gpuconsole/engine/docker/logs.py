"""The output of a container."""

from __future__ import annotations

from gpuconsole.engine.docker.answers import line, part, yes
from gpuconsole.engine.docker.connection import Connection
from gpuconsole.engine.docker.dial import CONNECT_TIMEOUT_S
from gpuconsole.engine.docker.info import is_podman
from gpuconsole.engine.docker.streams import EngineStream, raw_output, separated_output


def logs(
    connection: Connection,
    container_id: str,
    *,
    follow: bool,
    tail: int | None,
    since: float | None,
    timestamps: bool,
) -> EngineStream[tuple[str, bytes]]:
    """Its output as ``("stdout" | "stderr", bytes)``.

    Raises:
        NotFound: There is no such container.
    """
    answer = connection.ask(lambda client: client.inspect_container(container_id))
    # Podman answers with the first output only, so it cannot be waited for.
    podman = is_podman(connection.version.answer)
    exchange = connection.exchange(
        "GET",
        f"/containers/{line(answer, 'Id') or container_id}/logs",
        query={
            "stdout": 1,
            "stderr": 1,
            "follow": int(follow),
            "timestamps": int(timestamps),
            "tail": "all" if tail is None else max(0, tail),
            "since": None if since is None else f"{max(0.0, since):.9f}",
        },
        answer_timeout_s=None if podman else CONNECT_TIMEOUT_S,
    )
    if not podman:
        exchange.open()
    return EngineStream(exchange, raw_output if yes(part(answer, "Config"), "Tty") else separated_output)
