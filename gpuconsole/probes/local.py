"""This machine as a place for the payload: its own processes, spoken to as if they ran in a container."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from queue import SimpleQueue

from gpuconsole.core.errors import NotFound, Refused

_CHUNK = 65536


class LocalPlace:
    """This machine, and the Python gpuconsole runs on first of all."""

    @property
    def pythons(self) -> tuple[str, ...]:
        """The interpreter that runs gpuconsole."""
        return (sys.executable,)

    @property
    def workdir(self) -> str:
        """The current folder."""
        return os.getcwd()

    def start(self, command: Sequence[str]) -> LocalProcess:
        """Start ``command`` in a process group of its own."""
        try:
            return LocalProcess(command)
        except FileNotFoundError as error:
            raise NotFound(f"There is no program {command[0]} on this machine.") from error
        except PermissionError as error:
            raise Refused(f"The program {command[0]} may not be run.") from error

    def gone(self) -> str | None:
        """This machine does not go away."""
        return None


class LocalProcess:
    """A child process in the shape of :class:`gpuconsole.engine.protocol.ExecProcess`."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        self.output = _Output(self._process)

    def write(self, data: bytes) -> None:
        """Send ``data`` to its standard input."""
        if self._process.stdin is None:
            return
        view = memoryview(data)
        try:
            while view:
                view = view[self._process.stdin.write(view) or 0 :]
        except BrokenPipeError:
            pass  # it has ended; its output says why

    def close_input(self) -> None:
        """End its standard input."""
        if self._process.stdin is not None:
            self._process.stdin.close()

    def exit_code(self) -> int | None:
        """Its exit code, negative for a signal; None while it runs."""
        return self._process.poll()

    def close(self) -> None:
        """Let go of its pipes."""
        self.close_input()
        self.output.close()


class _Output:
    """Both pipes of a process, as they come."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._pieces: SimpleQueue[tuple[str, bytes] | None] = SimpleQueue()
        self._readers = [
            threading.Thread(target=self._read, args=(name, pipe.fileno()), name=f"probe-{name}", daemon=True)
            for name, pipe in (("stdout", process.stdout), ("stderr", process.stderr))
            if pipe is not None
        ]
        for reader in self._readers:
            reader.start()

    def _read(self, name: str, fd: int) -> None:
        try:
            while data := os.read(fd, _CHUNK):
                self._pieces.put((name, data))
        except OSError:
            pass  # closed under us
        self._pieces.put(None)

    def __iter__(self) -> Iterator[tuple[str, bytes]]:
        running = len(self._readers)
        while running:
            piece = self._pieces.get()
            if piece is None:
                running -= 1
            else:
                yield piece
        self._process.wait()

    def close(self) -> None:
        """End the iteration. Pipes that a reader still waits on are left to it."""
        for _ in self._readers:
            self._pieces.put(None)
        for pipe, reader in zip((self._process.stdout, self._process.stderr), self._readers, strict=True):
            if pipe is not None and not reader.is_alive():
                pipe.close()
