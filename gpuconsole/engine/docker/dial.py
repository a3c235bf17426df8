"""Connections to the engine: every kind of address becomes a plain socket.

Docker's client library can connect too, but not so that a connection can be closed from another thread, half closed,
or led through the user's own ``ssh`` without a second SSH library. So the connections are ours, and the library's
requests travel on them as well (:mod:`gpuconsole.engine.docker.transport`).
"""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

from gpuconsole.engine.docker.unreachable import not_connected
from gpuconsole.engine.endpoint import Endpoint

CONNECT_TIMEOUT_S = 10.0


def dial(endpoint: Endpoint, *, timeout_s: float = CONNECT_TIMEOUT_S, two_way: bool = False) -> socket.socket:
    """A new connection to the engine.

    Args:
        endpoint: Where it is.
        timeout_s: How long connecting, and then each reading and writing, may take.
        two_way: One thread will read while another writes, or ends the writing.

    Raises:
        EngineUnavailable: There is nothing, or not this way.
        Refused: The socket does not let this user in.
        TimedOut: No connection in time.
        BadFile: The TLS files cannot be used.
    """
    if endpoint.url.startswith("ssh://"):
        from gpuconsole.engine.docker.ssh import SshConnection

        return SshConnection.start(endpoint, timeout_s=timeout_s)
    try:
        connection = _unix(endpoint, timeout_s) if endpoint.local else _tcp(endpoint, timeout_s)
    except OSError as error:
        raise not_connected(endpoint, error) from error
    if endpoint.tls is None:
        return connection
    return _secured(endpoint, connection, timeout_s=timeout_s, two_way=two_way)


def _unix(endpoint: Endpoint, timeout_s: float) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(timeout_s)
        connection.connect(endpoint.socket_path or "")
    except OSError:
        connection.close()
        raise
    return connection


def _tcp(endpoint: Endpoint, timeout_s: float) -> socket.socket:
    address = urlsplit(endpoint.url)
    connection = socket.create_connection((address.hostname or "localhost", address.port or 2375), timeout=timeout_s)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    # A machine that vanished without a word would leave a silent stream open for ever.
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    return connection


def _secured(endpoint: Endpoint, connection: socket.socket, *, timeout_s: float, two_way: bool) -> socket.socket:
    from gpuconsole.engine.docker.tls import relayed, tls_context

    hostname = urlsplit(endpoint.url).hostname
    try:
        context = tls_context(endpoint)
        if not two_way:
            return context.wrap_socket(connection, server_hostname=hostname)
        plain = relayed(context, connection, hostname=hostname)
    except OSError as error:
        connection.close()
        raise not_connected(endpoint, error) from error
    except BaseException:
        connection.close()
        raise
    plain.settimeout(timeout_s)
    return plain
