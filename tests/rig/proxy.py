"""A TCP relay that tests slow down and cut: a bad line between an engine and its registry."""

from __future__ import annotations

import contextlib
import socket
import threading
import time

_PIECE = 16 * 1024
_PAUSE_S = 0.05


class BadLine:
    """Relays connections to a port, at a chosen speed, until it is cut. Threads of this process; gone with it."""

    def __init__(self, port: int) -> None:
        """Open a port of our own on loopback; it relays to the given one."""
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._bytes_per_second: float | None = None
        self._cut_after_bytes: int | None = None
        self._sent = 0
        self._down = False
        self._connections: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True, name="bad-line").start()

    @property
    def address(self) -> str:
        """Give `127.0.0.1:port`, as it stands before an image's name."""
        return f"127.0.0.1:{self.port}"

    @property
    def sent_bytes(self) -> int:
        """Give how much went to the client since the last `limit`."""
        return self._sent

    def limit(self, *, bytes_per_second: float | None = None, cut_after_bytes: int | None = None) -> None:
        """Slow down what goes to the client, and cut everything after so many bytes from now."""
        self._sent = 0
        self._bytes_per_second = bytes_per_second
        self._cut_after_bytes = cut_after_bytes

    def cut(self) -> None:
        """Break every connection and refuse new ones."""
        self._down = True
        for connection in list(self._connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def restore(self) -> None:
        """Let connections through again, at full speed."""
        self.limit()
        self._down = False

    def close(self) -> None:
        """Cut and stop listening."""
        self.cut()
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self._down:
                client.close()
                continue
            try:
                server = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                client.close()
                continue
            self._connections.update((client, server))
            for source, target, limited in ((client, server, False), (server, client, True)):
                threading.Thread(target=self._relay, args=(source, target, limited), daemon=True).start()

    def _relay(self, source: socket.socket, target: socket.socket, limited: bool) -> None:
        try:
            while piece := source.recv(_PIECE):
                if limited:
                    self._brake(len(piece))
                target.sendall(piece)
        except OSError:
            pass
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            self._connections.discard(end)

    def _brake(self, count: int) -> None:
        self._sent += count
        if self._cut_after_bytes is not None and self._sent > self._cut_after_bytes:
            self.cut()
            raise ConnectionResetError
        owed = float(count)
        while owed > 0 and (pace := self._bytes_per_second):  # which may change meanwhile
            pause = min(_PAUSE_S, owed / pace)
            time.sleep(pause)
            owed -= pace * pause
