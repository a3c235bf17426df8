"""A simulated GPU: its readings, its MIG instances, its processes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Self

from tests.rig.nvml.lines import Codes, Delays, coded, pairs, values_of

MIB = 2**20
GIB = 2**30


def stand_in_uuid(index: int) -> str:
    """The UUID a simulated GPU has unless it is given one."""
    return f"GPU-a{index + 1:07x}-0000-4000-8000-00000000000a"


@dataclass(frozen=True, slots=True)
class GpuProcess:
    """A process on a GPU, with the pid of a real process if the test needs one."""

    pid: int
    used_bytes: int | None = 0
    """None: the driver does not know (all ones in NVML)."""
    kind: str = "C"
    """`C` compute, `G` graphics, `M` MPS, or several of them."""
    sm_percent: int = 0
    memory_percent: int = 0
    encoder_percent: int = 0
    decoder_percent: int = 0

    def line(self, instance: MigInstance | None) -> str:
        """The process as the state file has it."""
        used = "-" if self.used_bytes is None else str(self.used_bytes)
        place = f"{instance.gpu_instance} {instance.compute_instance}" if instance else "- -"
        shares = f"{self.sm_percent} {self.memory_percent} {self.encoder_percent} {self.decoder_percent}"
        return f"process = {self.pid} {self.kind} {used} {place} {shares}"


def held_by(processes: Iterable[GpuProcess]) -> int:
    """The memory these processes are known to hold."""
    return sum(process.used_bytes or 0 for process in processes)


@dataclass(frozen=True, slots=True)
class MigInstance:
    """A MIG device: one compute instance of a GPU instance, with memory and processes of its own."""

    uuid: str
    profile: str
    """Such as `1g.5gb`."""
    gpu_instance: int
    compute_instance: int = 0
    total_bytes: int = 4864 * MIB
    reserved_bytes: int = 0
    used_bytes: int | None = None
    """None: what its processes hold."""
    bar1_total_bytes: int = 8191 * MIB
    slices: int = 1
    multiprocessors: int = 14
    processes: tuple[GpuProcess, ...] = ()
    errors: Codes = field(default_factory=dict)

    def lines(self) -> list[str]:
        """The section of the state file."""
        used = held_by(self.processes) if self.used_bytes is None else self.used_bytes
        values = {**values_of(self), "used_bytes": used}
        return ["[mig]", *pairs(values), *coded(self.errors, {}), *(p.line(self) for p in self.processes)]


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU with all it says. The defaults are the recorded H200 at rest; None is a reading it does not support.

    Milliwatts, megahertz, bytes and degrees Celsius as NVML has them; the field names are the keys of the
    state file.
    """

    index: int = 0
    """Where it stands; gives UUID, minor number and bus id unless they are set."""
    name: str = "NVIDIA H200"
    uuid: str = ""
    minor: int | None = -1
    """-1: the index."""
    bus_id: str = ""
    serial: str | None = "1111111111111"
    part_number: str | None = "111-1G111-1111-111"
    vbios: str | None = "96.00.A5.00.1A"
    inforom_image: str | None = "G520.0282.02.02"
    inforom_oem: str | None = "2.1"
    inforom_ecc: str | None = "7.16"
    inforom_power: str | None = None
    gsp_version: str | None = "580.159.04"
    gsp_mode: int | None = 1
    board_id: int = 256
    multi_gpu_board: int = 0
    brand: int = 14
    architecture: int = 9
    compute_capability: str = "9.0"
    bus_type: int = 2
    cores: int | None = 16896
    bus_width: int | None = 6016
    irq: int | None = 41
    power_source: int | None = 0
    module_id: int | None = 1
    numa_node: int | None = None
    pci_id: int = 0x233510DE
    pci_subsystem: int = 0x18BF10DE
    pci_subclass: int = 2
    c2c: int | None = 0
    virtualization: int = 1
    addressing_mode: int = 0
    gpm: int = 1

    unified: bool = False
    """Memory shared with the processor: NVML has no figures for it, as on a GB10."""
    total_bytes: int = 150754820096
    reserved_bytes: int = 644939776
    used_bytes: int | None = None
    """Without the reserve; None: what the processes hold."""
    bar1_total_bytes: int | None = 256 * GIB
    bar1_used_bytes: int = 1703936
    unprotected_kib: int = 146591680

    gpu_percent: int | None = 0
    memory_percent: int | None = 0
    encoder_percent: int | None = 0
    decoder_percent: int | None = 0
    jpg_percent: int | None = 0
    ofa_percent: int | None = 0
    celsius: int | None = 38
    memory_celsius: int | None = 42
    margin_celsius: int | None = 49
    shutdown_celsius: int | None = 95
    slowdown_celsius: int | None = 89
    memory_max_celsius: int | None = 95
    gpu_max_celsius: int | None = 87
    fan_percent: tuple[int, ...] = ()
    """One figure a fan; empty for a card that is cooled from outside."""
    power_mw: int | None = 78915
    power_management: int | None = 1
    power_limit_mw: int | None = 700000
    power_default_mw: int | None = 700000
    power_enforced_mw: int | None = 700000
    power_min_mw: int | None = 200000
    power_max_mw: int | None = 700000
    energy_mj: int | None = 5126671
    pstate: int | None = 0
    event_reasons: int | None = 1
    """Bits, 1 is idle."""
    supported_event_reasons: int | None = 511
    violations_ns: tuple[int, ...] = (0, 0, 0, 0, 53686424032, 0, 44314411232, 44335869728)
    """Power, thermal, sync boost, board limit, low utilization, reliability, app clocks, base clocks."""
    adaptive_clocks: int | None = 1
    clock_graphics: int | None = 345
    clock_sm: int | None = 345
    clock_mem: int | None = 3201
    clock_video: int | None = 765
    max_clock_graphics: int | None = 1980
    max_clock_sm: int | None = 1980
    max_clock_mem: int | None = 3201
    max_clock_video: int | None = 1545
    app_clock_graphics: int | None = 1980
    app_clock_sm: int | None = 1980
    app_clock_mem: int | None = 3201
    boost_clock_graphics: int | None = 1980
    boost_clock_sm: int | None = 1980
    memory_clocks: tuple[int, ...] = (3201, 2201)
    graphics_clocks: tuple[int, ...] = (1980, 345, 15)
    """First, last, step."""
    pcie_gen: int | None = 5
    pcie_width: int | None = 16
    pcie_max_gen: int | None = 5
    pcie_max_width: int | None = 16
    pcie_gpu_max_gen: int | None = 5
    pcie_replays: int | None = 0
    pcie_tx_kib_s: int | None = 742
    pcie_rx_kib_s: int | None = 583
    nvlinks: int | None = None
    nvlink_version: int | None = None
    fabric_state: int = 0

    persistence: int | None = 1
    display_mode: int | None = 1
    display_active: int | None = 0
    compute_mode: int | None = 0
    accounting: int | None = 0
    accounting_size: int | None = 4000
    auto_boost: int | None = None
    auto_boost_restricted: int | None = 0
    event_types: int = 65439
    ecc: int | None = 1
    ecc_pending: int | None = 1
    ecc_default: int | None = 1
    ecc_errors: tuple[int, ...] = (0, 0, 0, 0)
    """Corrected volatile, corrected aggregate, uncorrected volatile, uncorrected aggregate."""
    remapped_rows: tuple[int, ...] = (0, 0, 0, 0)
    """Correctable, uncorrectable, pending, failure."""
    remap_histogram: tuple[int, ...] = (3072, 0, 0, 0, 0)
    retired_pages: tuple[int, ...] = ()
    """By single-bit and by double-bit errors, on cards before Ampere."""
    retired_pending: int | None = None
    recovery_action: int | None = 0

    mig: int | None = 0
    """MIG mode; None for a card that cannot be divided."""
    mig_pending: int | None = 0
    max_mig: int = 7
    mig_instances: tuple[MigInstance, ...] = ()
    processes: tuple[GpuProcess, ...] = ()

    lost: bool = False
    """Fallen off the bus: every call gives 15, the one for the handle too."""
    errors: Codes = field(default_factory=dict)
    delays_ms: Delays = field(default_factory=dict)

    def with_(self, **changes: object) -> Self:
        """The same GPU with some values changed."""
        return replace(self, **changes)  # type: ignore[arg-type]

    def memory(self) -> dict[str, int]:
        """Total, reserved and used as the state file has them; nothing for unified memory."""
        if self.unified:
            return {}
        held = held_by(self.processes) + sum(held_by(instance.processes) for instance in self.mig_instances)
        used = held if self.used_bytes is None else self.used_bytes
        return {"total_bytes": self.total_bytes, "reserved_bytes": self.reserved_bytes, "used_bytes": used}

    def lines(self) -> list[str]:
        """The section of the state file, with the sections of the MIG instances."""
        own = {
            "uuid": self.uuid or stand_in_uuid(self.index),
            "minor": self.index if self.minor == -1 else self.minor,
            "bus_id": self.bus_id or f"00000000:00:{6 + self.index:02X}.0",
        }
        values = {key: value for key, value in values_of(self).items() if not key.endswith("_bytes")}
        lost = {"lost": 1} if self.lost else {}
        bar1 = {"bar1_total_bytes": self.bar1_total_bytes, "bar1_used_bytes": self.bar1_used_bytes}
        known = pairs({**values, **own, **self.memory(), **bar1, **lost})
        processes = [process.line(None) for process in self.processes]
        divided = [line for instance in self.mig_instances for line in instance.lines()]
        return ["[gpu]", *known, *coded(self.errors, self.delays_ms), *processes, *divided]
