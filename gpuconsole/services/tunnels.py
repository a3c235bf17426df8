"""The ``ssh -L`` line that brings a container's port to the screen a person sits at."""

from __future__ import annotations

import os
import shlex
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

from gpuconsole.core.users import caller_name
from gpuconsole.engine.model import Port

_UNPRIVILEGED = 1024


@dataclass(frozen=True, slots=True)
class Server:
    """How the machine of the engine is reached by ssh."""

    address: str
    user: str | None = None
    port: int | None = None
    """None is ssh's own default."""


def server_of(endpoint_url: str, *, environment: Mapping[str, str] | None = None) -> Server:
    """The machine of the engine at ``endpoint_url``, as somebody on another machine would name it.

    Over SSH the address is the one this login came in by; else this machine's own name.
    """
    url = urlsplit(endpoint_url)
    if url.scheme == "ssh" and url.hostname:
        return Server(address=url.hostname, user=url.username, port=url.port)
    if url.scheme in ("tcp", "http", "https") and url.hostname and not _is_loopback(url.hostname):
        return Server(address=url.hostname)
    connection = (os.environ if environment is None else environment).get("SSH_CONNECTION", "").split()
    if len(connection) == 4:
        port = int(connection[3]) if connection[3].isdecimal() else None
        return Server(address=connection[2], user=caller_name(), port=None if port == 22 else port)
    return Server(address=socket.gethostname(), user=caller_name())


def tunnel(port: Port, server: Server) -> str | None:
    """The line to type on the machine one sits at; None when the port is not only on the server's loopback."""
    if port.host_port is None or port.protocol != "tcp" or not _is_loopback(port.host_ip):
        return None
    here = port.host_port if port.host_port >= _UNPRIVILEGED else port.host_port + 8000
    target = f"[{port.host_ip}]" if ":" in port.host_ip else port.host_ip
    where = f"{server.user}@{server.address}" if server.user else server.address
    options = ["-p", str(server.port)] if server.port else []
    return shlex.join(["ssh", "-N", "-L", f"{here}:{target}:{port.host_port}", *options, where])


def is_open(port: Port) -> bool:
    """Whether a published port is open to every network the machine is in."""
    try:
        return not port.host_ip or ip_address(port.host_ip).is_unspecified
    except ValueError:
        return False


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
