"""Who holds the GPUs of this machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gpuconsole.gpu.model import Gpu, GpuSnapshot, ProcessKind


@dataclass(frozen=True, slots=True)
class Holder:
    """A process on a GPU, with what the host knows of it. Unknown is None, and ``unknown`` says why."""

    pid: int
    gpu_index: int
    gpu_uuid: str | None
    memory_bytes: int | None
    """GPU memory."""
    kind: ProcessKind = ProcessKind.COMPUTE
    mig_uuid: str | None = None
    user: str | None = None
    uid: int | None = None
    command: str | None = None
    """Its command line, harmless."""
    host_memory_bytes: int | None = None
    """Resident set."""
    cpu_pct: float | None = None
    """100 is one core, over the time since the last look; None at the first."""
    started_at: float | None = None
    """Seconds since the epoch; with the pid it names a process for good."""
    container_id: str | None = None
    """All 64 hex digits, when it runs in a container."""
    container_name: str | None = None
    unknown: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GpuView:
    """One GPU and who holds it."""

    gpu: Gpu
    holders: tuple[Holder, ...] = ()
    unattributed_bytes: int | None = None
    """Used memory that no process explains."""
    unknown: Mapping[str, str] = field(default_factory=dict)
    """Why ``unattributed_bytes`` is None."""


@dataclass(frozen=True, slots=True)
class HostView:
    """The GPUs of this machine and their holders at one moment."""

    snapshot: GpuSnapshot
    gpus: tuple[GpuView, ...] = ()
    notes: tuple[str, ...] = ()
    """What a reader should know of the whole, a sentence each: processes cannot be seen from here."""
