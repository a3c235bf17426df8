"""What a launch would share with this machine beyond folders: sockets of engines, devices, the engine's group."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from gpuconsole.core.errors import ConsoleError
from gpuconsole.host.devices import DeviceFacts, look_at_device

if TYPE_CHECKING:
    from gpuconsole.engine.model import EngineInfo
    from gpuconsole.engine.protocol import Engine
    from gpuconsole.launch.spec import LaunchSpec

_SOCKETS = (
    "/run/docker.sock", "/run/podman/podman.sock", "/run/containerd/containerd.sock", "/run/crio/crio.sock",
    "/run/buildkit/buildkitd.sock",
)  # fmt: skip
_OF_USER = ("docker.sock", "podman/podman.sock")


def device_facts(spec: LaunchSpec) -> Mapping[str, DeviceFacts]:
    """Host path of each device → what it is."""
    return {device.host_path: look_at_device(device.host_path) for device in spec.devices}


def volume_folders(engine: Engine, spec: LaunchSpec) -> Mapping[str, str]:
    """Name of each volume that was made over a path of the host → that path."""
    found: dict[str, str] = {}
    for mount in spec.mounts:
        if mount.kind == "volume":
            with contextlib.suppress(ConsoleError):
                if path := engine.volume_folder(mount.source):
                    found[mount.source] = path
    return found


def engine_sockets(paths: Iterable[str], info: EngineInfo, *, home: str) -> Mapping[str, str]:
    """Host path of a mount → the socket of an engine that it is, under whatever name, or that is in it.

    A folder of the caller's home is not told of for the sockets of the caller's own engines in it.
    """
    known = dict(_known(info))
    found: dict[str, str] = {}
    for path in paths:
        if socket := _of_mount(path, known, os.path.realpath(home)):
            found[path] = socket
    return found


def _known(info: EngineInfo) -> Iterator[tuple[str, os.stat_result]]:
    own = info.endpoint.removeprefix("unix://") if info.endpoint.startswith("unix://") else ""
    of_user = (f"/run/user/{os.getuid()}/{name}" for name in _OF_USER)
    for path in (*([own] if own else []), *_SOCKETS, *of_user):
        try:
            found = os.stat(path)
        except (OSError, ValueError):
            continue
        if stat.S_ISSOCK(found.st_mode):
            yield os.path.realpath(path), found


def _of_mount(source: str, known: Mapping[str, os.stat_result], home: str) -> str:
    """The socket behind a path; empty when there is none."""
    real = os.path.realpath(source)
    try:
        found = os.stat(real)
    except (OSError, ValueError):
        return ""
    for path, socket in known.items():
        # One file may have several names, and be mounted in another place.
        if (found.st_dev, found.st_ino) == (socket.st_dev, socket.st_ino):
            return real
        in_home = path.startswith(f"{home.rstrip('/')}/") and f"{home}/".startswith(f"{real.rstrip('/')}/")
        if stat.S_ISDIR(found.st_mode) and path.startswith(f"{real.rstrip('/')}/") and not in_home:
            return path
    return ""


def engine_group(info: EngineInfo) -> int | None:
    """The group that by the engine's socket commands the machine; None when only root may use it or it is not seen.

    That of an engine without root is its user's own, and commands no more than that user.
    """
    if info.rootless or not info.endpoint.startswith("unix://"):
        return None
    try:
        found = os.stat(info.endpoint.removeprefix("unix://"))
    except (OSError, ValueError):
        return None
    return found.st_gid if found.st_mode & stat.S_IWGRP and found.st_gid else None
