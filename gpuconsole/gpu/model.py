"""What is known of the GPUs at one moment."""

from __future__ import annotations

from gpuconsole.core.records import dataclass, field
from gpuconsole.core.words import StrEnum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class GpuStatus(StrEnum):
    """Whether a GPU answers."""

    OK = "ok"
    LOST = "lost"
    """NVML says the GPU is lost or needs a restart."""
    ERROR = "error"
    """NVML knows the GPU, but no reading of it could be taken."""


class ProcessKind(StrEnum):
    """What a process uses the GPU for, as NVML lists it."""

    COMPUTE = "compute"
    GRAPHICS = "graphics"
    MPS = "mps"


@dataclass(frozen=True, slots=True)
class GpuProcess:
    """A process NVML lists on a GPU or MIG instance."""

    pid: int
    """As the host's initial pid namespace numbers it."""
    memory_bytes: int | None
    """GPU memory; None where the driver does not tell (WSL, MIG without rights, unified memory)."""
    kind: ProcessKind = ProcessKind.COMPUTE
    mig_uuid: str | None = None
    """The MIG instance it runs on."""


@dataclass(frozen=True, slots=True)
class Mig:
    """One MIG instance of a GPU."""

    uuid: str | None
    name: str | None
    gpu_instance: int | None
    compute_instance: int | None
    memory_total_bytes: int | None
    memory_used_bytes: int | None
    processes: tuple[GpuProcess, ...] | None = ()
    """None when its list could not be read."""
    unknown: Mapping[str, str] = field(default_factory=dict)
    """Field name → why its value is None, one short phrase."""
    memory_free_bytes: int | None = None
    memory_reserved_bytes: int | None = None
    """Held back by driver and firmware."""

    @property
    def unattributed_bytes(self) -> int | None:
        """Used memory that no listed process explains; None where used or a process's share is unknown."""
        return None if self.processes is None else _unexplained(self.memory_used_bytes, self.processes)


@dataclass(frozen=True, slots=True)
class Ecc:
    """ECC state and error counts since the driver was loaded (volatile) or ever (aggregate)."""

    enabled: bool | None = None
    volatile_corrected: int | None = None
    volatile_uncorrected: int | None = None
    aggregate_corrected: int | None = None
    aggregate_uncorrected: int | None = None
    remap_pending: bool | None = None
    """A row remap waits for a GPU reset."""
    remap_failed: bool | None = None
    remapped_rows: int | None = None
    """Rows of memory replaced because of errors that could not be corrected."""
    retired_pages: int | None = None
    """Pages given up because of errors, on cards before Ampere; None on those that replace rows instead."""
    retired_pending: bool | None = None
    """A page to be given up waits for a GPU reset."""


@dataclass(frozen=True, slots=True)
class PcieLink:
    """PCIe generation and width, now and at most. An idle GPU trains its link down: judge it under load only."""

    generation: int | None = None
    width: int | None = None
    max_generation: int | None = None
    max_width: int | None = None


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU at one moment. A reading that could not be taken is None, and ``unknown`` says why."""

    index: int
    """NVML's index: PCI bus order, not always CUDA's order."""
    uuid: str | None
    name: str | None
    status: GpuStatus = GpuStatus.OK
    problem: str | None = None
    """One sentence when the status is not ok."""
    minor: int | None = None
    """N of ``/dev/nvidiaN``."""
    pci_bus_id: str | None = None
    compute_capability: tuple[int, int] | None = None
    memory_total_bytes: int | None = None
    memory_used_bytes: int | None = None
    """Allocated by processes; the driver's own reserve is not in it (NVML's v2 memory call)."""
    memory_free_bytes: int | None = None
    memory_reserved_bytes: int | None = None
    """Held back by driver and firmware."""
    unified_memory: bool = False
    """GPU and CPU share one memory (GB10, Jetson); NVML then gives no figures of its own."""
    utilization_pct: int | None = None
    """Share of the last sample period in which a kernel ran; for a MIG parent always unknown."""
    memory_utilization_pct: int | None = None
    """Share of the last sample period in which memory was read or written."""
    temperature_c: int | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    power_default_w: float | None = None
    """The power limit it is delivered with."""
    sm_clock_mhz: int | None = None
    memory_clock_mhz: int | None = None
    max_sm_clock_mhz: int | None = None
    max_memory_clock_mhz: int | None = None
    throttle_reasons: tuple[str, ...] | None = None
    """Slugs of NVML's clock event reasons that hold the clocks down now (``sw-power-cap``, ``hw-thermal`` …); idle
    is no throttling and is not in it."""
    performance_state: int | None = None
    """0 (most) … 15."""
    fan_pct: int | None = None
    pcie: PcieLink = PcieLink()
    ecc: Ecc = Ecc()
    recovery_action: str | None = None
    """What the driver asks for to make the GPU whole again: ``none``, ``gpu-reset``, ``node-reboot`` …"""
    mig_enabled: bool | None = None
    migs: tuple[Mig, ...] = ()
    compute_mode: str | None = None
    persistence: bool | None = None
    virtualization: str | None = None
    """``none``, ``passthrough``, ``vgpu`` (a share of a GPU, in a virtual machine), ``host-vgpu``, ``host-vsga``."""
    processes: tuple[GpuProcess, ...] | None = ()
    """None when the list itself could not be read."""
    age_s: float = 0.0
    """Seconds since the slow readings in it were taken; 0 when all are of now."""
    unknown: Mapping[str, str] = field(default_factory=dict)
    """Field name → why its value is None, one short phrase; a part of ``pcie`` or ``ecc`` as ``ecc.enabled``."""
    asleep: bool = False
    """It has powered itself down and was not woken for readings that only an awake GPU can give."""
    notes: tuple[str, ...] = ()
    """What a reader of the values should know, a short sentence each: entries left out, an older way of counting."""

    @property
    def label(self) -> str:
        """How a person calls it: ``GPU 0 (NVIDIA H200)``."""
        return f"GPU {self.index} ({self.name})" if self.name else f"GPU {self.index}"

    @property
    def unattributed_bytes(self) -> int | None:
        """Used memory that no listed process explains; None where used or a process's share is unknown."""
        if self.processes is None or any(mig.processes is None for mig in self.migs):
            return None
        inside = [process for mig in self.migs for process in mig.processes or ()]
        return _unexplained(self.memory_used_bytes, (*self.processes, *inside))


def _unexplained(used_bytes: int | None, processes: tuple[GpuProcess, ...]) -> int | None:
    """``used_bytes`` less the shares of ``processes``; None when one of them is unknown."""
    if used_bytes is None:
        return None
    explained = 0
    for process in processes:
        if process.memory_bytes is None:
            return None
        explained += process.memory_bytes
    return max(0, used_bytes - explained)


@dataclass(frozen=True, slots=True)
class GpuSnapshot:
    """Every GPU of a machine at one moment."""

    taken_at: float
    """Seconds since the epoch."""
    gpus: tuple[Gpu, ...] = ()
    driver_version: str | None = None
    cuda_version: str | None = None
    """The highest CUDA version the driver offers, ``13.0``."""
    nvml_version: str | None = None
    problem: str | None = None
    """Why there are no GPUs here, in one sentence; None when all is well."""
    hint: str | None = None
    """What to do about the problem."""
    reason: str | None = None
    """Slug of the problem: ``no-library``, ``driver-not-loaded``, ``version-mismatch``, ``no-gpu`` …"""
    unknown: Mapping[str, str] = field(default_factory=dict)
