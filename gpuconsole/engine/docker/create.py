"""Making a container: what is asked for, in the engine's form."""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Mapping
from typing import Any

from gpuconsole.core.errors import (
    Conflict,
    ConsoleError,
    EngineRefused,
    EngineUnavailable,
    NotFound,
    TimedOut,
    tell_also,
)
from gpuconsole.engine.docker.answers import Answer, line, part
from gpuconsole.engine.docker.connection import Connection
from gpuconsole.engine.docker.gpus import cdi_devices
from gpuconsole.engine.model import GpuPath, Mount
from gpuconsole.engine.request import CreateRequest, DeviceRequest

_CREATE_TIMEOUT_S = 60.0
"""A slow disk, with the layers of a big image to be put together."""
_UNDO_TRIES = 12
_UNDO_PAUSE_S = 0.25


def create(connection: Connection, request: CreateRequest) -> str:
    """Make the container and return its id; whatever interrupts that, none is left behind, or the failure says so.

    Raises:
        NotFound: The image, a folder to mount or a network is missing.
        Conflict: The name is taken.
        ConsoleError: The engine does not want to, or does not answer.
    """
    # With a name of ours it can be found again when the answer never arrives.
    name = request.name or f"gpuconsole-{secrets.token_hex(4)}"
    if _found(connection, name) is not None:
        raise Conflict(
            f"The name {name} is taken by another container.",
            hint=f"Choose another name, or remove that container: gpuconsole rm {name}.",
        )
    body = creation(request)
    try:
        answer: Answer = connection.tell(
            lambda client: client.create_container_from_config(body, name),  # type: ignore[no-untyped-call]
            timeout_s=_CREATE_TIMEOUT_S,
        )
        return line(answer, "Id")
    except Conflict:
        raise
    except BaseException as error:
        # Without an answer the engine may still be at it.
        answered = not isinstance(error, (EngineUnavailable, TimedOut, KeyboardInterrupt, SystemExit))
        try:
            _undo(connection, name, request, tries=1 if answered else _UNDO_TRIES)
        except ConsoleError:
            told = f"A container {name} may have been made nevertheless."
            tell_also(error, told, hint="When the engine answers again, look by 'gpuconsole ps'.")
        raise


def _found(connection: Connection, name: str) -> Answer | None:
    try:
        answer: Answer = connection.ask(lambda client: client.inspect_container(name))
    except NotFound:
        return None
    return answer if line(answer, "Name") == f"/{name}" else None


def _undo(connection: Connection, name: str, request: CreateRequest, *, tries: int) -> None:
    """Remove what a failed or interrupted creation made; never a container that somebody else made meanwhile.

    Raises:
        ConsoleError: The engine does not tell, or does not remove it.
    """
    made = _found(connection, name)
    for _ in range(tries - 1):
        if made is not None:
            break
        time.sleep(_UNDO_PAUSE_S)
        made = _found(connection, name)
    if made is None:
        return
    # As the engine has it, not made harmless: what was sent must come back unchanged.
    config = part(made, "Config")
    labelled = all(part(config, "Labels").get(key) == value for key, value in request.labels.items())
    unused = line(part(made, "State"), "Status") == "created"
    if labelled and unused and config.get("Image") == request.image:
        identity = line(made, "Id")
        with contextlib.suppress(NotFound):
            connection.tell(lambda client: client.remove_container(identity, force=True, v=True))


def creation(request: CreateRequest) -> dict[str, Any]:
    """The request as the engine's interface has it.

    Raises:
        EngineRefused: It cannot be expressed: GPUs without a way to give them, or a way without GPUs.
    """
    host = _host(request)
    environment = dict(request.environment) | _give_gpus(request, host)
    body: dict[str, Any] = {
        "Image": request.image,
        "Env": [f"{name}={value}" for name, value in environment.items()],
        "Labels": dict(request.labels),
        "Tty": request.tty,
        "OpenStdin": request.open_stdin,
        "HostConfig": host,
    }
    optional: dict[str, Any] = {
        "Cmd": None if request.command is None else list(request.command),
        "Entrypoint": None if request.entrypoint is None else list(request.entrypoint),
        "WorkingDir": request.working_dir,
        "User": request.user,
        "Hostname": request.hostname,
        "ExposedPorts": {f"{port.container_port}/{port.protocol}": {} for port in request.ports} or None,
    }
    return body | {key: value for key, value in optional.items() if value is not None}


