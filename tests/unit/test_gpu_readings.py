"""What the source makes of a driver's answers: values, or the reason why there is none. Run on the simulated driver."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from gpuconsole.gpu.model import Gpu, GpuSnapshot, GpuStatus
from gpuconsole.gpu.nvml.source import NvmlSource
from tests.rig.nvml import GIB, MIB, NvmlBox, NvmlState, box, gb10, h200, rtx4090
from tests.rig.nvml.fixtures import load

MEMORY = ("memory_used_bytes", "memory_free_bytes", "memory_total_bytes", "memory_reserved_bytes")


EVERY_REASON = (
    "application-clocks", "sw-power-cap", "hw-slowdown", "sync-boost", "sw-thermal", "hw-thermal", "hw-power-brake",
    "display-clock", "board-limit", "reliability",
)  # fmt: skip


def look(*, details: bool = False) -> GpuSnapshot:
    source = NvmlSource()
    try:
        return source.snapshot(details=details)
    finally:
        source.close()


def only_gpu(nvml: NvmlBox, **changes: object) -> Gpu:
    nvml.write(NvmlState(gpus=(h200().with_(**changes),)))
    (gpu,) = look().gpus
    return gpu


def test_a_recorded_h200_reads_as_it_was_recorded(nvml: NvmlBox) -> None:
    snapshot = look()
    assert snapshot.problem is None
    assert (snapshot.driver_version, snapshot.cuda_version) == ("580.159.04", "13.0")
    assert snapshot.nvml_version == "13.580.159.04"
    assert [gpu.index for gpu in snapshot.gpus] == [0, 1]
    gpu = snapshot.gpus[0]
    assert gpu.status is GpuStatus.OK
    assert (gpu.name, gpu.minor, gpu.compute_capability) == ("NVIDIA H200", 0, (9, 0))
    assert gpu.pci_bus_id == "00000000:00:06.0"
    # By the first way of counting an idle H200 seems to use 615 MiB; that is the driver's reserve.
    assert gpu.memory_used_bytes == 0
    assert gpu.memory_reserved_bytes == 644939776
    assert gpu.memory_total_bytes == 150754820096
    assert (gpu.utilization_pct, gpu.memory_utilization_pct) == (0, 0)
    assert (gpu.temperature_c, gpu.power_w, gpu.power_limit_w) == (38, 78.915, 700.0)
    assert (gpu.sm_clock_mhz, gpu.memory_clock_mhz) == (345, 3201)
    assert (gpu.max_sm_clock_mhz, gpu.max_memory_clock_mhz) == (1980, 3201)
    assert gpu.throttle_reasons == ()
    assert gpu.performance_state == 0
    assert (gpu.pcie.generation, gpu.pcie.width, gpu.pcie.max_generation, gpu.pcie.max_width) == (5, 16, 5, 16)
    assert gpu.ecc.enabled is True
    assert gpu.ecc.aggregate_uncorrected == 0
    assert (gpu.ecc.remap_pending, gpu.ecc.remap_failed) == (False, False)
    assert (gpu.mig_enabled, gpu.compute_mode, gpu.persistence) == (False, "default", True)
    assert gpu.processes == ()
    assert gpu.unattributed_bytes == 0
    assert gpu.unknown == {"fan_pct": "not supported by this GPU"}


def test_a_workstation_card_without_ecc_and_mig(nvml: NvmlBox) -> None:
    nvml.write(NvmlState(gpus=(rtx4090(fan_percent=(31, 40)),)))
    (gpu,) = look().gpus
    assert gpu.name == "NVIDIA GeForce RTX 4090"
    assert gpu.fan_pct == 31
    assert gpu.ecc.enabled is False
    assert gpu.ecc.volatile_corrected is None
    assert gpu.unknown["ecc.volatile_corrected"] == "ECC is off"
    assert gpu.unknown["ecc.remap_pending"] == "not supported by this GPU"
    assert gpu.mig_enabled is False


def test_readings_a_board_does_not_have_are_unknown_and_never_zero(nvml: NvmlBox) -> None:
    """Memory, power and fan are not supported on small and virtual boards: no value, and above all no 0."""
    gpu = only_gpu(
        nvml,
        errors={
            "nvmlDeviceGetMemoryInfo": 3,
            "nvmlDeviceGetMemoryInfo_v2": 3,
            "nvmlDeviceGetPowerUsage": 3,
            "nvmlDeviceGetEnforcedPowerLimit": 3,
            "nvmlDeviceGetPowerManagementLimit": 3,
        },
    )
    for field in (*MEMORY, "power_w", "power_limit_w", "fan_pct"):
        assert getattr(gpu, field) is None
        assert gpu.unknown[field] == "not supported by this GPU"
    assert gpu.status is GpuStatus.OK
    assert gpu.unified_memory is False
    assert gpu.unattributed_bytes is None
    assert gpu.temperature_c == 38


def test_a_board_that_shares_memory_with_the_cpu_says_so(nvml: NvmlBox) -> None:
    """On a GB10 the memory call is not supported: unified memory is labelled, no figure is invented."""
    nvml.write(NvmlState(gpus=(gb10(),)))
    (gpu,) = look().gpus
    assert gpu.unified_memory is True
    assert gpu.status is GpuStatus.OK
    for field in MEMORY:
        assert getattr(gpu, field) is None
        assert "share" in gpu.unknown[field]
    assert gpu.memory_clock_mhz is None
    assert gpu.power_w == 4.21


@pytest.mark.parametrize("name", ["Orin (nvgpu)", "NVIDIA Thor", "NVIDIA Jetson AGX", "NVIDIA GB10"])
def test_boards_with_shared_memory_are_known_by_name(nvml: NvmlBox, name: str) -> None:
    assert only_gpu(nvml, name=name, unified=True).unified_memory is True


def test_impossible_figures_are_not_believed(nvml: NvmlBox) -> None:
    """Utilization of four billion percent, more memory used than there is, 4 GW, 65535 degrees."""
    gpu = only_gpu(
        nvml, gpu_percent=4294967295, memory_percent=101, used_bytes=999 * GIB, power_mw=4294967295, celsius=65535
    )
    assert gpu.utilization_pct is None
    assert gpu.memory_utilization_pct is None
    assert gpu.memory_used_bytes is None
    assert gpu.power_w is None
    assert gpu.temperature_c is None
    assert gpu.unknown["utilization_pct"] == "the driver gave an impossible value"
    assert gpu.unknown["memory_used_bytes"] == "the driver gave more than the GPU has"
    assert gpu.memory_total_bytes == 150754820096


def test_an_old_driver_without_the_second_memory_call(nvml: NvmlBox, monkeypatch: pytest.MonkeyPatch) -> None:
    load(monkeypatch, omit=("nvmlDeviceGetMemoryInfo_v2",))
    (gpu, _) = look().gpus
    assert gpu.memory_used_bytes == 644939776
    assert gpu.memory_reserved_bytes is None
    assert gpu.unknown["memory_reserved_bytes"] == "this driver is too old for it"
    assert any("includes the driver's own reserve" in note for note in gpu.notes)


def test_an_old_driver_under_older_names(nvml: NvmlBox, monkeypatch: pytest.MonkeyPatch) -> None:
    load(
        monkeypatch,
        omit=(
            "nvmlDeviceGetCurrentClocksEventReasons",
            "nvmlSystemGetCudaDriverVersion_v2",
            "nvmlDeviceGetEnforcedPowerLimit",
            "nvmlDeviceGetRemappedRows",
            "nvmlDeviceGetMigMode",
        ),
    )
    nvml.write(NvmlState(gpus=(h200(event_reasons=4 | 64),)))
    snapshot = look()
    (gpu,) = snapshot.gpus
    assert snapshot.cuda_version == "13.0"
    assert gpu.throttle_reasons == ("sw-power-cap", "hw-thermal")
    assert gpu.power_limit_w == 700.0
    assert gpu.ecc.remap_pending is None
    assert gpu.unknown["ecc.remap_pending"] == "this driver is too old for it"
    assert gpu.mig_enabled is None


@pytest.mark.parametrize(
    ("mask", "slugs"),
    [
        (0, ()),
        (1, ()),
        (1 | 2, ("application-clocks",)),
        (0x4 | 0x20, ("sw-power-cap", "sw-thermal")),
        (0x7FE, EVERY_REASON),
        (1 << 40, ("other",)),
    ],
)  # fmt: skip
def test_what_holds_the_clocks_down(nvml: NvmlBox, mask: int, slugs: tuple[str, ...]) -> None:
    assert only_gpu(nvml, event_reasons=mask).throttle_reasons == slugs


def test_health_of_the_memory(nvml: NvmlBox) -> None:
    gpu = only_gpu(nvml, ecc_errors=(5, 7, 1, 2), remapped_rows=(0, 1, 1, 1), compute_mode=3, persistence=0, pstate=32)
    ecc = gpu.ecc
    assert (ecc.volatile_corrected, ecc.aggregate_corrected) == (5, 7)
    assert (ecc.volatile_uncorrected, ecc.aggregate_uncorrected) == (1, 2)
    assert (ecc.remap_pending, ecc.remap_failed) == (True, True)
    assert (ecc.remapped_rows, ecc.retired_pages, ecc.retired_pending) == (1, None, None)
    assert (gpu.compute_mode, gpu.persistence) == ("exclusive-process", False)
    assert gpu.performance_state is None
    assert "performance_state" in gpu.unknown


def test_a_card_that_gives_up_pages_instead_of_replacing_rows(nvml: NvmlBox) -> None:
    gpu = only_gpu(nvml, remapped_rows=(), retired_pages=(2, 3), retired_pending=1)
    assert (gpu.ecc.remapped_rows, gpu.ecc.retired_pages, gpu.ecc.retired_pending) == (None, 5, True)
    gpu = only_gpu(nvml, remapped_rows=(), retired_pages=(), retired_pending=None)
    assert gpu.ecc.retired_pages is None
    assert gpu.unknown["ecc.retired_pages"] == gpu.unknown["ecc.retired_pending"] == "not supported by this GPU"


@pytest.mark.parametrize(
    ("number", "word"),
    [(0, "none"), (1, "gpu-reset"), (2, "node-reboot"), (4, "drain-and-reset"), (99, "action 99")],
)
def test_what_the_driver_asks_for(nvml: NvmlBox, number: int, word: str) -> None:
    assert only_gpu(nvml, recovery_action=number).recovery_action == word


def test_a_driver_that_cannot_ask_for_anything(nvml: NvmlBox) -> None:
    gpu = only_gpu(nvml, recovery_action=None, power_default_mw=None)
    assert gpu.recovery_action is None
    assert gpu.unknown["recovery_action"]
    assert gpu.unknown["power_default_w"] == "not supported by this GPU"


def test_a_name_that_a_terminal_would_obey_is_made_harmless(nvml: NvmlBox) -> None:
    gpu = only_gpu(nvml, name="NVIDIA\x1b[2J \x1b]0;pwned\x07H200\x9b31m[red]")
    assert gpu.name == "NVIDIA H200[red]"


def test_a_name_that_is_no_utf8_is_shown_as_well_as_it_can_be(nvml: NvmlBox) -> None:
    assert only_gpu(nvml, name="NVIDIA H\udcff200").name == "NVIDIA H\ufffd200"


def test_slow_readings_are_kept_and_say_how_old_they_are(nvml: NvmlBox) -> None:
    source = NvmlSource(refresh_s=3600)
    first = source.snapshot().gpus[0]
    nvml.change_gpu(0, power_enforced_mw=500_000, celsius=61)
    second = source.snapshot().gpus[0]
    third = source.snapshot(details=True).gpus[0]
    source.close()
    assert (first.power_limit_w, second.power_limit_w, third.power_limit_w) == (700.0, 700.0, 500.0)
    assert (first.temperature_c, second.temperature_c) == (38, 61)
    assert second.age_s > third.age_s


def test_kept_readings_are_taken_anew_when_they_are_old(nvml: NvmlBox) -> None:
    source = NvmlSource(refresh_s=0)
    source.snapshot()
    nvml.change_gpu(0, power_enforced_mw=500_000)
    assert source.snapshot().gpus[0].power_limit_w == 500.0
    source.close()


def test_a_sleeping_gpu_is_not_woken(nvml: NvmlBox, tmp_path: Path) -> None:
    """An idle GPU is allowed to sleep: while the kernel says it is suspended, nothing is asked that would wake it."""
    status = tmp_path / "bus/pci/devices/0000:00:06.0/power/runtime_status"
    status.parent.mkdir(parents=True)
    status.write_text("active\n")
    source = NvmlSource(sysfs=tmp_path)
    awake = source.snapshot().gpus[0]
    status.write_text("suspended\n")
    nvml.change_gpu(0, errors={"nvmlDeviceGetTemperature": 15})  # any question for it would look like a lost GPU
    asleep, neighbour = source.snapshot().gpus
    source.close()
    assert not awake.asleep
    assert asleep.asleep
    assert asleep.status is GpuStatus.OK
    assert (asleep.name, asleep.uuid) == (awake.name, awake.uuid)
    assert asleep.temperature_c is None
    assert "asleep" in asleep.unknown["temperature_c"]
    assert neighbour.temperature_c == 38


@pytest.mark.parametrize("count", [1, 8, 16])
def test_boxes_of_every_size(nvml: NvmlBox, count: int) -> None:
    nvml.write(box(count))
    gpus = look().gpus
    assert [gpu.index for gpu in gpus] == list(range(count))
    assert len({gpu.uuid for gpu in gpus}) == count


def test_the_figures_reach_python_untouched_in_another_process(nvml_box: NvmlBox) -> None:
    nvml_box.change_gpu(1, used_bytes=123 * MIB, gpu_percent=77)
    code = (
        "import json; from gpuconsole.gpu.nvml.source import NvmlSource; g = NvmlSource().snapshot().gpus[1];"
        "print(json.dumps([g.memory_used_bytes, g.utilization_pct]))"
    )
    done = subprocess.run([sys.executable, "-c", code], env=nvml_box.env(), capture_output=True, check=True, timeout=60)
    assert json.loads(done.stdout) == [123 * MIB, 77]
