"""A part of a check in a process of its own: one that is slow begins early and is waited for later.

Its process belongs to the worker's group, so that it ends with the worker.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from typing import Any, Callable

from gpuconsole.probes.payload.stream import SEPARATOR, Emitter

_MOST_TEXT = 32768
"""Bytes kept of the end of what it writes."""


class Apart:
    """One process, and what it has told.

    Args:
        pid: Its process.
        pipes: Read ends of its standard output and standard error; they are closed at their end.
        wait: Gives its exit code, None while it runs.
    """

    def __init__(self, pid: int, pipes: list[int], wait: Callable[[], int | None]) -> None:
        self._pid = pid
        self._wait = wait
        self._code: int | None = None
        self._texts = [b"" for _ in pipes]
        self.begun = time.monotonic()
        self._readers = [
            threading.Thread(target=self._read, args=(place, fd), daemon=True) for place, fd in enumerate(pipes)
        ]
        for reader in self._readers:
            reader.start()

    def _read(self, place: int, fd: int) -> None:
        with os.fdopen(fd, "rb", buffering=0) as pipe:
            while True:
                data = pipe.read(65536)
                if not data:
                    return
                self._texts[place] = (self._texts[place] + data)[-_MOST_TEXT:]

    @property
    def exit_code(self) -> int | None:
        """Its exit code, negative for a signal; None while it runs."""
        if self._code is None:
            self._code = self._wait()
        return self._code

    def wait(self, until: float) -> bool:
        """Wait for its end until this moment of the monotonic clock, and say whether it came."""
        while self.exit_code is None:
            if time.monotonic() >= until:
                return False
            time.sleep(0.02)
        for reader in self._readers:
            reader.join(2.0)
        return True

    def kill(self) -> None:
        """End it by force if it still runs; what it has told is all there then."""
        if self.exit_code is None:
            try:
                os.kill(self._pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.wait(time.monotonic() + 5.0)

    @property
    def told(self) -> dict[str, Any]:
        """What its records say, put together."""
        facts: dict[str, Any] = {}
        for line in self._texts[0].decode("utf-8", "replace").split("\n"):
            _, separator, text = line.partition(SEPARATOR)
            if not separator:
                continue
            try:
                record = json.loads(text)
            except ValueError:
                continue
            if isinstance(record, dict):
                facts.update(record)
        return facts

    @property
    def stray(self) -> str:
        """The end of what else it wrote."""
        out, err = (text.decode("utf-8", "replace") for text in self._texts)
        return "\n".join([line for line in out.split("\n") if SEPARATOR not in line] + [err])


def start(part: str, config: dict[str, Any], *, archive: str, environment: dict[str, str]) -> Apart:
    """Start ``part`` in a new Python, with these variables beside ours.

    Raises:
        OSError: No process can be started.
    """
    process = subprocess.Popen(
        [sys.executable, archive, "part", part, json.dumps(config)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=dict(os.environ, **environment),
    )
    pipes = [os.dup(pipe.fileno()) for pipe in (process.stdout, process.stderr) if pipe is not None]
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
    return Apart(process.pid, pipes, process.poll)


def fork(body: Callable[[], None]) -> Apart:
    """Run ``body`` in a copy of this process, which has torch imported already; not where CUDA was started.

    Raises:
        OSError: No process can be started.
    """
    pairs = [os.pipe(), os.pipe()]
    sys.stdout.flush()
    sys.stderr.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer Pythons warn of any fork beside threads; DataLoader does the same
        pid = os.fork()
    if pid == 0:
        code = 1
        try:
            for (_, write_fd), number in zip(pairs, (1, 2)):
                os.dup2(write_fd, number)
            body()
            code = 0
        except BaseException as error:
            os.write(2, "{}: {}\n".format(type(error).__name__, error).encode("utf-8", "replace"))
        finally:
            os._exit(code)
    for _, write_fd in pairs:
        os.close(write_fd)
    return Apart(pid, [read_fd for read_fd, _ in pairs], lambda: _poll(pid))


def _poll(pid: int) -> int | None:
    try:
        ended, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return -signal.SIGKILL
    if not ended:
        return None
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def teller() -> Callable[..., None]:
    """For the process itself: a function that tells facts by keyword."""
    emitter = Emitter(1, "")
    return lambda **facts: emitter.emit("part", **facts)
