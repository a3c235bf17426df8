"""What is made of NVML's readings of a container's GPUs: their health, and what holds them back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpuconsole.gpu.model import Ecc, Gpu, GpuProcess, GpuSnapshot, GpuStatus, Mig, PcieLink, ProcessKind
from gpuconsole.host import kernellog
from gpuconsole.probes.gpuchecks import Xid, clocks, health, observe, skipped
from gpuconsole.probes.records import AskedGpu, AskedGpus, CheckStatus
from gpuconsole.probes.suite import GPU_CLOCKS, GPU_HEALTH
from gpuconsole.services.checkwatch import of_container

GPU = Gpu(
    index=3, uuid="GPU-a", name="NVIDIA H200", pci_bus_id="00000000:4B:00.0", performance_state=0, utilization_pct=50,
    power_limit_w=700.0, power_default_w=700.0, pcie=PcieLink(5, 16, 5, 16), ecc=Ecc(True, 0, 0, 0, 0, False, False, 0),
    recovery_action="none", persistence=True, throttle_reasons=(),
)  # fmt: skip
FAIL, OK, SKIP, WARN = CheckStatus.FAIL, CheckStatus.OK, CheckStatus.SKIP, CheckStatus.WARN


def ecc(**changes: Any) -> Gpu:
    return replace(GPU, ecc=replace(GPU.ecc, **changes))


@pytest.mark.parametrize(
    ("gpu", "status", "why", "fix"),
    [
        (GPU, OK, "no memory errors", ""),
        (ecc(aggregate_uncorrected=4, remapped_rows=1, volatile_corrected=9), OK, "no memory errors", ""),
        (ecc(volatile_uncorrected=1), FAIL, "GPU 3 (NVIDIA H200) had 1 memory error that", "--gpu-reset -i 3"),
        (ecc(volatile_uncorrected=2), FAIL, "had 2 memory errors", "--gpu-reset"),
        (ecc(remap_failed=True), FAIL, "could not replace a bad row", "warranty"),
        (ecc(remap_pending=True), WARN, "waits for a reset", "--gpu-reset -i 3"),
        (ecc(retired_pending=True), WARN, "waits for a reset", "--gpu-reset"),
        (ecc(retired_pages=59), OK, "no memory errors", ""),
        (ecc(retired_pages=60), FAIL, "60 pages", "warranty"),
        (ecc(enabled=False), OK, "ECC is off on GPU 3 (NVIDIA H200)", ""),
        (replace(GPU, recovery_action="gpu-reset"), FAIL, "asks for gpu-reset of GPU 3", "--gpu-reset -i 3"),
        (replace(GPU, recovery_action="node-reboot"), FAIL, "asks for node-reboot", "restart it"),
        (replace(GPU, recovery_action="action 99"), FAIL, "asks for action 99", "nvidia-smi -q"),
        (replace(GPU, ecc=Ecc(), recovery_action=None), OK, "do not count them", ""),
        (replace(GPU, ecc=Ecc()), OK, "none are counted; GPU 3 (NVIDIA H200) does not tell of memory errors", ""),
        (ecc(volatile_uncorrected=None), OK, "no errors are known, but none are counted", ""),
        (ecc(enabled=False, volatile_uncorrected=None), OK, "none are counted; ECC is off on GPU 3", ""),
        (replace(GPU, status=GpuStatus.LOST, problem="The GPU is lost: it is gone."), FAIL, "the GPU is lost", "host"),
    ],
)
def test_health(gpu: Gpu, status: CheckStatus, why: str, fix: str) -> None:
    found = health([gpu], [])
    assert (found.id, found.code, found.status) == ("check.gpu-health", "C23", status)
    assert why in found.why
    assert fix in found.fix
    assert (found.fix == "") is (status is OK)
    assert not found.why.endswith(".")


def test_one_gpu_that_counts_no_errors_is_named_beside_one_that_does() -> None:
    found = health([GPU, replace(ecc(volatile_uncorrected=None), index=4)], [])
    assert found.why == "no memory errors, no repair waits; GPU 4 (NVIDIA H200) does not tell of memory errors"


def test_clocks_that_nobody_tells_of_are_not_called_free() -> None:
    silent = observe(None, replace(GPU, throttle_reasons=None))
    found = clocks([silent])
    assert found.status is OK
    assert found.why == "what holds the clocks down is not told"
    assert found.value["gpus"][0]["reasons"] is None
    assert clocks([observe(silent, GPU)]).why == "nothing holds the clocks down", "told once is enough"
    both = clocks([observe(None, GPU), observe(None, replace(GPU, index=4, throttle_reasons=None))])
    assert both.why.startswith("nothing holds the clocks down, as far as it is told (GPU 4 (NVIDIA H200): nothing)")


def test_what_is_not_known_stays_unknown() -> None:
    found = health([replace(GPU, ecc=Ecc(), recovery_action=None)], None)
    (told,) = found.value["gpus"]
    assert told["uncorrected_errors"] is told["remap_pending"] is told["recovery_action"] is told["xids"] is None


def test_errors_in_the_kernel_log_count_when_they_are_the_card_s_own() -> None:
    here, there = "0000:4b:00", "0000:4c:00"
    found = health([GPU], [Xid(here, 79), Xid(here, 13), Xid(there, 48), Xid(here, 79)])
    assert found.status is WARN
    assert found.why.endswith("Xid 79")
    assert found.value["gpus"][0]["xids"] == [79, 13, 79]
    assert health([GPU], [Xid(here, 13), Xid(here, 31), Xid(there, 79)]).status is OK


def test_the_weightiest_is_told_first_and_not_all_of_many() -> None:
    bad = [replace(ecc(remap_pending=True, volatile_uncorrected=3), index=index) for index in range(4)]
    found = health(bad, [])
    assert found.status is FAIL
    assert found.why.startswith("GPU 0 (NVIDIA H200) had 3")
    assert found.why.endswith("and 5 more")


@pytest.mark.parametrize(
    ("changes", "status", "why"),
    [
        ({}, OK, "nothing holds the clocks down"),
        ({"throttle_reasons": ("sw-power-cap",)}, OK, "nothing but the power limit"),
        ({"throttle_reasons": None}, OK, "is not told"),
        ({"throttle_reasons": ("sw-power-cap", "hw-thermal", "hw-slowdown")}, WARN, "its own heat protection"),
        ({"throttle_reasons": ("hw-power-brake",)}, WARN, "power supply"),
        ({"throttle_reasons": ("sw-thermal",)}, WARN, "too warm"),
        ({"power_limit_w": 450.0}, WARN, "450 W, it was delivered with 700 W"),
        ({"power_limit_w": 699.0}, OK, "nothing"),
        ({"power_limit_w": 450.0, "power_default_w": None}, OK, "nothing"),
        ({"pcie": PcieLink(5, 8, 5, 16)}, WARN, "is x8, it could be x16"),
        ({"pcie": PcieLink(3, 16, 5, 16)}, WARN, "generation 3 of 5"),
        ({"pcie": PcieLink()}, OK, "nothing"),
        ({"pcie": PcieLink(1, 8, 5, 16), "performance_state": 0, "utilization_pct": 0}, OK, "cannot be judged at rest"),
        ({"persistence": False}, WARN, "persistence mode is off"),
        ({"persistence": False, "processes": (GpuProcess(7, 1, ProcessKind.GRAPHICS),)}, OK, "nothing"),
        ({"persistence": None}, OK, "nothing"),
        ({"status": GpuStatus.LOST, "persistence": False}, OK, "nothing"),
    ],
)
def test_what_holds_a_gpu_back(changes: dict[str, Any], status: CheckStatus, why: str) -> None:
    found = clocks([observe(None, replace(GPU, **changes))])
    assert (found.code, found.status) == ("C24", status)
    assert why in found.why
    assert bool(found.fix) is (status is WARN)


def test_looks_add_up_the_link_at_its_best_and_every_reason() -> None:
    resting = replace(GPU, performance_state=8, utilization_pct=0, pcie=PcieLink(1, 16, 5, 16))
    working = replace(GPU, throttle_reasons=("hw-thermal",))
    seen = None
    for gpu in (resting, working, resting):
        seen = observe(seen, gpu)
    assert seen is not None
    assert (seen.samples, seen.generation, seen.loaded, seen.reasons) == (3, 5, True, frozenset({"hw-thermal"}))
    assert seen.gpu is resting


def test_nvml_that_cannot_be_asked_is_a_reason() -> None:
    found = skipped(GPU_CLOCKS, "the engine is not on this machine")
    assert (found.id, found.status, found.why) == ("check.gpu-clocks", SKIP, "the engine is not on this machine")
    assert GPU_HEALTH.code == "C23"


def test_a_part_of_a_gpu_counts_as_the_gpu() -> None:
    mig = Mig("MIG-1", "1g", 1, 0, 10, 0)
    snapshot = GpuSnapshot(0.0, gpus=(GPU, replace(GPU, uuid="GPU-b", migs=(mig,)), replace(GPU, uuid=None)))
    assert [gpu.uuid for gpu in of_container(snapshot, AskedGpus.of((AskedGpu("MIG-1"),)))] == ["GPU-b"]
    assert [gpu.uuid for gpu in of_container(snapshot, AskedGpus.of((AskedGpu("GPU-a"),)))] == ["GPU-a"]
    assert of_container(snapshot, AskedGpus.of((AskedGpu(""),))) == []
    assert of_container(snapshot, AskedGpus.unknown("why")) == []


def test_the_kernel_log(tmp_path: Path) -> None:
    log = tmp_path / "kmsg"
    log.write_text(
        "4,1,2,-;NVRM: Xid (PCI:0000:4B:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n"
        "4,2,3,-;NVRM: Xid (PCI:0000:4b:00.0): 31, pid=1, name=python\n"
        "6,3,4,-;NVRM: loading NVIDIA UNIX x86_64 Kernel Module\n"
    )
    assert kernellog.xids(log) == [("0000:4b:00", 79), ("0000:4b:00", 31)]
    assert kernellog.xids(tmp_path / "none") is None
    assert kernellog.xids(tmp_path) is None
    assert kernellog.xids_in("NVRM: Xid (PCI:zz): 1") == []
