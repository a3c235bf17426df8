"""Processes started in a running container."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gpuconsole.core.errors import ConsoleError, EngineRefused
from gpuconsole.engine.docker.answers import line
from gpuconsole.engine.docker.connection import Connection
from gpuconsole.engine.docker.exchange import Exchange
from gpuconsole.engine.docker.streams import EngineStream, raw_output, separated_output

_BOOKKEEPING_S = 5.0
"""Between the end of the output and the engine's knowing the exit code lie some milliseconds."""
_PAUSE_S = 0.02


def execute(
    connection: Connection,
    container_id: str,
    command: Sequence[str],
    *,
    user: str | None,
    working_dir: str | None,
    environment: Mapping[str, str] | None,
    tty: bool,
    stdin: bool,
) -> DockerExec:
    """Start ``command`` in a running container.

    Raises:
        NotFound: There is no such container. (A program that is not there shows as exit code 126 or 127 and a line
            of output with most engines, and as this error with the newest.)
        Conflict: The container does not run, or is paused.
    """
    created = connection.tell(
        lambda client: client.exec_create(
            container_id,
            list(command),
            stdin=stdin,
            tty=tty,
            user=user or "",
            workdir=working_dir,
            environment=dict(environment) if environment else None,
        )
    )
    known_as = exec_id(created)
    exchange = connection.exchange("POST", f"/exec/{known_as}/start", body={"Detach": False, "Tty": tty}, hijack=True)
    exchange.open()
    return DockerExec(connection, known_as, exchange, tty=tty)


def exec_id(created: object) -> str:
    """The id in the engine's answer to a process that is to be started.

    Raises:
        EngineRefused: It holds none.
    """
    found = line(created, "Id") if isinstance(created, Mapping) else ""
    if not found:
        raise EngineRefused(
            "The engine did not say which process it made.", hint="Try again; 'gpuconsole doctor' looks at the engine."
        )
    return found


class DockerExec:
    """A process in a container: output as it comes, input that never blocks its writer.

    What is written waits in this process until the container takes it. So one thread alone can write megabytes and
    then read, however much the process answers meanwhile.
    """

    def __init__(self, connection: Connection, exec_id: str, exchange: Exchange, *, tty: bool) -> None:
        self._connection = connection
        self._exchange = exchange
        self._ended = False
        self._input: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._writer: threading.Thread | None = None
        self._output = EngineStream(exchange, lambda chunks: self._until_end(chunks, tty=tty))
        self.id = exec_id

    @property
    def output(self) -> EngineStream[tuple[str, bytes]]:
        """``("stdout" | "stderr", bytes)`` as written; with a tty everything is stdout."""
        return self._output

    def _until_end(self, chunks: Iterator[bytes], *, tty: bool) -> Iterator[tuple[str, bytes]]:
        yield from raw_output(chunks) if tty else separated_output(chunks)
        self._ended = True

    def write(self, data: bytes) -> None:
        """Send ``data`` to its standard input, behind what was written before; what it never reads is lost."""
        self._pass_on(data)

    def close_input(self) -> None:
        """End its standard input behind what was written; output goes on."""
        self._pass_on(None)

    def _pass_on(self, data: bytes | None) -> None:
        self._input.put(data)
        if self._writer is None:
            self._writer = threading.Thread(target=self._write_all, name="exec-input", daemon=True)
            self._writer.start()

    def _write_all(self) -> None:
        try:
            while (data := self._input.get()) is not None:
                self._exchange.write(data)
        except ConsoleError:
            # It ended without reading on, which its output and exit code tell.
            return
        self._exchange.end_writing()

    def exit_code(self) -> int | None:
        """Its exit code, None while it runs."""
        deadline = time.monotonic() + (_BOOKKEEPING_S if self._ended else 0)
        while True:
            answer: Mapping[str, Any] = self._connection.ask(lambda client: client.exec_inspect(self.id))
            code = answer.get("ExitCode")
            if not answer.get("Running") and isinstance(code, int):
                return code
            if time.monotonic() >= deadline:
                return None
            time.sleep(_PAUSE_S)

    def close(self) -> None:
        """Let go of the connection. The process itself goes on: the engine cannot kill an exec."""
        self._input.put(None)
        self._exchange.close()
