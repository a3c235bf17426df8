"""A server on a unix socket that says what a test tells it to: what no real engine can be made to say."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable
from pathlib import Path

Reply = bytes | Callable[[socket.socket], None] | None
"""Bytes to send, something to do with the connection, or None for silence."""

VERSION = {"Version": "99.0", "ApiVersion": "1.45", "MinAPIVersion": "1.24", "Os": "linux"}


def answer(content: object, *, status: str = "200 OK", headers: str = "") -> bytes:
    """An HTTP answer with JSON in it."""
    body = json.dumps(content).encode()
    return (
        f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode()
        + body
    )


class CannedEngine:
    """Answers each request by the first reply whose key its first line holds."""

    def __init__(self, folder: Path, replies: dict[str, Reply]) -> None:
        self.path = folder / "canned.sock"
        self.url = f"unix://{self.path}"
        self.replies: dict[str, Reply] = {"/version": answer(VERSION), **replies}
        self.requests: list[bytes] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.path))
        self._listener.listen()
        self._connections: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        for one in (self._listener, *self._connections):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._connections.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            while request := _read_request(connection):
                self.requests.append(request)
                first = request.split(b"\r\n", 1)[0].decode()
                reply = next((reply for key, reply in self.replies.items() if key in first), answer({}))
                if callable(reply):
                    reply(connection)
                elif reply is not None:
                    connection.sendall(reply)
        except OSError:
            return


def _read_request(connection: socket.socket) -> bytes:
    """One request, its body included."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(65536)
        if not more:
            return b""
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    length = next(
        (int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0
    )
    while len(body) < length:
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body
