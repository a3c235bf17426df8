"""One request on a connection of its own: streams, and calls that last.

An exchange can be closed from any thread at any moment, also while the engine is frozen: its socket is shut down,
and who waits on it wakes up. Docker's client library can do that for some streams and some connections only, and
loses what the engine sent right behind the headers of an exec.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, urlencode

from gpuconsole.core.errors import ConsoleError, EngineUnavailable
from gpuconsole.engine.docker.dial import CONNECT_TIMEOUT_S, dial
from gpuconsole.engine.docker.refusals import refusal
from gpuconsole.engine.docker.transport import USER_AGENT
from gpuconsole.engine.docker.unreachable import connection_lost, no_engine, not_connected, timed_out
from gpuconsole.engine.endpoint import Endpoint

_CHUNK = 65536
_LONGEST_REFUSAL = 1 << 20


class ExchangeClosed(EngineUnavailable):
    """It was closed on our side."""

    def __init__(self) -> None:
        super().__init__("The connection to the engine was closed.", hint="Start again.")


class Exchange:
    """A request, then its answer as it comes.

    Args:
        endpoint: Where the engine is.
        method: ``GET`` or ``POST``.
        path: Path with API version, unescaped.
        query: Parameters; those that are None are left out.
        body: Sent as JSON; bytes as they are, an archive.
        headers: More headers.
        hijack: The connection becomes two-way after the headers.
        answer_timeout_s: How long the headers of the answer may take; None waits for ever.
        refused: What a refusal with a status and a text means.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        method: str,
        path: str,
        *,
        query: Mapping[str, str | int | None] | None = None,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        hijack: bool = False,
        answer_timeout_s: float | None = CONNECT_TIMEOUT_S,
        refused: Callable[[int, str], ConsoleError] = refusal,
    ) -> None:
        self._endpoint = endpoint
        self._method = method
        pairs = {key: value for key, value in (query or {}).items() if value is not None}
        self._target = endpoint.base_path + quote(path, safe="/:@") + (f"?{urlencode(pairs)}" if pairs else "")
        self._body = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        self._content_type = "application/x-tar" if isinstance(body, bytes) else "application/json"
        self._headers = dict(headers or {})
        self._hijack = hijack
        self._answer_timeout_s = answer_timeout_s
        self._refused = refused
        self._socket: socket.socket | None = None
        self._connection: http.client.HTTPConnection | None = None
        self._response: http.client.HTTPResponse | None = None
        self._lock = threading.Lock()
        self._closed = False
        self._busy = False

    @property
    def closed(self) -> bool:
        """It was closed on our side."""
        return self._closed

    def open(self) -> None:
        """Send the request and wait for the headers of the answer.

        Raises:
            ExchangeClosed: It was closed before or meanwhile.
            ConsoleError: No connection, no answer, or the answer is no.
        """
        if self._response is not None:
            return
        with self._working():
            connection, link = self._connected()
            self._send(connection)
            limit_s = self._answer_timeout_s
            # Over ssh the first answer also waits for the login.
            link.settimeout(None if limit_s is None else limit_s + getattr(link, "login_s", 0))
            self._response = response = connection.getresponse()
            if response.status >= 400:
                raise self._refused(response.status, message_in(response.read(_LONGEST_REFUSAL)))
            link.settimeout(None)

    def _connected(self) -> tuple[http.client.HTTPConnection, socket.socket]:
        connection = http.client.HTTPConnection("engine", blocksize=_CHUNK)
        link = dial(self._endpoint, two_way=self._hijack)
        with self._lock:
            if self._closed:
                link.close()
                raise ExchangeClosed
            self._socket = connection.sock = link
            self._connection = connection
        return connection, link

    def _send(self, connection: http.client.HTTPConnection) -> None:
        headers = {"User-Agent": USER_AGENT, **self._headers}
        if self._body is not None:
            headers["Content-Type"] = self._content_type
        if self._hijack:
            headers |= {"Connection": "Upgrade", "Upgrade": "tcp"}
        connection.request(self._method, self._target, body=self._body, headers=headers)

    def read(self) -> bytes:
        """What came next; empty at the end.

        Raises:
            ExchangeClosed: It was closed on our side.
            EngineUnavailable: The connection broke.
        """
        response = self._response
        if response is None or self._closed:
            raise ExchangeClosed
        with self._working():
            if response.status == http.HTTPStatus.SWITCHING_PROTOCOLS:
                # Behind an upgrade there is no body to http.client; the rest of the connection is ours. What the
                # engine sent together with the headers lies in this buffered reader.
                return response.fp.read1(_CHUNK)
            return response.read1(_CHUNK)

    def chunks(self) -> Iterator[bytes]:
        """The answer as it comes, to its end or until it is closed."""
        try:
            self.open()
            while data := self.read():
                yield data
        except ExchangeClosed:
            return
        finally:
            self.close()

    def whole(self, *, timeout_s: float | None = None) -> bytes:
        """All of the answer.

        Raises:
            ExchangeClosed: It was closed on our side.
            ConsoleError: No connection, no answer, or the answer is no.
        """
        try:
            self.open()
            if timeout_s is not None and self._socket is not None:
                self._socket.settimeout(timeout_s)
            return b"".join(iter(self.read, b""))
        finally:
            self.close()

    def write(self, data: bytes) -> None:
        """Send ``data`` on a two-way connection.

        Raises:
            ExchangeClosed: It was closed on our side.
            EngineUnavailable: The other side reads no more.
        """
        link = self._socket
        if link is None or self._closed:
            raise ExchangeClosed
        try:
            link.sendall(data)
        except OSError as error:
            raise self._failed(error) from error

    def end_writing(self) -> None:
        """Say that nothing more will be written; reading goes on."""
        if self._socket is not None and not self._closed:
            try:
                self._socket.shutdown(socket.SHUT_WR)
            except OSError:
                return

    def close(self) -> None:
        """End it, from any thread. Who waits in it wakes up; the last one out closes the socket."""
        with self._lock:
            self._closed = True
            link, busy = self._socket, self._busy
        if link is not None:
            try:
                link.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        if not busy:
            self._release()

    def _release(self) -> None:
        if self._response is not None:
            self._response.close()
        if self._connection is not None:
            self._connection.close()

    @contextlib.contextmanager
    def _working(self) -> Iterator[None]:
        """The span in which a thread works on it: errors get their meaning, and a close elsewhere is carried out."""
        with self._lock:
            if self._closed:
                raise ExchangeClosed
            self._busy = True
        try:
            yield
        # A socket closed beside a reader shows as an error of any of these kinds.
        except (ConsoleError, OSError, http.client.HTTPException, ValueError, AttributeError) as error:
            if self.closed:
                raise ExchangeClosed from error
            if isinstance(error, (OSError, http.client.HTTPException)):
                raise self._failed(error) from error
            raise
        finally:
            self._leave()

    def _leave(self) -> None:
        with self._lock:
            self._busy = False
            release = self._closed
        if release:
            self._release()

    def _failed(self, error: Exception) -> ConsoleError:
        from gpuconsole.engine.docker.ssh import SshConnection, ssh_failed

        if isinstance(self._socket, SshConnection) and (complaint := self._socket.complaint()):
            return ssh_failed(self._endpoint, complaint)
        if isinstance(error, ssl.SSLError):
            # With TLS 1.3 the other side refuses a certificate only after the connection stands.
            return not_connected(self._endpoint, error)
        if isinstance(error, TimeoutError):
            return timed_out(self._endpoint, after_s=self._answer_timeout_s)
        if isinstance(error, http.client.BadStatusLine) and not isinstance(error, http.client.RemoteDisconnected):
            return no_engine(self._endpoint, str(error))
        return connection_lost(self._endpoint, str(error))


def message_in(raw: bytes) -> str:
    """The engine's sentence in the body of a refusal."""
    try:
        content: Any = json.loads(raw)
    except ValueError:
        return raw.decode(errors="replace")
    if isinstance(content, dict):
        for key in ("message", "cause", "error"):
            if isinstance(content.get(key), str):
                return str(content[key])
    return raw.decode(errors="replace")