def _host(request: CreateRequest) -> dict[str, Any]:
    bindings: dict[str, list[dict[str, str]]] = {}
    for port in request.ports:
        key = f"{port.container_port}/{port.protocol}"
        # Port 0 is no port to Docker: only the empty text lets it choose.
        number = str(port.host_port) if port.host_port else ""
        bindings.setdefault(key, []).append({"HostIp": port.host_ip, "HostPort": number})
    optional: dict[str, Any] = {
        # Mounts rather than binds: a missing folder is an error then, not made anew and owned by root.
        "Mounts": [_mount(mount, request.volume_labels) for mount in request.mounts] or None,
        "PortBindings": bindings or None,
        "ShmSize": request.shm_bytes,
        "IpcMode": request.ipc_mode,
        "NetworkMode": request.network,
        "Memory": request.memory_bytes,
        "NanoCpus": None if request.cpus is None else round(request.cpus * 1e9),
        "Ulimits": [{"Name": limit.name, "Soft": limit.soft, "Hard": limit.hard} for limit in request.ulimits] or None,
        "RestartPolicy": _restart_policy(request.restart_policy),
        "Tmpfs": {tmpfs.target: ",".join(tmpfs.options) for tmpfs in request.tmpfs} or None,
        "Devices": [_device(device) for device in request.devices] or None,
        "GroupAdd": list(request.group_add) or None,
        "ExtraHosts": [f"{name}:{address}" for name, address in request.extra_hosts] or None,
        "ReadonlyRootfs": request.read_only or None,
        "Privileged": request.privileged or None,
        "AutoRemove": request.auto_remove or None,
        "Init": request.init or None,
    }
    return {key: value for key, value in optional.items() if value is not None}


def _mount(mount: Mount, volume_labels: Mapping[str, str]) -> dict[str, Any]:
    asked: dict[str, Any] = {"Type": mount.kind, "Target": mount.target, "ReadOnly": mount.read_only}
    if mount.kind == "volume" and volume_labels:
        # The engine puts them on a volume that it makes now, and leaves one that is there as it is.
        asked["VolumeOptions"] = {"Labels": dict(volume_labels)}
    return asked if mount.kind == "tmpfs" else asked | {"Source": mount.source}


def _device(device: DeviceRequest) -> dict[str, str]:
    return {
        "PathOnHost": device.host_path,
        "PathInContainer": device.container_path,
        "CgroupPermissions": device.permissions,
    }


def _restart_policy(written: str | None) -> dict[str, Any] | None:
    if not written:
        return None
    name, _, tries = written.partition(":")
    return {"Name": name, "MaximumRetryCount": int(tries)} if tries.isdigit() else {"Name": name}


def _give_gpus(request: CreateRequest, host: dict[str, Any]) -> dict[str, str]:
    """Put the GPUs into ``host`` in the engine's way; the environment this needs.

    Raises:
        EngineRefused: There are GPUs and no way to give them, or a way and no GPUs: the engines' own defaults for that
            are none, or all of the machine.
    """
    path, uuids = request.gpu_path, request.gpu_uuids
    named = (path is GpuPath.CDI and request.cdi_devices) or uuids
    if path is GpuPath.NONE:
        if named:
            raise EngineRefused(
                "GPUs were asked for, but no way to give them to a container.",
                hint="'gpuconsole doctor' says what the engine lacks.",
            )
        return {}
    if not named or not all(named):
        raise EngineRefused(
            f"The GPUs to give by {path} are not named, so no container was made.",
            hint="Name them by index or UUID, as --gpus device=0 does; or launch with --gpus none.",
        )
    if path is GpuPath.RUNTIME:
        host["Runtime"] = "nvidia"
        return {"NVIDIA_VISIBLE_DEVICES": ",".join(uuids)}
    if path is GpuPath.CDI:
        names = request.cdi_devices or cdi_devices(uuids)
        host["DeviceRequests"] = [{"Driver": "cdi", "DeviceIDs": list(names)}]
    else:
        # Neither a count beside the names, which is refused, nor a count of 0, which silently gives no GPU.
        host["DeviceRequests"] = [{"DeviceIDs": list(uuids), "Capabilities": [["gpu"]]}]
    return {}
