"""What is known of a container engine, its containers and its images; and what is asked of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class GpuPath(StrEnum):
    """How GPUs get into containers of an engine."""

    CDI = "cdi"
    """Container Device Interface: the engine reads device nodes and mounts from a specification."""
    HOOK = "hook"
    """NVIDIA's toolkit: a hook beside the engine, asked for with ``--gpus``."""
    RUNTIME = "runtime"
    """NVIDIA's runtime named in the engine's configuration; the only way on Tegra."""
    NONE = "none"


class ContainerState(StrEnum):
    """State of a container in the engine's words."""

    CREATED = "created"
    RUNNING = "running"
    PAUSED = "paused"
    RESTARTING = "restarting"
    REMOVING = "removing"
    EXITED = "exited"
    DEAD = "dead"
    UNKNOWN = "unknown"


class GpuRequestKind(StrEnum):
    """Where a container's GPUs were found."""

    DEVICE_REQUEST = "device-request"
    CDI = "cdi"
    ENVIRONMENT = "environment"
    DEVICE_NODE = "device-node"


@dataclass(frozen=True, slots=True)
class GpuClaim:
    """Which GPUs a container was given, as its configuration says; resolved to UUIDs in ``host``."""

    kind: GpuRequestKind
    everything: bool = False
    """All GPUs of the machine."""
    count: int | None = None
    """So many, chosen by the engine."""
    devices: tuple[str, ...] = ()
    """Indices or UUIDs, or ``/dev/nvidiaN`` for device nodes."""


@dataclass(frozen=True, slots=True)
class Mount:
    """One mount of a container."""

    kind: str
    """``bind``, ``volume`` or ``tmpfs``."""
    source: str
    """Host path, or the volume's name."""
    target: str
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class Port:
    """One published port."""

    container_port: int
    protocol: str = "tcp"
    host_ip: str = ""
    host_port: int | None = None
    """None while the container does not run, or when the port is not published."""


@dataclass(frozen=True, slots=True)
class Container:
    """One container, as the engine describes it now."""

    id: str
    """All 64 hex digits."""
    name: str
    """Without the leading slash; the short id when it has none."""
    image: str
    """The reference it was made from, as written then."""
    image_id: str
    state: ContainerState
    status: str = ""
    """The engine's sentence: ``Up 2 hours``."""
    health: str | None = None
    pid: int | None = None
    """Its main process, in the pid namespace of the engine's host; None unless it runs."""
    created_at: float | None = None
    """Seconds since the epoch, as are the next two."""
    started_at: float | None = None
    finished_at: float | None = None
    exit_code: int | None = None
    oom_killed: bool = False
    error: str | None = None
    """What the engine says went wrong with it."""
    restart_count: int = 0
    command: tuple[str, ...] = ()
    entrypoint: tuple[str, ...] = ()
    environment: tuple[tuple[str, str | None], ...] = ()
    """In order; a value is None for an entry without ``=``."""
    working_dir: str = ""
    user: str = ""
    hostname: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    mounts: tuple[Mount, ...] = ()
    ports: tuple[Port, ...] = ()
    networks: tuple[str, ...] = ()
    gpu_claims: tuple[GpuClaim, ...] = ()
    runtime: str = ""
    shm_bytes: int | None = None
    ipc_mode: str = ""
    memory_limit_bytes: int | None = None
    """None when there is no limit."""
    cpu_limit: float | None = None
    """In cores; None when there is no limit."""
    restart_policy: str = ""
    auto_remove: bool = False
    privileged: bool = False
    tty: bool = False
    open_stdin: bool = False
    init: bool | None = None
    """Its first process is the engine's init; None leaves that to the engine."""
    read_only: bool = False
    ulimits: tuple[str, ...] = ()
    """As ``nofile=1024:2048``."""
    group_add: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    """As ``/dev/fuse:/dev/fuse:rwm``; GPUs given as devices are among them."""
    extra_hosts: tuple[str, ...] = ()
    """As ``name:address``."""
    tmpfs: tuple[str, ...] = ()
    """As ``/scratch:size=1g``."""

    @property
    def short_id(self) -> str:
        """The first twelve digits, as docker prints them."""
        return self.id[:12]

    @property
    def running(self) -> bool:
        """Its processes exist: running or paused."""
        return self.state in (ContainerState.RUNNING, ContainerState.PAUSED)


