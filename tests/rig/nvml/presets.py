"""GPUs and boxes to start from.

The H200 is as recorded. The others are put together from what `nvidia-smi -q` shows of such cards in
public: which readings they have and which they lack is the point, the figures are only plausible.
"""

from __future__ import annotations

from dataclasses import replace

from tests.rig.nvml.gpu import GIB, MIB, Gpu, GpuProcess, MigInstance
from tests.rig.nvml.state import NvmlState

BUSY = {
    "gpu_percent": 100,
    "memory_percent": 30,
    "celsius": 56,
    "memory_celsius": 52,
    "margin_celsius": 31,
    "event_reasons": 4,
    "clock_graphics": 1740,
    "clock_sm": 1740,
    "clock_video": 1545,
    "power_mw": 624155,
    "pcie_tx_kib_s": 8453,
    "pcie_rx_kib_s": 19893,
}
"""What the recorded H200 said while it multiplied matrices (4 is the power cap)."""


def h200(index: int = 0, **changes: object) -> Gpu:
    """An H200 at rest."""
    return Gpu(index=index).with_(**changes)


def busy(gpu: Gpu, *processes: GpuProcess) -> Gpu:
    """The GPU at work for these processes; a divided one works in its first instance."""
    scaled = dict(BUSY)
    if gpu.power_limit_mw is not None:
        scaled["power_mw"] = gpu.power_limit_mw * 9 // 10
    elif gpu.power_mw is not None:
        scaled["power_mw"] = gpu.power_mw * 10
    if gpu.max_clock_sm is not None:
        scaled["clock_graphics"] = scaled["clock_sm"] = gpu.max_clock_sm * 9 // 10
    lacking = {name for name in scaled if getattr(gpu, name) is None}
    readings: dict[str, object] = {name: value for name, value in scaled.items() if name not in lacking}
    if not gpu.mig_instances:
        return gpu.with_(**readings, pstate=0, processes=processes)
    first = replace(gpu.mig_instances[0], processes=processes)
    return gpu.with_(**readings, pstate=0, mig_instances=(first, *gpu.mig_instances[1:]))


def rtx4090(index: int = 0, **changes: object) -> Gpu:
    """A GeForce RTX 4090 with a screen on it: fans, graphics processes, no ECC in use, no MIG, no board numbers."""
    card = Gpu(
        index=index, name="NVIDIA GeForce RTX 4090", serial=None, part_number=None, vbios="95.02.3C.00.8C",
        inforom_image="G002.0000.00.03", inforom_oem="2.0", inforom_ecc="6.16", brand=5, architecture=8,
        compute_capability="8.9", bus_id=f"00000000:{index + 1:02X}:00.0", cores=16384, bus_width=384,
        pci_id=0x268410DE, pci_subsystem=0x889D1043, pci_subclass=0, virtualization=0, gpm=0, c2c=None,
        total_bytes=24564 * MIB, reserved_bytes=471 * MIB, bar1_total_bytes=256 * MIB,
        memory_celsius=None, margin_celsius=49, shutdown_celsius=100, slowdown_celsius=97,
        memory_max_celsius=None, gpu_max_celsius=90, fan_percent=(0, 0), celsius=36,
        power_mw=21500, power_limit_mw=450000, power_default_mw=450000, power_enforced_mw=450000,
        power_min_mw=150000, power_max_mw=600000, pstate=8,
        clock_graphics=210, clock_sm=210, clock_mem=405, clock_video=1185,
        max_clock_graphics=3120, max_clock_sm=3120, max_clock_mem=10501, max_clock_video=2415,
        app_clock_graphics=None, app_clock_sm=None, app_clock_mem=None, boost_clock_graphics=None,
        boost_clock_sm=None, memory_clocks=(10501, 10251, 5001, 810, 405), graphics_clocks=(3120, 210, 15),
        pcie_gen=1, pcie_max_gen=4, pcie_gpu_max_gen=4, persistence=0, display_active=1,
        ecc=0, ecc_pending=0, ecc_default=0, remapped_rows=(), remap_histogram=(), mig=None, mig_pending=None,
    )  # fmt: skip
    return card.with_(**changes)


