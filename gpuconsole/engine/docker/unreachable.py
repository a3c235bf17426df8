"""Why no connection to the engine came about, in a sentence each, and what to do."""

from __future__ import annotations

import errno
import grp
import os
import pwd
import shutil
import socket
import ssl
import stat

from gpuconsole.core.errors import BadFile, ConsoleError, EngineUnavailable, Refused, TimedOut
from gpuconsole.core.text import plain_line
from gpuconsole.core.users import user_name
from gpuconsole.engine.endpoint import Endpoint

_ENGINE_PROGRAMS = ("dockerd", "podman", "/usr/bin/dockerd", "/usr/sbin/dockerd", "/snap/bin/dockerd")


def not_connected(endpoint: Endpoint, error: OSError) -> ConsoleError:
    """What it means that connecting to ``endpoint`` failed with ``error``."""
    if isinstance(error, ssl.SSLError):
        return _tls(endpoint, error)
    if isinstance(error, TimeoutError):
        return timed_out(endpoint)
    if endpoint.socket_path is not None:
        return _socket(endpoint, endpoint.socket_path, error)
    return _network(endpoint, error)


def timed_out(endpoint: Endpoint, *, after_s: float | None = None) -> TimedOut:
    """The engine is there and silent."""
    within = f" within {after_s:.0f} s" if after_s else " in time"
    return TimedOut(
        f"The engine at {endpoint.url} did not answer{within}.",
        hint="It may be overloaded or hung: look at 'journalctl -u docker -n 50', or restart it."
        if endpoint.local
        else "Look whether that machine and its engine are well, and whether a firewall is between.",
    )


class ConnectionLost(EngineUnavailable):
    """A connection that stood broke."""


def connection_lost(endpoint: Endpoint, why: str = "") -> ConnectionLost:
    """A connection that stood broke."""
    return ConnectionLost(
        f"The connection to the engine at {endpoint.url} broke off.",
        hint=f"The engine was probably stopped or restarted; {_START[_manager(endpoint)]}, if it stays away.",
        detail=plain_line(why),
    )


def no_engine(endpoint: Endpoint, why: str) -> EngineUnavailable:
    """Something answers, but not as a container engine does."""
    return EngineUnavailable(
        f"What answers at {endpoint.url} is no container engine.",
        hint=f"Look at the address, which {_said_by(endpoint)}.",
        detail=plain_line(why),
    )


def _said_by(endpoint: Endpoint) -> str:
    if endpoint.source in ("default", "rootless", "docker desktop", "podman"):
        return "is a usual one"
    return f"{endpoint.source} names"


# Podman and rootless Docker are started by the user's own service manager.
_START = {
    "docker": "start it with 'sudo systemctl start docker'",
    "rootless": "start it with 'systemctl --user start docker'",
    "docker desktop": "start it with 'systemctl --user start docker-desktop'",
    "podman": "start it with 'systemctl --user start podman.socket'",
    "remote": "start it on that machine",
}


def _manager(endpoint: Endpoint) -> str:
    if not endpoint.local:
        return "remote"
    if endpoint.source in _START:
        return endpoint.source
    path = endpoint.socket_path or ""
    if "podman" in path:
        return "podman"
    return "rootless" if path.startswith("/run/user/") else "docker"


def engine_installed() -> bool:
    """Whether an engine's own program is on this machine; Docker's client alone is none."""
    return any(shutil.which(program) for program in _ENGINE_PROGRAMS)


def _socket(endpoint: Endpoint, path: str, error: OSError) -> ConsoleError:
    start = _START[_manager(endpoint)]
    if error.errno in (errno.EACCES, errno.EPERM):
        return socket_refused(path)
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        if endpoint.source == "default" and not engine_installed():
            lacking = "only Docker's client" if shutil.which("docker") else "neither Docker nor Podman"
            return EngineUnavailable(
                f"No container engine is installed here: there is no socket {path}, and {lacking} on the PATH.",
                hint="Install Docker Engine (https://docs.docker.com/engine/install/), or name an engine by --host.",
            )
        return EngineUnavailable(
            f"No container engine listens at {path}: there is no such socket.",
            hint=f"{start[0].upper()}{start[1:]}"
            + (f"; the address is what {_said_by(endpoint)}." if endpoint.source != "default" else "."),
        )
    if error.errno == errno.ECONNREFUSED:
        return EngineUnavailable(
            f"The container engine at {path} is not running: its socket refuses connections.",
            hint=f"{start[0].upper()}{start[1:]}; if it does not stay up, 'journalctl -u docker -n 20' says why.",
        )
    if isinstance(error.strerror, str) and error.errno == errno.ENOTSOCK:
        return EngineUnavailable(f"{path} is not a socket.", hint=f"Look at the address, which {_said_by(endpoint)}.")
    return EngineUnavailable(
        f"The engine's socket {path} cannot be used: {error.strerror or error}.",
        hint=f"Look at the address, which {_said_by(endpoint)}.",
    )


