"""Where the payload can run: a container, or this machine. The runner treats both alike."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Protocol

from gpuconsole.core.errors import ConsoleError, NotFound
from gpuconsole.engine.model import Container, ContainerState
from gpuconsole.engine.protocol import Engine, ExecProcess


class Place(Protocol):
    """Starts processes where the checks shall run."""

    @property
    def pythons(self) -> tuple[str, ...]:
        """Interpreters to begin with, the likeliest first; each may be missing."""
        ...

    @property
    def workdir(self) -> str:
        """The folder whose use is checked; also the last one tried for the payload."""
        ...

    def start(self, command: Sequence[str]) -> ExecProcess:
        """Start ``command`` with its input open.

        Raises:
            NotFound: There is no such program.
        """
        ...

    def gone(self) -> str | None:
        """Why nothing runs there any more, as a phrase: ``the container ended with exit code 137``; else None."""
        ...


class ContainerPlace:
    """A running container."""

    pythons = (
        "python3",
        "python",
        "/opt/conda/bin/python",
        "/usr/local/bin/python3",
        "/opt/venv/bin/python",
        "/usr/bin/python3",
    )

    def __init__(self, engine: Engine, container: Container) -> None:
        self._engine = engine
        self._container = container

    @property
    def workdir(self) -> str:
        """Its working folder; ``/`` when it names none."""
        return self._container.working_dir or "/"

    def start(self, command: Sequence[str]) -> ExecProcess:
        """Start ``command`` as the container's own user, in its working folder."""
        return self._engine.execute(self._container.id, command)

    def gone(self) -> str | None:
        """Why its processes do not run; None when they do."""
        try:
            now = self._engine.container(self._container.id)
        except NotFound:
            return "the container was removed"
        if now.state is ContainerState.RUNNING:
            started_again = now.started_at != self._container.started_at
            return "the container was restarted" if started_again else None
        if now.state is ContainerState.PAUSED:
            return "the container was paused"
        if now.state is ContainerState.REMOVING:
            return "the container was removed"
        code = "" if now.exit_code is None else f" with exit code {now.exit_code}"
        reason = ", for lack of memory" if now.oom_killed else ""
        return f"the container ended{code}{reason}"


def finish(process: ExecProcess, *, timeout_s: float) -> int | None:
    """Read ``process`` to its end and return its exit code; None when it did not end in time.

    Its connection is closed either way.
    """

    def drain() -> None:
        try:
            for _ in process.output:
                pass
        except ConsoleError:
            pass  # the connection broke: the exit code tells, or nobody does

    thread = threading.Thread(target=drain, name="probe-command", daemon=True)
    thread.start()
    thread.join(timeout_s)
    try:
        return None if thread.is_alive() else process.exit_code()
    finally:
        process.close()
