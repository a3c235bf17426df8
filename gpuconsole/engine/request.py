"""What the engine is told when a container is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gpuconsole.engine.model import GpuPath, Mount


@dataclass(frozen=True, slots=True)
class Ulimit:
    """One resource limit; -1 is unlimited."""

    name: str
    soft: int
    hard: int


@dataclass(frozen=True, slots=True)
class PortRequest:
    """Publish ``container_port`` on ``host_ip:host_port``; a host port of 0 lets the engine choose."""

    container_port: int
    host_port: int = 0
    host_ip: str = "127.0.0.1"
    protocol: str = "tcp"


@dataclass(frozen=True, slots=True)
class Tmpfs:
    """A file system in memory, gone with the container's stop."""

    target: str
    options: tuple[str, ...] = ()
    """As mount has them: ``size=1g``, ``exec``, ``mode=1777``."""


@dataclass(frozen=True, slots=True)
class DeviceRequest:
    """A device node of the engine's machine."""

    host_path: str
    container_path: str
    permissions: str = "rwm"


@dataclass(frozen=True, slots=True)
class CreateRequest:
    """Everything the engine is told when a container is made."""

    image: str
    name: str | None = None
    command: tuple[str, ...] | None = None
    """None leaves the image's own."""
    entrypoint: tuple[str, ...] | None = None
    gpu_path: GpuPath = GpuPath.NONE
    gpu_uuids: tuple[str, ...] = ()
    """The GPUs to give it; CDI device names are built from these by ``cdi_devices``."""
    cdi_devices: tuple[str, ...] = ()
    """Fully qualified CDI names, on the CDI path."""
    environment: tuple[tuple[str, str], ...] = ()
    mounts: tuple[Mount, ...] = ()
    ports: tuple[PortRequest, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    volume_labels: Mapping[str, str] = field(default_factory=dict)
    """Of the named volumes that do not exist yet and are made with the container; Podman leaves them out."""
    working_dir: str | None = None
    user: str | None = None
    hostname: str | None = None
    shm_bytes: int | None = None
    ipc_mode: str | None = None
    network: str | None = None
    memory_bytes: int | None = None
    cpus: float | None = None
    ulimits: tuple[Ulimit, ...] = ()
    restart_policy: str | None = None
    auto_remove: bool = False
    tmpfs: tuple[Tmpfs, ...] = ()
    devices: tuple[DeviceRequest, ...] = ()
    group_add: tuple[str, ...] = ()
    """More groups of its main process: numbers, or names of the image."""
    extra_hosts: tuple[tuple[str, str], ...] = ()
    """Host name → address, or ``host-gateway``."""
    read_only: bool = False
    """Its own file system cannot be written."""
    privileged: bool = False
    """It has every device and every right of the engine's machine."""
    init: bool = False
    tty: bool = False
    open_stdin: bool = False
