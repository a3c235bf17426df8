"""The doctor's rules: each has a case that makes it fire and one that keeps it silent."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpuconsole.core.errors import EngineUnavailable, Refused
from gpuconsole.diagnose.finding import Finding, Level
from gpuconsole.diagnose.host_rules import HostFacts, Wiring, examine, to_mend
from gpuconsole.engine.model import EngineInfo
from gpuconsole.gpu.model import Ecc, Gpu, GpuSnapshot, GpuStatus
from gpuconsole.host.machine import Machine, PciGpu

GPU = Gpu(index=0, uuid="GPU-1", name="NVIDIA H200")
HEALTHY = HostFacts(
    machine=Machine(
        os_name="Ubuntu 24.04",
        os_family="ubuntu",
        kernel="6.8.0",
        pci_gpus=(PciGpu("0000:01:00.0", "nvidia"),),
        module_version="580.159.04",
        library_version="580.159.04",
        device_nodes=("nvidia-uvm", "nvidia0", "nvidiactl"),
    ),
    gpus=GpuSnapshot(taken_at=0.0, gpus=(GPU,), driver_version="580.159.04", cuda_version="13.0"),
    engine=EngineInfo(endpoint="unix:///var/run/docker.sock", name="docker", version="28.5", api_version="1.51"),
    endpoint="unix:///var/run/docker.sock",
    wiring=Wiring("hook", "NVIDIA's toolkit is installed."),
    disk=("/var/lib/docker", 500 * 2**30, 900 * 2**30),
    engine_installed=True,
    tmux="tmux 3.4",
)


def facts(*, machine: dict[str, Any] | None = None, **changes: Any) -> HostFacts:
    changed = replace(HEALTHY, **changes)
    return replace(changed, machine=replace(changed.machine, **(machine or {})))


def no_driver(reason: str = "no-library") -> GpuSnapshot:
    return GpuSnapshot(taken_at=0.0, problem="NVIDIA's driver is not installed.", hint="Install it.", reason=reason)


def found(case: HostFacts, slug: str) -> Finding:
    return next(finding for finding in examine(case) if finding.id == f"doctor.{slug}")


def test_a_healthy_machine_has_nothing_to_mend() -> None:
    assert {finding.level for finding in examine(HEALTHY)} == {Level.OK}
    assert all(not finding.fix for finding in examine(HEALTHY))


FIRING: dict[str, tuple[HostFacts, str, Level, str | None, str]] = {
    "no card": (facts(machine={"pci_gpus": ()}, gpus=no_driver()), "gpu", Level.FAIL, "H01", "seat"),
    "nouveau owns it": (
        facts(machine={"pci_gpus": (PciGpu("0000:01:00.0", "nouveau"),)}, gpus=no_driver()),
        "gpu", Level.FAIL, "H03", "Blacklist nouveau",
    ),
    "vfio owns it": (
        facts(machine={"pci_gpus": (PciGpu("0000:01:00.0", "vfio-pci"),)}, gpus=no_driver()),
        "gpu", Level.FAIL, "H03", "vfio",
    ),
    "no driver": (
        facts(machine={"module_version": None, "library_version": None}, gpus=no_driver()),
        "driver", Level.FAIL, "H01", "ubuntu-drivers",
    ),
    "versions differ": (
        facts(machine={"module_version": "460.56", "library_version": "460.73.01"}, gpus=no_driver("version-mismatch")),
        "driver", Level.FAIL, "H02", "Reboot",
    ),
    "no module for this kernel": (
        facts(machine={"module_version": None, "module_for_kernel": False, "secure_boot": True}, gpus=no_driver()),
        "driver", Level.FAIL, "H04", "dkms",
    ),
    "WSL": (facts(machine={"wsl": True}, gpus=no_driver()), "driver", Level.FAIL, "H14", "Windows"),
    "a lost GPU": (
        facts(gpus=replace(HEALTHY.gpus, gpus=(replace(GPU, status=GpuStatus.LOST, problem="GPU is lost."),))),
        "gpu-health", Level.FAIL, "H06", "power-cycle",
    ),
    "fewer than on the bus": (
        facts(machine={"pci_gpus": (PciGpu("a", "nvidia"), PciGpu("b", "nvidia"))}),
        "gpu-health", Level.FAIL, "H05", "dmesg",
    ),
    "memory errors": (
        facts(gpus=replace(HEALTHY.gpus, gpus=(replace(GPU, ecc=Ecc(volatile_uncorrected=2)),))),
        "gpu-health", Level.WARN, "H07", "REMAP",
    ),
    "no uvm node": (facts(machine={"device_nodes": ("nvidia0",)}), "device-nodes", Level.WARN, "H08", "modprobe"),
    "no engine installed": (
        facts(
            engine=None, wiring=None, engine_installed=False, engine_error=EngineUnavailable("None.", hint="Start it."),
        ),
        "engine", Level.FAIL, "C01", "docs.docker.com",
    ),
    "engine stopped": (
        facts(engine=None, wiring=None, engine_error=EngineUnavailable("No engine.", hint="Start it.")),
        "engine", Level.FAIL, "C01", "Start it.",
    ),
    "socket not ours": (
        facts(engine=None, wiring=None, engine_error=Refused("Not allowed.", hint="Join the group.")),
        "engine", Level.FAIL, "C02", "Join the group.",
    ),
    "no toolkit": (
        facts(wiring=Wiring(None, "No GPU support is wired in.", "Install the toolkit.")),
        "gpu-wiring", Level.FAIL, "C05", "Install the toolkit.",
    ),
    "disk short": (facts(disk=("/var/lib/docker", 5 * 2**30, 900 * 2**30)), "disk", Level.WARN, "I06", "prune"),
    "no tmux": (facts(tmux=None), "tmux", Level.WARN, None, "apt install tmux"),
}  # fmt: skip


@pytest.mark.parametrize(("case", "slug", "level", "code", "fix"), FIRING.values(), ids=FIRING.keys())
def test_a_fault_is_named_with_its_remedy(case: HostFacts, slug: str, level: Level, code: str | None, fix: str) -> None:
    finding = found(case, slug)
    assert (finding.level, finding.code) == (level, code)
    assert fix in finding.fix


def test_on_a_machine_without_gpus_neither_driver_nor_toolkit_is_called_a_fault() -> None:
    case = facts(machine={"pci_gpus": ()}, gpus=no_driver(), wiring=Wiring(None, "None is wired in.", "Install."))
    assert found(case, "driver").level is Level.SKIP
    assert found(case, "gpu-wiring").level is Level.SKIP


def test_what_could_not_be_looked_at_says_so() -> None:
    case = facts(gpus=no_driver(), engine=None, wiring=None, disk=None)
    for slug in ("gpu-health", "device-nodes", "engine", "gpu-wiring", "disk"):
        assert found(case, slug).level is Level.SKIP
        assert found(case, slug).what


def test_both_versions_are_named_when_an_update_replaced_the_files() -> None:
    case = facts(
        machine={"module_version": "460.56", "library_version": "460.73.01"}, gpus=no_driver("version-mismatch")
    )
    assert "460.56" in found(case, "driver").what
    assert "460.73.01" in found(case, "driver").what


STOPPED: dict[str, Any] = {"engine": None, "wiring": None, "engine_error": EngineUnavailable("None.", hint="Start it.")}


@pytest.mark.parametrize(
    ("case", "order"),
    [
        (HEALTHY, []),
        (facts(**STOPPED), ["engine"]),
        (facts(machine={"pci_gpus": ()}, gpus=no_driver(), **STOPPED), ["engine", "gpu"]),
        (facts(machine={"pci_gpus": ()}, gpus=no_driver()), ["gpu"]),
        (
            facts(machine={"module_version": None, "library_version": None}, gpus=no_driver(), **STOPPED),
            ["driver", "engine"],
        ),
        (
            facts(machine={"pci_gpus": (PciGpu("0000:01:00.0", "nouveau"),)}, gpus=no_driver(), **STOPPED),
            ["gpu", "driver", "engine"],
        ),
        (facts(wiring=Wiring(None, "None.", "Install.")), ["gpu-wiring"]),
        (FIRING["disk short"][0], []),
    ],
)
def test_what_is_mended_first_is_what_can_be_mended(case: HostFacts, order: list[str]) -> None:
    assert [finding.id.removeprefix("doctor.") for finding in to_mend(examine(case))] == order


@pytest.mark.parametrize("endpoint", ["tcp://gpu9:2376", "ssh://gpu9"])
def test_an_engine_elsewhere_is_not_mended_by_installing_one_here(endpoint: str) -> None:
    fix = found(facts(**STOPPED, engine_installed=False, endpoint=endpoint), "engine").fix
    assert fix == "Start it."
