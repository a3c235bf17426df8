"""Who holds the GPUs of this machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gpuconsole.gpu.model import Gpu, GpuSnapshot, ProcessKind
from gpuconsole.host.processes import ProcessFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder(ProcessFacts):
    """A process on a GPU: what the host knows of it, and what it has there."""

    gpu_index: int
    gpu_uuid: str | None
    memory_bytes: int | None
    """GPU memory."""
    kind: ProcessKind = ProcessKind.COMPUTE
    mig_uuid: str | None = None
    container_name: str | None = None


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
