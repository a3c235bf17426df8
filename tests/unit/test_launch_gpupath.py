"""How GPUs get into a container, and why not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpuconsole.core.errors import GpuNotFound
from gpuconsole.engine.model import EngineInfo, GpuPath
from gpuconsole.gpu.model import Gpu, Mig
from gpuconsole.host.cdi import CdiDevice, CdiDevices
from gpuconsole.host.facts import LaunchFacts
from gpuconsole.launch.gpupath import GpuRoute, choose_gpu_path
from gpuconsole.launch.gpus import GpuChoice
from gpuconsole.launch.units import GpuUnit

A, B = "GPU-aaaa0000", "GPU-bbbb0000"
FIRST = GpuUnit(Gpu(index=0, uuid=A, name="NVIDIA H200", minor=1))
SECOND = GpuUnit(Gpu(index=1, uuid=B, name="NVIDIA H200", minor=0))
ONE, BOTH = GpuChoice((FIRST,)), GpuChoice((FIRST, SECOND), every=True)
DOCKER = EngineInfo(endpoint="unix:///var/run/docker.sock", name="docker", version="26.1.5")
WITH_CDI = replace(DOCKER, cdi_spec_dirs=("/etc/cdi",))
HOOK = "/usr/bin/nvidia-container-runtime-hook"


def device(name: str, *nodes: str) -> CdiDevice:
    return CdiDevice(f"nvidia.com/gpu={name}", nodes, "/etc/cdi/nvidia.yaml")


def specification(*devices: CdiDevice, problems: tuple[str, ...] = ()) -> CdiDevices:
    return CdiDevices(devices, problems)


BY_UUID = specification(device(A, "/dev/nvidia1"), device(B, "/dev/nvidia0"), device("all"))
BY_INDEX = specification(device("0", "/dev/nvidia0"), device("1", "/dev/nvidia1"), device("all"))


def route(
    info: EngineInfo, facts: LaunchFacts, choice: GpuChoice | None = ONE, wanted: GpuPath | None = None
) -> GpuRoute:
    found = choose_gpu_path(info, facts, choice=choice, wanted=wanted)
    assert found.reason
    return found


def refused(
    info: EngineInfo, facts: LaunchFacts, choice: GpuChoice | None = ONE, wanted: GpuPath | None = None
) -> GpuNotFound:
    with pytest.raises(GpuNotFound) as caught:
        choose_gpu_path(info, facts, choice=choice, wanted=wanted)
    assert caught.value.hint
    return caught.value


def test_cdi_comes_first_and_names_the_gpu_by_uuid() -> None:
    found = route(WITH_CDI, LaunchFacts(cdi=BY_UUID, hook=HOOK))
    assert found.path is GpuPath.CDI
    assert found.cdi_devices == (f"nvidia.com/gpu={A}",)
    assert "/etc/cdi/nvidia.yaml" in found.reason


def test_a_specification_by_index_is_read_by_its_device_nodes() -> None:
    """The driver's index 0 has the node nvidia1 here, which the file calls 1."""
    assert route(WITH_CDI, LaunchFacts(cdi=BY_INDEX)).cdi_devices == ("nvidia.com/gpu=1",)
    both = route(WITH_CDI, LaunchFacts(cdi=BY_INDEX), BOTH)
    assert both.cdi_devices == ("nvidia.com/gpu=1", "nvidia.com/gpu=0")


def test_a_specification_of_all_alone_serves_only_who_wants_all() -> None:
    """As on WSL, where the GPUs share one device."""
    only_all = LaunchFacts(cdi=specification(device("all", "/dev/dxg")), wsl=True)
    assert route(WITH_CDI, only_all, BOTH).cdi_devices == ("nvidia.com/gpu=all",)
    assert A in refused(WITH_CDI, only_all, ONE).message


def test_a_mig_instance_is_found_by_its_uuid_and_never_by_its_node() -> None:
    instance = Mig("MIG-1", "1g.18gb", 1, 0, None, None)
    unit = GpuUnit(Gpu(index=0, uuid=A, name="H", minor=1, migs=(instance,)), instance, 0)
    by_uuid = specification(device("0:0", "/dev/nvidia1"), device("MIG-1", "/dev/nvidia1"))
    assert route(WITH_CDI, LaunchFacts(cdi=by_uuid), GpuChoice((unit,))).cdi_devices == ("nvidia.com/gpu=MIG-1",)
    refused(WITH_CDI, LaunchFacts(cdi=BY_INDEX), GpuChoice((unit,)))


def test_what_the_engine_lists_counts_more_than_files() -> None:
    listing = replace(WITH_CDI, cdi_devices=(f"nvidia.com/gpu={A}", "vendor.example/nic=0"))
    assert route(listing, LaunchFacts()).cdi_devices == (f"nvidia.com/gpu={A}",)
    assert route(listing, LaunchFacts(hook=HOOK), BOTH).path is GpuPath.HOOK


