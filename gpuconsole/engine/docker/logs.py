"""The output of a container."""

from __future__ import annotations

from gpuconsole.engine.docker.connection import Connection
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
    exchange = connection.exchange(
        "GET",
        f"/containers/{answer['Id']}/logs",
        query={
            "stdout": 1,
            "stderr": 1,
            "follow": int(follow),
            "timestamps": int(timestamps),
            "tail": "all" if tail is None else max(0, tail),
            "since": None if since is None else f"{max(0.0, since):.9f}",
        },
    )
    exchange.open()
    return EngineStream(exchange, raw_output if answer["Config"]["Tty"] else separated_output)
