"""Where the engine is: the same answer that ``docker ps`` would act on."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from gpuconsole.core.errors import BadFile, UsageError
from gpuconsole.core.text import plain_line
from gpuconsole.engine.contexts import DEFAULT_CONTEXT, TLS_FILES, config_folder, context_name, load_context

DEFAULT_SOCKET = "/var/run/docker.sock"
_TCP_PORT = 2375
_TLS_HOST = "tcp://localhost:2376"
_API_VERSION = re.compile(r"v?([0-9]{1,4})\.([0-9]{1,4})")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An engine's address and where it was found."""

    url: str
    """``unix:///…``, ``tcp://host:port`` or ``ssh://[user@]host[:port]``."""
    source: str
    """``--host``, ``DOCKER_HOST``, ``context NAME``, ``rootless``, ``docker desktop``, ``podman`` or ``default``."""
    tls: tuple[str, str, str] | None = None
    """Authority, certificate and key file, empty where there is none; None without TLS."""
    verify: bool = True
    """Whether the engine's certificate is verified."""
    api_limit: tuple[int, int] | None = None
    """The newest version of the engine's interface to speak, as ``DOCKER_API_VERSION`` says; None leaves it open."""

    @property
    def local(self) -> bool:
        """It is reached through a socket of this machine."""
        return self.url.startswith("unix://")

    @property
    def socket_path(self) -> str | None:
        """Path of the unix socket, None for an engine reached otherwise."""
        return self.url.removeprefix("unix://") if self.local else None

    @property
    def base_path(self) -> str:
        """What stands before every path of an engine behind a TCP proxy; mostly nothing."""
        return urlsplit(self.url).path if self.url.startswith("tcp://") else ""


def resolve(
    host: str | None, *, environ: Mapping[str, str] | None = None, default_socket: str = DEFAULT_SOCKET
) -> Endpoint:
    """The endpoint ``docker ps`` would use.

    In this order: ``host``, ``DOCKER_HOST``, the context that ``DOCKER_CONTEXT`` or ``config.json`` names, the default
    socket. When nothing is said and the default socket does not exist, a rootless engine's, Docker Desktop's and
    Podman's sockets are looked for, and ``source`` says which it is.

    Args:
        host: What the user gave as ``--host``.
        environ: The environment; this process's when None.
        default_socket: Where a system-wide engine listens.

    Raises:
        UsageError: An address or the version asked for cannot be understood.
        BadFile: Docker's configuration cannot be understood.
        NotFound: The context named does not exist.
    """
    environ = os.environ if environ is None else environ
    return replace(_located(host, environ, default_socket), api_limit=_api_limit(environ))


def _api_limit(environ: Mapping[str, str]) -> tuple[int, int] | None:
    written = environ.get("DOCKER_API_VERSION")
    if not written:
        return None
    match = _API_VERSION.fullmatch(written)
    if match is None:
        raise UsageError(
            f"DOCKER_API_VERSION is {plain_line(written, limit=40)!r}, which is no version of an engine's interface.",
            hint="Write it like 1.43, or unset it: the newest that both know is spoken then.",
        )
    return int(match[1]), int(match[2])


def _located(host: str | None, environ: Mapping[str, str], default_socket: str) -> Endpoint:
    if host:
        return _outright(host, "--host", environ)
    if environ.get("DOCKER_HOST"):
        return _outright(environ["DOCKER_HOST"], "DOCKER_HOST", environ)
    name, said_by = context_name(environ)
    if name == DEFAULT_CONTEXT:
        return _default(environ, default_socket)
    context = load_context(name, environ, said_by=said_by)
    source = f"context {plain_line(name)}"
    url = normalised(context.host, source, default_socket)
    return Endpoint(url=url, source=source, tls=_for(url, context.tls), verify=context.verify)


