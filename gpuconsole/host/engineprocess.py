"""The process behind an engine's socket on this machine."""

from __future__ import annotations

import socket
import struct
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psutil

_ENGINES = ("dockerd", "podman")
_OF_PODMAN = "podman.sock"
_PID_FILE = "/run/docker.pid"
_USUAL = ("/run/docker.sock", "/var/run/docker.sock")
_ANSWER_S = 1.0


def engine_process(path: str) -> psutil.Process | None:
    """The engine that listens at a socket; None when nothing listens there, or it cannot be told who does."""
    import psutil

    try:
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(_ANSWER_S)
            probe.connect(path)
            pid, _, _ = struct.unpack("3i", probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        process = psutil.Process(pid)
        if process.name() in _ENGINES:
            return process
        # Somebody else made the socket, as systemd does; for Podman's as well, whose neighbour dockerd is not meant.
        if Path(path).name == _OF_PODMAN:
            return None
        return (_by_pid_file() if path in _USUAL else None) or _by_name()
    except (OSError, psutil.Error):
        return None


def _by_pid_file() -> psutil.Process | None:
    """The engine whose number stands in Docker's own file; no process has to be looked through for it."""
    import psutil

    try:
        process = psutil.Process(int(Path(_PID_FILE).read_text()))
        return process if process.name() in _ENGINES else None
    except (OSError, ValueError, psutil.Error):
        return None


def _by_name() -> psutil.Process | None:
    """The one engine there is; None when there are several or none."""
    import psutil

    found = [process for process in psutil.process_iter(["name"]) if process.info["name"] == _ENGINES[0]]
    return found[0] if len(found) == 1 else None
