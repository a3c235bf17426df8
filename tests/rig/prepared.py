"""gpuconsole in a process that begins with its modules loaded: the same program, at a tenth of the cost.

What starts and imports is proved by the tests that start `python -m gpuconsole` itself: in terminals, in tmux, beside a
test, interrupted. A run that only asks for exit code and words comes from here: a process of its own with the pipes,
environment, folder and arguments it is given, forked from one that has imported what the command line may import.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from tests.rig.places import PROJECT, RigError

_AT_START = ("PYTHON", "LC_", "LD_", "LANG", "TZ", "MALLOC_")
"""Beginnings of the variables that an interpreter or its loader reads once, when it starts."""
_PACKET = 1 << 20
_WORTH_IT = 4


class _Prepared:
    """One interpreter for one setting of the variables that count at start."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * _PACKET)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.rig.preparing"],
            cwd=PROJECT,
            env={**environment, "GPUCONSOLE_RIG_PREPARED": "1"},
            stdin=theirs.fileno(),
            stdout=subprocess.DEVNULL,
        )
        theirs.close()
        self._socket = ours
        self._lock = threading.Lock()

    def begin(self, request: Mapping[str, object], pipes: Sequence[int]) -> int:
        """Start a run and give a pipe that tells the number of its process, then its exit status."""
        with self._lock:
            socket.send_fds(self._socket, [json.dumps(request).encode()], list(pipes))
            packet, ends, _, _ = socket.recv_fds(self._socket, 64, 1, socket.MSG_CMSG_CLOEXEC)
        if not packet or not ends:
            raise RigError("the prepared interpreter ended")
        return ends[0]

    def close(self) -> None:
        self._socket.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


_Setting = tuple[tuple[str, str], ...]
_prepared: dict[_Setting, _Prepared] = {}
_asked: Counter[_Setting] = Counter()


def _for(environment: Mapping[str, str]) -> _Prepared | None:
    """Give the interpreter for an environment: none at first, as to load it pays from the fifth run on."""
    setting = tuple(sorted((name, value) for name, value in environment.items() if name.startswith(_AT_START)))
    _asked[setting] += 1
    if _asked[setting] < _WORTH_IT:
        return None
    if setting not in _prepared:
        found = _prepared[setting] = _Prepared(environment)
        atexit.register(found.close)
    return _prepared[setting]


def gpuconsole(
    *arguments: str,
    env: Mapping[str, str] | None = None,
    folder: Path | None = None,
    timeout_s: float = 120,
) -> subprocess.CompletedProcess[bytes]:
    """Run gpuconsole to its end, without input, and give its exit code and what it wrote.

    Raises:
        subprocess.TimeoutExpired: it did not end in time, and was killed.
    """
    environment = dict(os.environ if env is None else env)
    command = [sys.executable, "-m", "gpuconsole", *arguments]
    prepared = _for(environment)
    if prepared is None:
        return subprocess.run(
            command, env=environment, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, check=False,
            timeout=timeout_s,
        )  # fmt: skip
    out, into_out = os.pipe()
    err, into_err = os.pipe()
    nothing = os.open(os.devnull, os.O_RDONLY)
    request = {"arguments": list(arguments), "environment": environment, "folder": str(folder or Path.cwd())}
    try:
        end = prepared.begin(request, (nothing, into_out, into_err))
    finally:
        for descriptor in (nothing, into_out, into_err):
            os.close(descriptor)
    with os.fdopen(out, "rb", 0) as said, os.fdopen(err, "rb", 0) as talk, os.fdopen(end, "rb", 0) as told:
        written, numbers = _collect((said, talk), told, command, timeout_s)
    if len(numbers) != 2:
        raise RigError("the prepared interpreter lost a run")
    return subprocess.CompletedProcess(command, os.waitstatus_to_exitcode(numbers[1]), *written)


def _collect(
    pipes: tuple[IO[bytes], IO[bytes]], told: IO[bytes], command: list[str], timeout_s: float
) -> tuple[tuple[bytes, bytes], list[int]]:
    """Read both pipes and the process's numbers to their ends."""
    read = {pipe.fileno(): bytearray() for pipe in (*pipes, told)}
    still, deadline = set(read), time.monotonic() + timeout_s
    while still:
        ready = select.select(still, [], [], max(0.0, deadline - time.monotonic()))[0]
        if not ready:
            if number := read[told.fileno()].split():
                os.kill(int(number[0]), signal.SIGKILL)
            raise subprocess.TimeoutExpired(command, timeout_s, *(bytes(read[pipe.fileno()]) for pipe in pipes))
        for descriptor in ready:
            piece = os.read(descriptor, 65536)
            read[descriptor] += piece
            if not piece:
                still.remove(descriptor)
    out, err = (bytes(read[pipe.fileno()]) for pipe in pipes)
    return (out, err), [int(number) for number in read[told.fileno()].split()]


def in_words(done: subprocess.CompletedProcess[bytes]) -> subprocess.CompletedProcess[str]:
    """Give a run with its words as text."""
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())
