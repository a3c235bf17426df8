"""The engine of another machine through the user's ``ssh`` program, as the docker command reaches it."""

from __future__ import annotations

import os
import shlex
import socket
import subprocess
import tempfile
import threading
from typing import IO
from urllib.parse import urlsplit

from gpuconsole.core.errors import EngineUnavailable, NotFound
from gpuconsole.core.text import plain, plain_line
from gpuconsole.engine.endpoint import Endpoint

_CONNECT_TIMEOUT_S = 30
_GRACE_S = 1.0


class SshConnection(socket.socket):
    """A connection through ``ssh HOST docker system dial-stdio``."""

    login_s = _CONNECT_TIMEOUT_S
    """What the first answer may take longer."""
    _program: subprocess.Popen[bytes]
    _said: IO[bytes]

    @classmethod
    def start(cls, endpoint: Endpoint, *, timeout_s: float) -> SshConnection:
        """Start ``ssh``; whether it gets through shows at the first answer.

        Raises:
            NotFound: There is no ``ssh`` program.
            EngineUnavailable: It cannot be started.
        """
        ours, theirs = socket.socketpair()
        said = tempfile.TemporaryFile()  # noqa: SIM115 (read after the connection has ended)
        try:
            # Of its own session, so that ctrl+c ends this program and not, behind its back, its connection.
            program = subprocess.Popen(
                ssh_command(endpoint.url),
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=said,
                start_new_session=True,
            )
        except OSError as error:
            said.close()
            ours.close()
            if isinstance(error, FileNotFoundError):
                raise NotFound(
                    "There is no ssh program here, which ssh:// addresses need.", hint="Install the OpenSSH client."
                ) from error
            raise EngineUnavailable(
                f"ssh cannot be started: {error.strerror}.", hint="Look whether 'ssh -V' works."
            ) from error
        finally:
            theirs.close()
        connection = cls(fileno=ours.detach())
        connection.settimeout(timeout_s + cls.login_s)
        connection._program, connection._said = program, said
        return connection

    def complaint(self) -> str:
        """What ``ssh`` said on its standard error, when it has ended or does so now; empty while it runs."""
        try:
            self._program.wait(timeout=1)
        except subprocess.TimeoutExpired:
            return ""
        try:
            return plain(os.pread(self._said.fileno(), 8192, 0)).strip()
        except (OSError, ValueError):  # closed by the reader that ended it
            return ""

    def _real_close(self) -> None:  # the hook of the socket class for its subclasses: the last reader has gone
        super()._real_close()  # type: ignore[misc]
        # It ends by itself when it notices; what it says until then may be the only explanation.
        threading.Thread(target=_end, args=(self._program,), name="ssh-end", daemon=True).start()


def _end(program: subprocess.Popen[bytes]) -> None:
    try:
        program.wait(timeout=_GRACE_S)
    except subprocess.TimeoutExpired:
        program.terminate()
        program.wait()


def ssh_command(url: str) -> list[str]:
    """The command for an ``ssh://`` address; it never asks for a password in the middle of a screen."""
    address = urlsplit(url)
    command = ["ssh", "-o", "BatchMode=yes", "-o", f"ConnectTimeout={_CONNECT_TIMEOUT_S}", "-T"]
    if address.username:
        command += ["-l", address.username]
    if address.port:
        command += ["-p", str(address.port)]
    remote = ["docker"]
    if address.path.strip("/"):
        remote += ["--host", f"unix://{address.path}"]
    return [*command, "--", _host(url), shlex.join([*remote, "system", "dial-stdio"])]


def ssh_failed(endpoint: Endpoint, complaint: str) -> EngineUnavailable:
    """What it means that ``ssh`` ended, saying ``complaint``."""
    last = plain_line(complaint.splitlines()[-1] if complaint else "it ended without a word")
    lowered = complaint.lower()
    if "host key verification failed" in lowered:
        hint = f"Connect once by hand and look at the key: {_by_hand(endpoint.url)}."
    elif "permission denied (" in lowered:
        hint = f"It must get in without a password, by a key or an agent: try {_by_hand(endpoint.url)}."
    elif "dial-stdio" in lowered or "command not found" in lowered or "docker: not found" in lowered:
        hint = "That machine needs the docker command, version 18.09 or newer, on the PATH of its login shell."
    else:
        hint = f"Look whether {_by_hand(endpoint.url)} works."
    return EngineUnavailable(f"ssh did not reach the engine at {endpoint.url}: {last}.", hint=hint, detail=complaint)


def _by_hand(url: str) -> str:
    address = urlsplit(url)
    words = ["ssh", *(["-p", str(address.port)] if address.port else [])]
    user = f"{address.username}@" if address.username else ""
    return f"'{shlex.join([*words, f'{user}{_host(url)}'])} docker version'"


def _host(url: str) -> str:
    """The host as written: ssh knows it by an alias of its configuration, where upper and lower case differ."""
    written = urlsplit(url).netloc.rpartition("@")[2]
    return written[1:].partition("]")[0] if written.startswith("[") else written.partition(":")[0]
