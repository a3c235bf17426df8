"""Processes a person talks to: one started in a container, or the container's own."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence

from gpuconsole.core.errors import ConsoleError
from gpuconsole.engine.docker import actions
from gpuconsole.engine.docker.answers import line, part, yes
from gpuconsole.engine.docker.connection import Connection
from gpuconsole.engine.docker.exchange import Exchange
from gpuconsole.engine.docker.execute import DockerExec, exec_id

_SIZE_AT_START = "1.42"
"""From this version on a terminal is born in its size; before, a program may have looked before it is told."""
_TRIES = 10
_PAUSE_S = 0.02
_BOOKKEEPING_S = 3.0


def execute_interactive(
    connection: Connection,
    container_id: str,
    command: Sequence[str],
    *,
    size: tuple[int, int] | None,
    detach_keys: str,
    user: str | None,
    working_dir: str | None,
    environment: Mapping[str, str] | None,
) -> InteractiveExec:
    """Start ``command`` for a person; see the protocol."""
    created = connection.tell(
        lambda client: client.exec_create(
            container_id,
            list(command),
            stdin=True,
            tty=size is not None,
            user=user or "",
            workdir=working_dir,
            environment=dict(environment) if environment else None,
            detach_keys=detach_keys,
        )
    )
    body: dict[str, object] = {"Detach": False, "Tty": size is not None}
    if size is not None and connection.at_least(_SIZE_AT_START):
        body["ConsoleSize"] = list(size)
    known_as = exec_id(created)
    exchange = connection.exchange("POST", f"/exec/{known_as}/start", body=body, hijack=True)
    exchange.open()
    process = InteractiveExec(connection, known_as, exchange, tty=size is not None)
    if size is not None and "ConsoleSize" not in body:
        # On a thread: the engine lets the call wait for a program that never starts.
        threading.Thread(target=process.resize_when_started, args=size, name="first-size", daemon=True).start()
    return process


class InteractiveExec(DockerExec):
    """A process started in a container, its terminal as large as the person's."""

    @property
    def backlog(self) -> int:
        """How many pieces of what was written the engine has not taken yet."""
        return self._input.qsize()

    def resize(self, *, rows: int, columns: int) -> None:
        """Tell its terminal the new size; nothing happens when it has none or has just ended."""
        self._resized(rows, columns)

    def resize_when_started(self, rows: int, columns: int) -> None:
        """Tell its terminal the first size, as soon as there is one: the answer to a start comes before the process."""
        for _ in range(_TRIES):
            if self._resized(rows, columns):
                return
            time.sleep(_PAUSE_S)

    def _resized(self, rows: int, columns: int) -> bool:
        try:
            self._connection.tell(lambda client: client.exec_resize(self.id, height=rows, width=columns))
        except ConsoleError:
            return False
        return True


def attach(
    connection: Connection, container_id: str, *, size: tuple[int, int] | None, detach_keys: str
) -> AttachedContainer:
    """Join a running container's own terminal, or its input and output when it has none.

    Its input is joined where leaving does not close it: without a terminal, a container made for one sitting
    (``docker run -i``) would end with the first who leaves.

    Raises:
        NotFound: There is no such container.
        Conflict: It does not run, or is paused.
    """
    answer = connection.ask(lambda client: client.inspect_container(container_id))
    config, known_as = part(answer, "Config"), line(answer, "Id") or container_id
    tty = yes(config, "Tty")
    stdin = yes(config, "OpenStdin") and (tty or not yes(config, "StdinOnce"))
    exchange = connection.exchange(
        "POST",
        f"/containers/{known_as}/attach",
        query={"stream": 1, "stdin": int(stdin), "stdout": 1, "stderr": 1, "detachKeys": detach_keys},
        hijack=True,
    )
    end = _End(connection, known_as)
    try:
        exchange.open()
    except BaseException:
        end.close()
        raise
    process = AttachedContainer(connection, known_as, exchange, tty=tty, end=end, stdin=stdin)
    if tty and size is not None:
        # A program draws itself anew when the size changes, and only then: one step up, then the true size.
        process.resize(rows=size[0] + 1, columns=size[1] + 1)
        process.resize(rows=size[0], columns=size[1])
    return process


class _End:
    """Waits for the end of a container, from before it can be missed: with ``--rm`` it is gone afterwards."""

    def __init__(self, connection: Connection, container_id: str) -> None:
        self._code: int | None = None
        self._known = threading.Event()
        self._waiting = actions.waiting(connection, container_id, timeout_s=None)
        threading.Thread(target=self._wait, name="wait-end", daemon=True).start()

    def _wait(self) -> None:
        try:
            self._code = actions.exit_code_in(self._waiting.whole())
        except ConsoleError:  # the connection ended first, and nobody will ask
            pass
        self._known.set()

    def close(self) -> None:
        """Wait no longer; a code that is known stays so."""
        self._waiting.close()

    def code(self, *, within_s: float) -> int | None:
        """Its exit code, None when it has not ended in that time."""
        self._known.wait(within_s)
        return self._code


class AttachedContainer(DockerExec):
    """A container's own terminal, or its input and output."""

    def __init__(
        self, connection: Connection, container_id: str, exchange: Exchange, *, tty: bool, end: _End, stdin: bool
    ) -> None:
        super().__init__(connection, container_id, exchange, tty=tty)
        self._end = end
        self.takes_input = stdin

    @property
    def backlog(self) -> int:
        """How many pieces of what was written the engine has not taken yet."""
        return self._input.qsize()

    def write(self, data: bytes) -> None:
        """Send ``data`` to its standard input, if that is joined."""
        if self.takes_input:
            super().write(data)

    def close_input(self) -> None:
        """End its standard input, if that is joined."""
        if self.takes_input:
            super().close_input()

    def exit_code(self) -> int | None:
        """The container's exit code, None while it runs, or when the connection was closed before its end."""
        return self._end.code(within_s=_BOOKKEEPING_S if self._ended else 0)

    def close(self) -> None:
        """Let go of the connections; the container goes on."""
        ended = self._ended
        super().close()
        if not ended:  # else its code is about to come
            self._end.close()

    def resize(self, *, rows: int, columns: int) -> None:
        """Tell its terminal the new size; nothing happens when it has none or has just ended."""
        try:
            self._connection.tell(lambda client: client.resize(self.id, height=rows, width=columns))
        except ConsoleError:
            return