def test_without_a_fitting_specification_the_hook_is_taken() -> None:
    assert route(WITH_CDI, LaunchFacts(hook=HOOK)).path is GpuPath.HOOK
    assert route(DOCKER, LaunchFacts(cdi=BY_UUID, hook=HOOK)).path is GpuPath.HOOK
    stale = LaunchFacts(cdi=specification(device(B)), hook=HOOK)
    assert route(WITH_CDI, stale).path is GpuPath.HOOK


def test_the_runtime_is_the_last_way() -> None:
    named = replace(DOCKER, runtimes=("runc", "nvidia"))
    assert route(named, LaunchFacts()).path is GpuPath.RUNTIME
    assert route(named, LaunchFacts(hook=HOOK)).path is GpuPath.HOOK
    assert route(named, LaunchFacts(hook=HOOK, toolkit_mode="cdi")).path is GpuPath.RUNTIME


def test_a_jetson_takes_the_runtime_only() -> None:
    tegra = LaunchFacts(tegra=True, hook=HOOK, cdi=BY_UUID)
    found = route(replace(WITH_CDI, runtimes=("nvidia", "runc")), tegra)
    assert found.path is GpuPath.RUNTIME
    assert "Jetson" in refused(WITH_CDI, tegra).hint


def test_nothing_installed_says_what_to_install() -> None:
    error = refused(DOCKER, LaunchFacts())
    assert "no way to give GPUs" in error.message
    assert "nvidia-container-toolkit" in error.hint
    assert "systemctl restart docker" in error.hint


def test_snap_is_told_as_snap() -> None:
    error = refused(replace(DOCKER, root_dir="/var/snap/docker/common/var-lib-docker"), LaunchFacts(hook=HOOK))
    assert "snap" in error.message
    assert "docker-ce" in error.hint


def test_docker_desktop_is_told_unless_it_is_on_wsl() -> None:
    desktop = replace(DOCKER, operating_system="Docker Desktop")
    assert "virtual machine" in refused(desktop, LaunchFacts(hook=HOOK)).message
    assert "docker context use default" in refused(desktop, LaunchFacts(hook=HOOK)).hint
    assert route(desktop, LaunchFacts(hook=HOOK, wsl=True)).path is GpuPath.HOOK


def test_a_rootless_engine_takes_cdi_and_the_hook_only_without_cgroups() -> None:
    rootless = replace(DOCKER, rootless=True)
    assert route(replace(WITH_CDI, rootless=True), LaunchFacts(cdi=BY_UUID)).path is GpuPath.CDI
    assert route(rootless, LaunchFacts(hook=HOOK, no_cgroups=True)).path is GpuPath.HOOK
    error = refused(rootless, LaunchFacts(hook=HOOK))
    assert "rootless" in error.message
    assert "nvidia-ctk cdi generate" in error.hint
    assert route(rootless, LaunchFacts(hook=HOOK), wanted=GpuPath.HOOK).path is GpuPath.HOOK


def test_podman_takes_cdi_only() -> None:
    podman = EngineInfo(endpoint="unix:///run/podman/podman.sock", name="podman")
    assert route(podman, LaunchFacts(cdi=BY_UUID, hook=HOOK)).path is GpuPath.CDI
    assert "Podman" in refused(podman, LaunchFacts(hook=HOOK)).hint


def test_a_file_that_cannot_be_read_is_told() -> None:
    unread = specification(problems=("/etc/cdi/nvidia.yaml cannot be read: Permission denied.",))
    error = refused(WITH_CDI, LaunchFacts(cdi=unread, ctk="/usr/bin/nvidia-ctk"))
    assert "/etc/cdi/nvidia.yaml cannot be read: Permission denied" in error.message
    assert "readable" in error.hint


def test_a_way_that_is_insisted_on_is_not_weighed() -> None:
    assert route(DOCKER, LaunchFacts(), wanted=GpuPath.HOOK).path is GpuPath.HOOK
    assert route(DOCKER, LaunchFacts(), wanted=GpuPath.RUNTIME).path is GpuPath.RUNTIME
    assert "CDI" in refused(DOCKER, LaunchFacts(), wanted=GpuPath.CDI).message


def test_facts_of_this_machine_say_nothing_of_an_engine_elsewhere() -> None:
    away = replace(WITH_CDI, local=False)
    refused(away, LaunchFacts(cdi=BY_UUID, hook=HOOK))
    assert route(replace(away, runtimes=("nvidia",)), LaunchFacts()).path is GpuPath.HOOK
    assert route(replace(away, cdi_devices=(f"nvidia.com/gpu={A}",)), LaunchFacts()).path is GpuPath.CDI


def test_whether_any_gpu_could_be_given_is_answered_without_a_choice() -> None:
    assert route(WITH_CDI, LaunchFacts(cdi=BY_UUID), None).cdi_devices == ()
    refused(DOCKER, LaunchFacts(), None)
