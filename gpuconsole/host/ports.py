"""Who listens on this machine's ports."""

from __future__ import annotations

import errno
import socket
from dataclasses import dataclass
from ipaddress import ip_address

from gpuconsole.core.text import plain_line


@dataclass(frozen=True, slots=True)
class Listener:
    """A process that listens on a port."""

    pid: int
    name: str | None
    """None when the process has just gone."""
    user: str | None

    def __str__(self) -> str:
        owner = f" of {self.user}" if self.user else ""
        return f"{self.name or 'a process'} (pid {self.pid}){owner}"


def can_bind(address: str, port: int, *, protocol: str = "tcp") -> bool | None:
    """Whether ``address:port`` is free to listen on; None where that cannot be tried from here."""
    if protocol not in ("tcp", "udp"):
        return None
    family = socket.AF_INET6 if ip_address(address).version == 6 else socket.AF_INET
    kind = socket.SOCK_STREAM if protocol == "tcp" else socket.SOCK_DGRAM
    try:
        with socket.socket(family, kind) as trial:
            if protocol == "tcp":
                trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind((address, port))
            if protocol == "tcp":
                # With SO_REUSEADDR two sockets may be bound to a port; only one may listen.
                trial.listen(1)
    except OSError as error:
        return False if error.errno == errno.EADDRINUSE else None
    return True


def listener(port: int, *, protocol: str = "tcp") -> Listener | None:
    """The process that listens on ``port``; None when it is another user's and cannot be seen."""
    import psutil

    try:
        connections = psutil.net_connections(kind="tcp" if protocol == "tcp" else "udp")
    except (psutil.Error, OSError):
        return None
    for connection in connections:
        listens = connection.status == psutil.CONN_LISTEN or protocol != "tcp"
        if listens and connection.laddr and connection.laddr.port == port and connection.pid:
            return _describe(connection.pid)
    return None


def _describe(pid: int) -> Listener:
    import psutil

    try:
        process = psutil.Process(pid)
        return Listener(pid, plain_line(process.name(), limit=60), plain_line(process.username(), limit=60))
    except (psutil.Error, KeyError):
        return Listener(pid, None, None)
