"""Starting, stopping and removing containers."""

from __future__ import annotations

import contextlib
import json

from gpuconsole.core.errors import Conflict, EngineRefused, TimedOut
from gpuconsole.engine.docker.connection import Connection
from gpuconsole.engine.docker.exchange import Exchange

_START_TIMEOUT_S = 120.0
"""The first GPU container after a boot waits for the driver to come up."""
_SLACK_S = 20.0
"""What an engine needs beyond the grace it gives: killing, unmounting, its own bookkeeping."""


def start(connection: Connection, container_id: str) -> None:
    """Start it; one that runs already is left alone."""
    connection.tell(lambda client: client.start(container_id), timeout_s=_START_TIMEOUT_S)


def stop(connection: Connection, container_id: str, *, grace_s: int) -> None:
    """SIGTERM, and SIGKILL after ``grace_s`` seconds; one that has ended is left alone."""
    # The library adds the grace to its time-out by itself.
    connection.tell(lambda client: client.stop(container_id, timeout=grace_s), timeout_s=_SLACK_S)


def restart(connection: Connection, container_id: str, *, grace_s: int) -> None:
    """Stop and start it."""
    connection.tell(lambda client: client.restart(container_id, timeout=grace_s), timeout_s=_START_TIMEOUT_S)


def pause(connection: Connection, container_id: str) -> None:
    """Freeze its processes."""
    connection.tell(lambda client: client.pause(container_id))


def unpause(connection: Connection, container_id: str) -> None:
    """Let its processes go on."""
    connection.tell(lambda client: client.unpause(container_id))


def remove(connection: Connection, container_id: str, *, force: bool, volumes: bool) -> None:
    """Remove it."""
    try:
        connection.tell(
            lambda client: client.remove_container(container_id, force=force, v=volumes),
            timeout_s=connection.timeout_s + _SLACK_S,
        )
    except Conflict as error:
        # One with --rm that has just ended is being removed by the engine: what was asked for happens.
        if "being removed" not in error.message:
            raise


def wait(connection: Connection, container_id: str, *, timeout_s: float | None) -> int:
    """Wait for its end and return the exit code.

    Raises:
        TimedOut: It had not ended after ``timeout_s``.
        NotFound: There is no such container.
        EngineUnavailable: The connection broke or was closed.
    """
    try:
        return exit_code_in(waiting(connection, container_id, timeout_s=timeout_s).whole(timeout_s=timeout_s))
    except TimedOut as error:
        raise TimedOut(
            f"Container {container_id[:12]} had not ended after {timeout_s:.0f} s.", hint="It goes on running."
        ) from error


def waiting(connection: Connection, container_id: str, *, timeout_s: float | None) -> Exchange:
    """The request that is answered with a container's end; closing it lets go of the waiting."""
    return connection.exchange("POST", f"/containers/{container_id}/wait", answer_timeout_s=timeout_s)


def exit_code_in(raw: bytes) -> int:
    """The exit code that the answer to :func:`waiting` tells.

    Raises:
        EngineRefused: It tells none.
    """
    with contextlib.suppress(ValueError, KeyError, TypeError):
        return int(json.loads(raw)["StatusCode"])
    raise EngineRefused("The engine did not say how the container ended.", hint="'gpuconsole ps' shows its state.")