def normalised(address: str, source: str, default_socket: str = DEFAULT_SOCKET) -> str:
    """``address`` as the docker command reads it, written out in full.

    Raises:
        UsageError: It cannot be understood, or names a kind of connection that this program does not speak.
    """
    address = address.strip()
    if plain_line(address) != address:
        raise _bad_address(plain_line(address), source)
    scheme, separator, rest = address.partition("://")
    if not separator:
        scheme, rest = "tcp", address
    if scheme == "unix":
        return f"unix://{os.path.abspath(rest)}" if rest else f"unix://{default_socket}"
    if scheme == "tcp":
        return _tcp(rest, address, source)
    if scheme == "ssh":
        if not _SSH.fullmatch(rest):
            raise _bad_address(address, source)
        return address
    if scheme in ("npipe", "fd"):
        raise UsageError(
            f"{source} names {plain_line(address)!r}, and {scheme}:// connections do not exist on this system.",
            hint="Use a unix://, tcp:// or ssh:// address.",
        )
    raise _bad_address(address, source)


_SSH = re.compile(r"(?:[^@/:\s-][^@/:\s]*@)?(?:[^@/:\s\[-][^@/:\s]*|\[[0-9a-fA-F:]+\])(?::\d{1,5})?(?:/\S*)?")
_HOST_PORT = re.compile(r"(?P<host>[^:/\s\[\]]*|\[[0-9a-zA-Z:.%_-]+\])(?::(?P<port>\d{1,5})?)?(?P<path>/\S*)?")


def _tcp(rest: str, address: str, source: str) -> str:
    match = _HOST_PORT.fullmatch(rest)
    if match is None or int(match["port"] or 1) > 65535:
        raise _bad_address(address, source)
    path = (match["path"] or "").rstrip("/")
    return f"tcp://{match['host'] or 'localhost'}:{match['port'] or _TCP_PORT}{path}"


def _bad_address(address: str, source: str) -> UsageError:
    return UsageError(
        f"{source} names {plain_line(address)!r}, which is no address of an engine.",
        hint="Write it like unix:///var/run/docker.sock, tcp://HOST:2376 or ssh://USER@HOST.",
    )


def _outright(address: str, source: str, environ: Mapping[str, str]) -> Endpoint:
    url = normalised(address, source)
    tls, verify = _environment_tls(url, environ)
    return Endpoint(url=url, source=source, tls=tls, verify=verify)


def _default(environ: Mapping[str, str], default_socket: str) -> Endpoint:
    if environ.get("DOCKER_TLS_VERIFY") or environ.get("DOCKER_TLS"):
        tls, verify = _environment_tls(_TLS_HOST, environ)
        return Endpoint(url=_TLS_HOST, source="default", tls=tls, verify=verify)
    if not os.path.exists(default_socket):
        for path, source in _other_sockets(environ):
            if os.path.exists(path):
                return Endpoint(url=f"unix://{path}", source=source)
    return Endpoint(url=f"unix://{default_socket}", source="default")


def _other_sockets(environ: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Where engines listen that are not system-wide Docker, with their names."""
    runtime = environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}"
    home = environ.get("HOME") or os.path.expanduser("~")
    return (
        (f"{runtime}/docker.sock", "rootless"),
        (f"{home}/.docker/desktop/docker.sock", "docker desktop"),
        (f"{runtime}/podman/podman.sock", "podman"),
        ("/run/podman/podman.sock", "podman"),
    )


def _for(url: str, tls: tuple[str, str, str] | None) -> tuple[str, str, str] | None:
    """TLS applies to TCP alone: a socket of this machine and SSH guard themselves."""
    return tls if url.startswith("tcp://") else None


def _environment_tls(url: str, environ: Mapping[str, str]) -> tuple[tuple[str, str, str] | None, bool]:
    """Files and verification that ``DOCKER_TLS_VERIFY``, ``DOCKER_TLS`` and ``DOCKER_CERT_PATH`` ask for.

    Raises:
        BadFile: The authority's certificate is not there.
    """
    verify = bool(environ.get("DOCKER_TLS_VERIFY"))
    if not (verify or environ.get("DOCKER_TLS")) or not url.startswith("tcp://"):
        return None, True
    named = environ.get("DOCKER_CERT_PATH")
    folder = Path(named) if named else config_folder(environ)
    authority, certificate, key = (folder / name for name in TLS_FILES)
    if not authority.is_file():
        raise BadFile(
            f"TLS is asked for, but there is no {authority}.",
            hint="Set DOCKER_CERT_PATH to the folder of ca.pem, cert.pem and key.pem, or unset DOCKER_TLS_VERIFY.",
        )
    return (str(authority), _if_there(certificate), _if_there(key)), verify


def _if_there(path: Path) -> str:
    return str(path) if path.is_file() else ""