def socket_refused(path: str) -> Refused:
    """Why this user may not use the socket, and how to be let in."""
    message = f"You are not allowed to use the engine's socket {path}."
    try:
        status = os.stat(path)
    except OSError:
        return Refused(message, hint="Its folder is closed to you: ask the administrator, or use your own engine.")
    group = _group_name(status.st_gid)
    if not status.st_mode & stat.S_IWGRP or status.st_gid == 0:
        owner = user_name(status.st_uid)
        return Refused(message, hint=f"It belongs to {owner} alone: ask the administrator, or use your own engine.")
    user = user_name(os.getuid())
    if status.st_gid not in os.getgroups() and is_member(user, status.st_gid):
        inside = " Leave tmux by 'tmux kill-server' first (it ends every session): its server keeps the old groups."
        return Refused(
            f"{message} You are in its group {group}, but this session began before that and does not know it yet.",
            hint="Log out and in again." + (inside if os.environ.get("TMUX") else ""),
        )
    return Refused(
        message,
        hint=f"Have 'sudo usermod -aG {group} {user}' run, then log out and in again"
        + (" and end tmux by 'tmux kill-server'." if os.environ.get("TMUX") else "."),
    )


def is_member(user: str, gid: int) -> bool:
    """Whether the group database lists ``user`` in group ``gid``, whatever this process was started with."""
    try:
        if pwd.getpwnam(user).pw_gid == gid:
            return True
    except KeyError:
        pass
    try:
        return user in grp.getgrgid(gid).gr_mem
    except KeyError:
        return False


def _group_name(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)


def _network(endpoint: Endpoint, error: OSError) -> EngineUnavailable:
    where = f"The address was named by {endpoint.source}"
    if isinstance(error, socket.gaierror):
        return EngineUnavailable(
            f"The name in {endpoint.url} cannot be resolved: {plain_line(str(error.strerror or error))}.",
            hint=f"{where}; look at its spelling and at DNS.",
        )
    if error.errno == errno.ECONNREFUSED:
        return EngineUnavailable(
            f"Nothing listens at {endpoint.url}.",
            hint=f"{where}; look whether the engine runs there and listens on TCP.",
        )
    return EngineUnavailable(
        f"The engine at {endpoint.url} cannot be reached: {plain_line(str(error.strerror or error))}.",
        hint=f"{where}; look at the network between.",
    )


def _tls(endpoint: Endpoint, error: ssl.SSLError) -> EngineUnavailable:
    if isinstance(error, ssl.SSLCertVerificationError):
        return EngineUnavailable(
            f"The certificate of the engine at {endpoint.url} is not trusted: {plain_line(error.verify_message)}.",
            hint=f"Its authority must be the one in {endpoint.tls[0] if endpoint.tls else 'ca.pem'}.",
        )
    reason = plain_line(str(getattr(error, "reason", None) or error))
    if reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE", "UNEXPECTED_EOF_WHILE_READING"):
        return EngineUnavailable(
            f"What listens at {endpoint.url} does not speak TLS.",
            hint="Unset DOCKER_TLS_VERIFY and DOCKER_TLS if that engine is meant to be open, or take its TLS port.",
        )
    return EngineUnavailable(
        f"No TLS connection to the engine at {endpoint.url} came about: {reason.lower().replace('_', ' ')}.",
        hint="The engine may ask for a client certificate: cert.pem and key.pem in DOCKER_CERT_PATH.",
    )


def bad_tls_files(endpoint: Endpoint, error: OSError) -> BadFile:
    """The TLS files named cannot be used."""
    files = ", ".join(file for file in endpoint.tls or () if file)
    return BadFile(
        f"The TLS files of {endpoint.url} cannot be used: {plain_line(str(error.strerror or error))}.",
        hint=f"Look at {files}: PEM files that you may read, the key belonging to the certificate.",
    )
