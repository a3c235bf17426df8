"""A worker as its supervisor sees it: started in a session of its own, read without blocking, ended as a group."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import Any

_CHUNK = 65536
_WORDS = "What it wrote last may tell why."
NO_PROCESS = "no process can be started: {}"
MORE_PROCESSES = "Raise the container's limit of processes: --pids-limit."


class Child:
    """One worker process.

    Args:
        config: What it is told; the descriptor for its records is added.
        folder: Our own folder: its temporary files go there, and go with it.
    """

    def __init__(self, config: dict[str, Any], folder: str) -> None:
        self._records_fd, write_fd = os.pipe()
        try:
            self._process = subprocess.Popen(
                [sys.executable, config["archive"], "work", json.dumps(dict(config, fd=write_fd))],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=_environment(folder),
                pass_fds=(write_fd,),
                start_new_session=True,
            )
        except OSError:
            os.close(self._records_fd)
            raise
        finally:
            os.close(write_fd)
        stdout, stderr = self._process.stdout, self._process.stderr
        if stdout is None or stderr is None:  # cannot be: both were asked for
            raise OSError("no pipes")
        self.sources = {self._records_fd: "records", stdout.fileno(): "stdout", stderr.fileno(): "stderr"}
        """Descriptor → what comes from it; one that has ended is taken out."""
        for fd in self.sources:
            os.set_blocking(fd, False)

    @property
    def group(self) -> int:
        """Its process group, which the processes it starts belong to as well."""
        return self._process.pid

    def read(self, fd: int) -> bytes | None:
        """What is there to read; None when nothing is; at the end the descriptor leaves ``sources``."""
        try:
            data = os.read(fd, _CHUNK)
        except BlockingIOError:
            return None
        if not data:
            self.sources.pop(fd, None)
        return data

    def ended(self) -> bool:
        """The worker itself has ended; processes it started may hold its output open."""
        return self._process.poll() is not None

    @property
    def exit_code(self) -> int | None:
        """Its exit code, negative for a signal; None while it runs."""
        return self._process.returncode

    def kill(self) -> None:
        """End it and all it started, and let go of the pipes."""
        try:
            os.killpg(self.group, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            pass  # in a driver call that cannot be interrupted; the kernel ends it when the call returns
        self.sources.clear()
        os.close(self._records_fd)
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()


def _environment(folder: str) -> dict[str, str]:
    """The container's environment, changed only so that nothing of ours stays behind."""
    environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1")
    # Addresses of local sockets made under TMPDIR must stay within 108 bytes.
    if len(folder) <= 60:
        environment["TMPDIR"] = folder
        environment["GPUCONSOLE_TMPDIR"] = os.environ.get("TMPDIR", "")
    environment.setdefault("CUDA_CACHE_PATH", os.path.join(folder, "cuda"))
    return environment


def died_of(exit_code: int) -> tuple[str, str]:
    """What a worker did that ended with ``exit_code``, said of it, and what to do."""
    if exit_code >= 0:
        return "ended with exit code {}".format(exit_code), _WORDS
    try:
        name = signal.Signals(-exit_code).name
    except ValueError:
        name = "signal {}".format(-exit_code)
    fixes = {
        "SIGBUS": "Give the container more shared memory: --shm-size 8g or --ipc host.",
        "SIGILL": "This torch was built for another processor: take an image made for this one.",
        "SIGKILL": "Most often memory ran out: raise the container's memory limit, or free memory on the host.",
        "SIGSEGV": "Most often libraries do not fit together: go back to the image as it was published.",
        "SIGABRT": "A library gave up: what it wrote last tells why.",
    }
    return "died of {}".format(name), fixes.get(name, _WORDS)
