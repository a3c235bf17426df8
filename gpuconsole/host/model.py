"""Who holds the GPUs of this machine."""

from __future__ import annotations

from gpuconsole.core.records import dataclass, field, replace
from gpuconsole.gpu.model import Gpu, GpuSnapshot, ProcessKind
from gpuconsole.host.account import Account
from gpuconsole.host.processes import ProcessFacts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpuconsole.gpu.forecast_model import Assessment, MemorySample


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
    outlook: Assessment | None = field(default=None, metadata={"derived": True})
    """Where its GPU memory is going; None while nobody watches it over time."""

    def with_cpu(self, cpu_pct: float) -> Holder:
        """It with its CPU use, told by somebody else than this look."""
        unknown = {field: reason for field, reason in self.unknown.items() if field != "cpu_pct"}
        return replace(self, cpu_pct=cpu_pct, unknown=unknown)


@dataclass(frozen=True, slots=True)
class GpuView:
    """One GPU and who holds it."""

    gpu: Gpu
    holders: tuple[Holder, ...] = ()
    unattributed_bytes: int | None = None
    """Used memory that no process explains."""
    unknown: Mapping[str, str] = field(default_factory=dict)
    """Why ``unattributed_bytes`` is None."""
    account: Account | None = None
    """Where the bytes of its memory are; None in a recording that is older than this."""
    instances: tuple[Account, ...] = ()
    """The same of each of its MIG instances, in their order."""
    given_to: tuple[str, ...] = ()
    """Names of running containers that were given it, or an instance of it; empty also where nobody asked."""
    outlook: Assessment | None = field(default=None, metadata={"derived": True})
    """Where its memory is going; None while nobody watches it over time."""


@dataclass(frozen=True, slots=True)
class HostView:
    """The GPUs of this machine and their holders at one moment."""

    snapshot: GpuSnapshot
    gpus: tuple[GpuView, ...] = ()
    notes: tuple[str, ...] = ()
    """What a reader should know of the whole, a sentence each: processes cannot be seen from here."""
    memory: MemorySample | None = field(default=None, metadata={"derived": True})
    """What the forecast read at this look: GPUs, containers, the host; None while nobody watches them over time."""
    outlooks: tuple[Assessment, ...] = field(default=(), metadata={"derived": True})
    """Where every memory is going: of GPUs, processes and containers, of the host and of each ``/dev/shm``."""

    def outlooks_of(self, container_id: str) -> tuple[Assessment, ...]:
        """What is ahead of a container: of its RAM, its ``/dev/shm``, and the GPU memory of its processes."""
        inside = (holder for view in self.gpus for holder in view.holders if holder.container_id == container_id)
        own = (said for said in self.outlooks if said.id == container_id)
        return (*own, *(holder.outlook for holder in inside if holder.outlook is not None))