@dataclass(frozen=True, slots=True)
class Image:
    """One local image."""

    id: str
    """``sha256:…``: of the configuration, or of the manifest with the containerd store."""
    tags: tuple[str, ...] = ()
    digests: tuple[str, ...] = ()
    """``repository@sha256:…``."""
    size_bytes: int | None = None
    created_at: float | None = None
    architecture: str = ""
    os: str = ""
    environment: tuple[tuple[str, str | None], ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    user: str = ""
    working_dir: str = ""
    containers: int | None = None
    """How many containers use it; None when not counted."""

    @property
    def name(self) -> str:
        """The tag people know it by, else ``repository@digest``, else the short id."""
        if self.tags:
            return self.tags[0]
        return self.digests[0] if self.digests else self.short_id

    @property
    def short_id(self) -> str:
        """Twelve digits of the id."""
        return self.id.removeprefix("sha256:")[:12]


@dataclass(frozen=True, slots=True)
class ImageStep:
    """One step of the making of an image; those that changed files are layers."""

    command: str
    """As the engine kept it; empty where it kept none."""
    size_bytes: int | None = None
    """Unpacked; 0 for a step that only says something."""
    created_at: float | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """CPU and memory of a container as ``docker stats`` computes them."""

    cpu_pct: float | None = None
    """100 is one core."""
    memory_bytes: int | None = None
    """Without the page cache that can be reclaimed."""
    memory_limit_bytes: int | None = None
    pids: int | None = None
    network_rx_bytes: int | None = None
    network_tx_bytes: int | None = None
    memory_kept_bytes: int | None = None
    """Without any page cache of files: what the kernel cannot take back, and what kills a container at its limit."""


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """What the engine says of itself."""

    endpoint: str
    """The address it answers at."""
    name: str = ""
    """``docker`` or ``podman``."""
    version: str = ""
    api_version: str = ""
    """The one agreed on."""
    min_api_version: str = ""
    os: str = ""
    operating_system: str = ""
    """``Debian GNU/Linux 12``, ``Docker Desktop`` …"""
    kernel: str = ""
    architecture: str = ""
    cgroup_version: str = ""
    cgroup_driver: str = ""
    storage_driver: str = ""
    image_store: str = ""
    """``containerd`` or ``graphdriver``."""
    root_dir: str = ""
    memory_bytes: int | None = None
    cpus: int | None = None
    runtimes: tuple[str, ...] = ()
    default_runtime: str = ""
    cdi_spec_dirs: tuple[str, ...] = ()
    """Empty when CDI is off or unknown to this version."""
    cdi_devices: tuple[str, ...] = ()
    """Fully qualified names the engine lists itself (Docker 28 and newer)."""
    security_options: tuple[str, ...] = ()
    rootless: bool = False
    live_restore: bool = False
    """Containers go on while it is stopped."""
    warnings: tuple[str, ...] = ()
    local: bool = True
    """It runs on this machine, so its pids, paths and GPUs are ours."""


@dataclass(frozen=True, slots=True)
class EngineEvent:
    """Something happened to a container or image."""

    kind: str
    """``container`` or ``image``."""
    action: str
    """``start``, ``die``, ``destroy``, ``oom``, ``pull`` …"""
    id: str
    name: str = ""
    at: float | None = None
    exit_code: int | None = None
    signal: int | None = None
    """Of ``kill``: what was sent."""


@dataclass(frozen=True, slots=True)
class PullProgress:
    """One step of a pull: of one layer, or of the whole when ``layer`` is empty."""

    status: str
    layer: str = ""
    current_bytes: int | None = None
    total_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class BuildProgress:
    """One thing a build tells."""

    text: str = ""
    """A line of what a step writes, or what the engine says of it."""
    step: int | None = None
    """A step begins: its number from 1; ``text`` is its instruction."""
    steps: int | None = None
    """How many steps there are."""
    container_id: str = ""
    """A container was made for the step, and is removed with it."""
    image_id: str = ""
    """The step left this image, shortened by some engines; the last one is what was built."""
    cached: bool = False
    """The step's image is one that was here already."""
    pull: PullProgress | None = None
    """The engine pulls the base."""
