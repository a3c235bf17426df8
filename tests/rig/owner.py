"""A rig: one private folder with a supervisor, in which parts are started; everything goes with the rig."""

from __future__ import annotations

import json
import os
import secrets
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.rig.places import PROJECT, RIG_PREFIX, RIGS, RigError, RigUnavailable
from tests.rig.supervisor import PACKET


@dataclass(slots=True)
class Daemon:
    """A process the supervisor started for us."""

    pid: int
    end: int
    """A pidfd: readable when the process has ended, and never another process."""

    @property
    def alive(self) -> bool:
        """Tell whether it still runs."""
        return not select.select([self.end], [], [], 0)[0]

    def send(self, number: signal.Signals) -> None:
        """Send a signal; to an ended process it does nothing."""
        try:
            signal.pidfd_send_signal(self.end, number)
        except ProcessLookupError:
            pass

    def freeze(self) -> None:
        """Stop it without ending it, and wait until each of its threads stands."""
        self.send(signal.SIGSTOP)
        wait_until(lambda: set(self._states()) <= {"T"}, what="freezing")

    def _states(self) -> list[str]:
        found = []
        for path in Path(f"/proc/{self.pid}/task").glob("*/stat"):
            try:
                found.append(path.read_text().rpartition(")")[2].split()[0])
            except OSError:  # the thread ended
                continue
        return found

    def stop(self, *, patience_s: float = 15) -> None:
        """End it, politely first."""
        self.send(signal.SIGCONT)
        self.send(signal.SIGTERM)
        if not select.select([self.end], [], [], patience_s)[0]:
            self.kill()

    def kill(self) -> None:
        """End it at once."""
        self.send(signal.SIGKILL)
        select.select([self.end], [], [], 10)


class Rig:
    """A private folder with a supervisor; what is started through it is gone when this process is."""

    def __init__(self) -> None:
        """Start the supervisor.

        Raises:
            RigUnavailable: this machine or user cannot have one.
        """
        if sys.platform != "linux":
            raise RigUnavailable("the rig needs Linux")
        self.folder = RIGS / f"{RIG_PREFIX}{secrets.token_hex(3)}"
        self._number = 0
        self._owner_pid = os.getpid()
        self._isolated = os.geteuid() == 0
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        prefix = ["unshare", "--mount", "--propagation", "slave", "--"] if self._isolated else []
        arguments = [str(self.folder), str(os.getpid()), str(int(self._isolated))]
        self._supervisor = subprocess.Popen(
            [*prefix, sys.executable, "-m", "tests.rig.supervisor", *arguments],
            cwd=PROJECT,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
            stdin=theirs.fileno(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        theirs.close()
        self._socket = ours
        try:
            self._answer()
        except RigError as error:
            said = self._supervisor.stderr.read().decode(errors="replace") if self._supervisor.stderr else ""
            self.close()
            raise RigUnavailable(f"no rig on this machine: {said.strip()[-300:] or error}") from error

    @property
    def name(self) -> str:
        """Give the six hex digits that tell this rig from others."""
        return self.folder.name.removeprefix(RIG_PREFIX)

    def need_root(self, what: str) -> None:
        """Refuse a part that only root can start."""
        if not self._isolated:
            raise RigUnavailable(f"{what} needs root")

    def subfolder(self, kind: str) -> Path:
        """Make a folder for one part."""
        self._number += 1
        path = self.folder / f"{kind}{self._number}"
        path.mkdir()
        return path

    def start(self, argv: Sequence[str], *, env: Mapping[str, str], log: Path, cwd: Path | None = None) -> Daemon:
        """Start a program that ends with the rig at the latest."""
        request = {"argv": list(argv), "env": dict(env), "log": str(log), "cwd": str(cwd) if cwd else None}
        try:
            self._socket.send(json.dumps(request).encode())
        except OSError as error:
            raise RigError(f"the rig's supervisor is gone: {error}") from error
        answer, ends = self._answer()
        return Daemon(pid=int(answer["pid"]), end=ends[0])

    def _answer(self) -> tuple[dict[str, Any], list[int]]:
        packet, ends, _, _ = socket.recv_fds(self._socket, PACKET, 1, socket.MSG_CMSG_CLOEXEC)
        if not packet:
            raise RigError("the rig's supervisor ended")
        answer: dict[str, Any] = json.loads(packet)
        if "error" in answer:
            raise RigError(answer["error"])
        return answer, ends

    def kill_supervisor(self) -> None:
        """Let the one thing fail that is meant not to: everything stays, for `clean` to find."""
        self._supervisor.kill()
        self._supervisor.wait()

    def close(self) -> None:
        """Remove everything and wait until it is gone."""
        if os.getpid() != self._owner_pid:  # a forked child: not its rig
            return
        self._socket.close()
        try:
            self._supervisor.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self._supervisor.kill()
            self._supervisor.wait()
        if self._supervisor.stderr:
            self._supervisor.stderr.close()
        if self.folder.exists():
            log = self.folder / "supervisor.log"
            said = log.read_text(errors="replace")[-2000:] if log.exists() else ""
            raise RigError(f"{self.folder} was not removed (`python -m tests.rig clean`): {said}")

    def __enter__(self) -> Self:
        """Give the rig."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the rig."""
        self.close()


def wait_until(ready: Any, *, what: str, daemon: Daemon | None = None, patience_s: float = 60) -> None:
    """Wait until a condition holds, or the daemon it depends on ends."""
    deadline = time.monotonic() + patience_s
    while not ready():
        if daemon is not None and not daemon.alive:
            raise RigError(f"{what}: the process ended")
        if time.monotonic() > deadline:
            raise RigError(f"{what}: not within {patience_s:g} s")
        time.sleep(0.05)


def have(program: str) -> bool:
    """Tell whether the machine itself has a program."""
    return shutil.which(program) is not None
