"""A few requests to an engine's socket, for the rig's own needs: tests use the product's adapter or the CLI."""

from __future__ import annotations

import http.client
import json
import socket
from pathlib import Path
from typing import IO, Any

from tests.rig.places import RigError


class _Connection(http.client.HTTPConnection):
    def __init__(self, path: Path, timeout_s: float) -> None:
        super().__init__("engine", timeout=timeout_s)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


def request(path: Path, method: str, target: str, *, body: IO[bytes] | None = None, timeout_s: float = 60) -> Any:
    """Send a request and give the answer: decoded JSON, or text when it is none.

    Raises:
        RigError: the engine refused.
        OSError: nobody answers.
    """
    connection = _Connection(path, timeout_s)
    headers = {"Content-Type": "application/x-tar", "Transfer-Encoding": "chunked"} if body else {}
    try:
        connection.request(method, target, body=body, headers=headers, encode_chunked=bool(body))
        answer = connection.getresponse()
        text = answer.read().decode(errors="replace")
    finally:
        connection.close()
    if answer.status >= 400:
        raise RigError(f"{method} {target}: {answer.status} {text.strip()}")
    try:
        return json.loads(text)
    except ValueError:
        return text


def answers(path: Path) -> bool:
    """Tell whether an engine answers at a socket."""
    try:
        return bool(request(path, "GET", "/_ping", timeout_s=2) == "OK")
    except (OSError, http.client.HTTPException, RigError):
        return False
