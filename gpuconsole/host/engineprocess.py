"""The process behind an engine's socket on this machine."""

from __future__ import annotations

import socket
import struct

_ENGINES = ("dockerd", "podman")
_ANSWER_S = 1.0


def started_at(path: str) -> float | None:
    """When the engine that listens at a socket was started, in seconds since the epoch.

    None when nothing listens there, or when somebody else made the socket, as systemd does.
    """
    import psutil

    try:
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(_ANSWER_S)
            probe.connect(path)
            pid, _, _ = struct.unpack("3i", probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        process = psutil.Process(pid)
        return process.create_time() if process.name() in _ENGINES else _by_name()
    except (OSError, psutil.Error):
        return None


def _by_name() -> float | None:
    """Of the one engine there is; None when there are several or none."""
    import psutil

    every = psutil.process_iter(["name", "create_time"])
    times: list[float] = [process.info["create_time"] for process in every if process.info["name"] == _ENGINES[0]]
    return times[0] if len(times) == 1 else None
