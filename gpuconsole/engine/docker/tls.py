"""TLS to an engine that listens on TCP."""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import threading

from gpuconsole.engine.docker.unreachable import bad_tls_files
from gpuconsole.engine.endpoint import Endpoint

_CHUNK = 65536
_WAITING = 1 << 20


def tls_context(endpoint: Endpoint) -> ssl.SSLContext:
    """TLS as the endpoint's files have it.

    Raises:
        BadFile: They cannot be used.
    """
    authority, certificate, key = endpoint.tls or ("", "", "")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        if not endpoint.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        elif authority:
            context.load_verify_locations(cafile=authority)
        else:
            context.load_default_certs()
        if certificate and key:
            # An empty password makes a locked key an error instead of a question on the terminal.
            context.load_cert_chain(certificate, key, password="")
    except OSError as error:
        raise bad_tls_files(endpoint, error) from error
    return context


def relayed(context: ssl.SSLContext, link: socket.socket, *, hostname: str | None) -> socket.socket:
    """A plain socket that leads through TLS over ``link``.

    OpenSSL's state is not made for two threads, and Python's TLS sockets cannot end their writing and read on; a
    plain socket can do both. One thread alone works on ``link`` and ends with it.

    Raises:
        OSError: The other side does not agree to TLS; ``ssl.SSLError`` is one.
    """
    relay = _Relay(context, link, hostname=hostname)
    relay.shake_hands()
    ours, relay.inner = socket.socketpair()
    threading.Thread(target=relay.run, name="engine-tls", daemon=True).start()
    return ours


class _Relay:
    """Passes on bytes both ways, each way at its own pace: neither waits for the other."""

    inner: socket.socket

    def __init__(self, context: ssl.SSLContext, link: socket.socket, *, hostname: str | None) -> None:
        self._link = link
        self._arrived, self._to_send = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._arrived, self._to_send, server_hostname=hostname)
        self._outward, self._inward = bytearray(), bytearray()
        self._we_ended = self._they_ended = False

    def shake_hands(self) -> None:
        """Agree on keys, within the time-out of the connection."""
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                self._link.sendall(self._to_send.read())
                data = self._link.recv(_CHUNK)
                if data:
                    self._arrived.write(data)
                else:
                    self._arrived.write_eof()
            else:
                self._link.sendall(self._to_send.read())
                return

    def run(self) -> None:
        """Work until both directions have ended or one side is gone."""
        with contextlib.suppress(OSError), self._link, self.inner:
            self._link.setblocking(False)
            self.inner.setblocking(False)
            while not (self._they_ended and not self._inward):
                link, inner = self._wait()
                if inner & select.POLLIN:
                    self._take_ours()
                elif inner & (select.POLLHUP | select.POLLERR):
                    return
                if link & ~select.POLLOUT:
                    self._take_theirs()
                _send(self._link, self._outward)
                _send(self.inner, self._inward)

    def _wait(self) -> tuple[int, int]:
        """What can be done on the link and on the inner socket; who has too much waiting is not asked for more."""
        poll = select.poll()
        more = select.POLLIN if len(self._inward) < _WAITING else 0
        if not self._they_ended:  # a link at its end would wake us without pause
            poll.register(self._link, more | (select.POLLOUT if self._outward else 0))
        more = select.POLLIN if len(self._outward) < _WAITING and not self._we_ended else 0
        poll.register(self.inner, more | (select.POLLOUT if self._inward else 0))
        ready = dict(poll.poll())
        return ready.get(self._link.fileno(), 0), ready.get(self.inner.fileno(), 0)

    def _take_ours(self) -> None:
        data = self.inner.recv(_CHUNK)
        if data:
            self._tls.write(data)
        else:
            self._we_ended = True
            # All that arrived has been read, so this says "nothing more from here" and finds nothing to wait for.
            with contextlib.suppress(ssl.SSLWantReadError):
                self._tls.unwrap()
        self._outward += self._to_send.read()

    def _take_theirs(self) -> None:
        data = self._link.recv(_CHUNK)
        if data:
            self._arrived.write(data)
        else:
            self._arrived.write_eof()
        try:
            while text := self._tls.read(_CHUNK):
                self._inward += text
            self._they_ended = True
        except ssl.SSLWantReadError:
            pass
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            self._they_ended = True
        self._outward += self._to_send.read()


def _send(target: socket.socket, waiting: bytearray) -> None:
    """Send what the target takes now."""
    if waiting:
        with contextlib.suppress(BlockingIOError):
            del waiting[: target.send(waiting)]
