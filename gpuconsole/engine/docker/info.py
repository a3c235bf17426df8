"""What the engine says of itself."""

from __future__ import annotations

import os
import socket
from urllib.parse import urlsplit

from gpuconsole.core.text import plain_line
from gpuconsole.engine.docker.answers import Answer, limit, line, lines, objects, part
from gpuconsole.engine.docker.connection import Connection
from gpuconsole.engine.model import EngineInfo

_CONTAINERD_STORE = "io.containerd.snapshotter"


def engine_info(connection: Connection) -> EngineInfo:
    """What the engine says of itself now."""
    answer: Answer = connection.ask(lambda client: client.info())
    version = connection.version.answer
    security = lines(answer, "SecurityOptions")
    return EngineInfo(
        endpoint=connection.endpoint.url,
        name="podman" if is_podman(version) else "docker",
        version=line(answer, "ServerVersion") or line(version, "Version"),
        api_version=connection.version.agreed,
        min_api_version=connection.version.minimum,
        os=line(answer, "OSType") or line(version, "Os"),
        operating_system=line(answer, "OperatingSystem"),
        kernel=line(answer, "KernelVersion"),
        architecture=line(answer, "Architecture"),
        cgroup_version=line(answer, "CgroupVersion"),
        cgroup_driver=line(answer, "CgroupDriver"),
        storage_driver=line(answer, "Driver"),
        image_store="containerd" if _containerd_store(answer) else "graphdriver",
        root_dir=line(answer, "DockerRootDir"),
        memory_bytes=limit(answer, "MemTotal"),
        cpus=limit(answer, "NCPU"),
        runtimes=tuple(sorted(plain_line(str(name)) for name in part(answer, "Runtimes"))),
        default_runtime=line(answer, "DefaultRuntime"),
        cdi_spec_dirs=lines(answer, "CDISpecDirs"),
        cdi_devices=tuple(
            line(device, "ID") for device in objects(answer, "DiscoveredDevices") if device.get("Source") == "cdi"
        ),
        security_options=security,
        rootless=any("name=rootless" in option for option in security),
        live_restore=answer.get("LiveRestoreEnabled") is True,
        warnings=lines(answer, "Warnings"),
        local=is_local(connection.endpoint.url, answer),
    )


def is_podman(version: Answer) -> bool:
    """Whether an answer to ``/version`` is Podman's."""
    return any("podman" in line(component, "Name").lower() for component in objects(version, "Components"))


def _containerd_store(answer: Answer) -> bool:
    status = answer.get("DriverStatus")
    rows = status if isinstance(status, list) else []
    return any(_CONTAINERD_STORE in str(cell) for row in rows if isinstance(row, list) for cell in row)


def is_local(url: str, answer: Answer) -> bool:
    """Whether the engine runs under this machine's kernel, so that pids, paths and GPUs are the same.

    A socket here may lead into a virtual machine (Docker Desktop) or, forwarded by ssh, to another machine; TCP may
    lead back to this one.
    """
    kernel = line(answer, "KernelVersion")
    same_kernel = not kernel or kernel == os.uname().release
    if url.startswith("unix://"):
        return same_kernel and "Docker Desktop" not in line(answer, "OperatingSystem")
    loopback = urlsplit(url).hostname in ("localhost", "127.0.0.1", "::1") and url.startswith("tcp://")
    return loopback and bool(kernel) and same_kernel and line(answer, "Name") == socket.gethostname()