def a100_mig(index: int = 0, **changes: object) -> Gpu:
    """An A100 40GB divided into 3g.20gb, 2g.10gb and two 1g.5gb: no utilization, memory by instance."""

    def instance(number: int, profile: str, gpu_instance: int, memory: int, slices: int) -> MigInstance:
        return MigInstance(
            uuid=f"MIG-{number:08x}-0000-5000-8000-{index:012x}", profile=profile, gpu_instance=gpu_instance,
            total_bytes=memory * MIB, slices=slices, multiprocessors=14 * slices,
        )  # fmt: skip

    card = Gpu(
        index=index, name="NVIDIA A100-SXM4-40GB", architecture=7, compute_capability="8.0", cores=6912,
        bus_width=5120, bus_id=f"00000000:{7 + 8 * index:02X}:00.0", pci_id=0x20B010DE, pci_subsystem=0x134F10DE,
        vbios="92.00.45.00.03", inforom_image="G506.0200.00.04", inforom_oem="2.0", inforom_ecc="6.16",
        virtualization=0, gpm=0, c2c=None,
        total_bytes=40960 * MIB, reserved_bytes=575 * MIB, bar1_total_bytes=64 * GIB,
        gpu_percent=None, memory_percent=None, encoder_percent=None, decoder_percent=None, jpg_percent=None,
        ofa_percent=None, margin_celsius=None, shutdown_celsius=92, slowdown_celsius=89, gpu_max_celsius=85,
        power_mw=52000, power_limit_mw=400000, power_default_mw=400000, power_enforced_mw=400000,
        power_min_mw=100000, power_max_mw=400000,
        clock_graphics=210, clock_sm=210, clock_mem=1215, clock_video=585,
        max_clock_graphics=1410, max_clock_sm=1410, max_clock_mem=1215, max_clock_video=1290,
        app_clock_graphics=1095, app_clock_sm=1095, app_clock_mem=1215, boost_clock_graphics=1410,
        boost_clock_sm=1410, memory_clocks=(1215,), graphics_clocks=(1410, 210, 15),
        pcie_gen=4, pcie_max_gen=4, pcie_gpu_max_gen=4, nvlinks=12, nvlink_version=4,
        mig=1, mig_pending=1,
        mig_instances=(
            instance(1, "3g.20gb", 2, 19968, 3), instance(2, "2g.10gb", 3, 9856, 2),
            instance(3, "1g.5gb", 9, 4864, 1), instance(4, "1g.5gb", 10, 4864, 1),
        ),
    )  # fmt: skip
    return card.with_(**changes)


def gb10(**changes: object) -> Gpu:
    """The GPU of a DGX Spark: memory shared with the processor, hence no memory figures; no power limit, no fan."""
    chip = Gpu(
        name="NVIDIA GB10", serial=None, part_number=None, vbios=None, inforom_image=None, inforom_oem=None,
        inforom_ecc=None, architecture=10, compute_capability="12.1", bus_id="0000000F:01:00.0", cores=6144,
        bus_width=None, pci_id=0x2E1210DE, pci_subsystem=0x21EC10DE, virtualization=0, c2c=1, addressing_mode=1,
        gpm=0, unified=True, bar1_total_bytes=None, unprotected_kib=0, memory_celsius=None, margin_celsius=None,
        shutdown_celsius=None, slowdown_celsius=None, memory_max_celsius=None, gpu_max_celsius=None, celsius=37,
        power_mw=4210, power_management=None, power_limit_mw=None, power_default_mw=None, power_enforced_mw=None,
        power_min_mw=None, power_max_mw=None, energy_mj=None, pstate=8, clock_graphics=208, clock_sm=208,
        clock_mem=None, clock_video=598, max_clock_graphics=3003, max_clock_sm=3003, max_clock_mem=None,
        max_clock_video=3003, app_clock_graphics=None, app_clock_sm=None, app_clock_mem=None,
        boost_clock_graphics=None, boost_clock_sm=None, memory_clocks=(), graphics_clocks=(3003, 208, 13),
        pcie_gen=1, pcie_width=1, pcie_max_gen=1, pcie_max_width=1, pcie_gpu_max_gen=5,
        ecc=None, ecc_pending=None, ecc_default=None, ecc_errors=(), remapped_rows=(), remap_histogram=(),
        mig=None, mig_pending=None,
    )  # fmt: skip
    return chip.with_(**changes)


PRESETS = {"h200": h200, "rtx4090": rtx4090, "a100-mig": a100_mig}
"""GPUs that come in any number, by the name the command knows; a GB10 is always alone."""


def box(count: int, preset: str = "h200") -> NvmlState:
    """A box with so many GPUs of one kind, 0…16."""
    if preset == "gb10":
        return NvmlState(gpus=(gb10(),))
    return NvmlState(gpus=tuple(PRESETS[preset](index) for index in range(count)))
