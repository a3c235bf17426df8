"""An HTTP server that answers whatever a test says: what no real registry would send, and hostile ones do."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Callable
from typing import Any

Reply = tuple[int, dict[str, str], bytes]
"""Status, headers, body."""


class Server:
    """A server on loopback; keeps what it was asked: path and authorization of each question, and its method."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str | None]] = []
        self.methods: list[str] = []
        self.answer: Callable[[str, str | None], Reply] = lambda *_: (404, {}, b"")
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                authorization = self.headers.get("Authorization")
                outer.asked.append((self.path, authorization))
                outer.methods.append(self.command)
                code, headers, body = outer.answer(self.path, authorization)
                self.send_response(code)
                for name, value in ({"Content-Length": str(len(body))} | headers).items():
                    self.send_header(name, value)
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            do_HEAD = do_GET

            def log_message(self, *_: Any) -> None:
                pass

        self._http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()
        self.address = f"127.0.0.1:{self._http.server_port}"

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
