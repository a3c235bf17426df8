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


def relayed(secured: ssl.SSLSocket) -> socket.socket:
    """A plain socket that leads through ``secured``.

    OpenSSL's state is not made for two threads, and Python's TLS sockets cannot end their writing and read on; a
    plain socket can do both. One thread alone works on ``secured``, and ends with it.
    """
    ours, theirs = socket.socketpair()
    threading.Thread(target=_relay, args=(secured, theirs), name="engine-tls", daemon=True).start()
    return ours


def _relay(secured: ssl.SSLSocket, inner: socket.socket) -> None:
    secured.settimeout(None)
    with contextlib.suppress(OSError), secured, inner:
        poll = select.poll()
        poll.register(secured, select.POLLIN)
        poll.register(inner, select.POLLIN)
        while True:
            ready = dict(poll.poll())
            inner_events = ready.get(inner.fileno(), 0)
            if inner_events & select.POLLIN:
                data = inner.recv(_CHUNK)
                if data:
                    secured.sendall(data)
                elif not _end_writing(secured):
                    return
                else:
                    poll.modify(inner, 0)
            elif inner_events & (select.POLLHUP | select.POLLERR):
                return
            if secured.fileno() in ready and not _forward(secured, inner):
                return


def _forward(secured: ssl.SSLSocket, inner: socket.socket) -> bool:
    """Pass on what came; False at its end. What waits decrypted inside TLS would not wake the poll."""
    while True:
        data = secured.recv(_CHUNK)
        if not data:
            return False
        inner.sendall(data)
        if not secured.pending():
            return True


def _end_writing(secured: ssl.SSLSocket) -> bool:
    """Tell the other side that nothing more comes; False when it had ended before."""
    secured.settimeout(0)
    try:
        secured.unwrap()
    except ssl.SSLWantReadError:
        secured.settimeout(None)
        return True
    return False
