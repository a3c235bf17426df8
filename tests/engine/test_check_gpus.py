"""Checks in containers that were given GPUs: stand-in cards by CDI or by the toolkit, and a stand-in libcuda."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuconsole.core.errors import EngineRefused, NotFound
from gpuconsole.launch.spec import GpuWish, GpuWishKind, LaunchSpec
from gpuconsole.probes.records import AskedGpus, CheckReport, Progress, Record
from gpuconsole.services.askedgpus import asked_of
from gpuconsole.services.cancelling import Cancellation, Cancelled
from gpuconsole.services.checking import check_image
from tests.engine.checking import FAIL, OK, SKIP, WARN, Checked, opened, result
from tests.payload.libcuda import build
from tests.rig.engines import Engine
from tests.rig.gpus import TWO_GPUS
from tests.rig.nvml.gpu import GIB, GpuProcess
from tests.rig.nvml.presets import h200
from tests.rig.nvml.simulated import NvmlBox
from tests.rig.nvml.state import NvmlState

pytestmark = [pytest.mark.engine, pytest.mark.usefixtures("few_checks")]
FIRST, SECOND = (gpu.uuid for gpu in TWO_GPUS)
CUDA_BUILD = "import torch; torch.version.cuda = '12.8'\n"


@pytest.fixture
def two_gpus(nvml: NvmlBox) -> NvmlBox:
    """The engine's two GPUs as the driver sees them; the first is held by a process that is gone by now."""
    first, second = (h200(gpu.index, uuid=gpu.uuid, minor=gpu.minor) for gpu in TWO_GPUS)
    nvml.write(NvmlState(gpus=(first.with_(processes=(GpuProcess(2**22 - 3, 20 * GIB),)), second)))
    return nvml


@pytest.fixture
def cdi(engine_modern: Engine, two_gpus: NvmlBox, tmp_path: Path) -> Iterator[Checked]:
    """Containers of an engine with CDI, on a machine with two GPUs."""
    with opened(engine_modern, tmp_path) as containers:
        yield containers


@pytest.fixture
def hook(engine_old: Engine, two_gpus: NvmlBox, tmp_path: Path) -> Iterator[Checked]:
    """Containers of an engine with the toolkit, on a machine with two GPUs."""
    with opened(engine_old, tmp_path) as containers:
        yield containers


def with_driver(checked: Checked, *options: str, gpu: str = SECOND) -> CheckReport:
    """The report on a container with a GPU and a CUDA build of torch, whose libcuda is the stand-in."""
    folder = build(checked.folder / "driver")
    checked.module("sitecustomize", CUDA_BUILD)
    mount = f"{folder}:/usr/local/nvidia/lib:ro"
    return checked.check(checked.start("--device", f"nvidia.com/gpu={gpu}", "-v", mount, *options))


def test_a_cpu_build_in_a_container_with_a_gpu(cdi: Checked) -> None:
    report = cdi.check(cdi.start("--device", f"nvidia.com/gpu={SECOND}", "--shm-size", "1g"))
    assert report.verdict.check == "check.torch"
    assert "CPU build: it cannot use the 1 GPU given" in report.verdict.sentence
    devices = result(report, "check.devices")
    assert devices.status is SKIP
    assert "the device nodes of GPU 1 (NVIDIA H200) are there" in devices.why
    assert devices.value == {"nodes": ["/dev/nvidia1"], "asked": [SECOND], "asked_count": 1}
    assert result(report, "check.numerics").status is OK
    assert "CPU" in result(report, "check.numerics").why


def test_what_the_host_knows_of_its_own_gpus_stands_beside(cdi: Checked, two_gpus: NvmlBox) -> None:
    first, second = (h200(gpu.index, uuid=gpu.uuid, minor=gpu.minor) for gpu in TWO_GPUS)
    torn = first.with_(ecc_errors=(0, 0, 3, 3), recovery_action=1)
    lowered = second.with_(power_limit_mw=450_000, power_enforced_mw=450_000, pcie_width=8, gpu_percent=90)
    two_gpus.write(NvmlState(gpus=(torn, lowered)))
    only = ("gpu-health", "gpu-clocks")
    one = cdi.check(cdi.start("--device", f"nvidia.com/gpu={SECOND}"), only=only)
    assert [check.id for check in one.checks] == ["check.gpu-health", "check.gpu-clocks"]
    assert result(one, "check.gpu-health").status is OK
    held = result(one, "check.gpu-clocks")
    assert held.status is WARN
    assert "450 W, it was delivered with 700 W" in held.why
    assert "x8, it could be x16" in held.why
    assert one.verdict.check == "check.gpu-clocks"
    both = cdi.check(cdi.start("--device", "nvidia.com/gpu=all"), only=only)
    assert both.verdict.check == "check.gpu-health"
    assert "the driver asks for gpu-reset of GPU 0 (NVIDIA H200)" in both.verdict.sentence
    assert "3 memory errors" in result(both, "check.gpu-health").why
    none = cdi.check(cdi.start(), only=only)
    assert {check.why for check in none.checks} == {"no GPU was given"}


def test_64_mib_of_shared_memory_are_a_failure_with_a_gpu(cdi: Checked) -> None:
    report = cdi.check(cdi.start("--device", f"nvidia.com/gpu={FIRST}"))
    assert result(report, "check.shm").status is FAIL
    assert "--shm-size 8g" in result(report, "check.shm").fix


def test_a_gpu_whose_device_node_is_gone(cdi: Checked) -> None:
    name = cdi.start("--device", "nvidia.com/gpu=0", "--device", "nvidia.com/gpu=1")
    cdi.engine.docker("exec", name, "rm", "/dev/nvidia0")
    found = result(cdi.check(name), "check.devices")
    assert found.status is FAIL
    assert found.why == "the device node of GPU 0 (NVIDIA H200) is not in the container"


def test_a_container_that_lost_the_right_to_its_gpu(cdi: Checked) -> None:
    """As after a daemon-reload: the node is there, and opening it is refused."""
    cdi.module("sitecustomize", CUDA_BUILD)
    name = cdi.start("--device", f"nvidia.com/gpu={SECOND}", "--user", "1234")
    cdi.engine.docker("exec", "-u", "0", name, "chmod", "0", "/dev/nvidia1")
    found = result(cdi.check(name), "check.cuda-available")
    assert found.status is FAIL
    assert found.why == "the container has lost the right to use /dev/nvidia1"
    assert "Restart the container" in found.fix


def test_visible_devices_that_hide_the_gpu(cdi: Checked) -> None:
    """The host's index of the GPU, where inside there is only index 0."""
    report = with_driver(cdi, "-e", "CUDA_VISIBLE_DEVICES=1")
    found = result(report, "check.cuda-available")
    assert found.status is FAIL
    assert found.why == "CUDA_VISIBLE_DEVICES is '1' and hides every GPU"
    assert report.verdict.check == "check.cuda-available"
    trap = result(report, "check.environment")
    assert trap.status is WARN
    assert "inside they count from 0 to 0" in trap.why


@pytest.mark.parametrize(
    ("code", "why", "fix"),
    [("804", "forward compatibility", "Update the driver"), ("999", "for no reason it names", "nvidia_uvm")],
)
def test_a_driver_that_does_not_start(cdi: Checked, code: str, why: str, fix: str) -> None:
    report = with_driver(cdi, "-e", f"STUB_INIT={code}")
    found = result(report, "check.cuda-available")
    assert found.status is FAIL
    assert why in found.why
    assert f"code {code}" in found.why
    assert fix in found.fix
    assert result(report, "check.kernel").why == "CUDA does not start"


def test_a_driver_that_is_too_old(cdi: Checked) -> None:
    report = with_driver(cdi, "-e", "STUB_VERSION=11040")
    assert "it offers CUDA 11.4" in result(report, "check.cuda-available").why
    assert result(report, "check.driver").status is FAIL


def test_a_gpu_without_the_driver_s_library(cdi: Checked) -> None:
    cdi.module("sitecustomize", CUDA_BUILD)
    found = result(cdi.check(cdi.start("--device", f"nvidia.com/gpu={FIRST}")), "check.cuda-available")
    assert "libcuda.so.1 is not in the container" in found.why


def test_a_gpu_asked_of_the_toolkit_that_did_not_come(hook: Checked) -> None:
    hook.module("sitecustomize", CUDA_BUILD)
    name = hook.start("--gpus", f"device={SECOND}")
    hook.engine.docker("exec", name, "rm", "-f", "/dev/nvidia1")
    report = hook.check(name)
    found = result(report, "check.cuda-available")
    assert found.why == "no GPU is in the container, although it was given some"
    assert "GPU 1 (NVIDIA H200)" in result(report, "check.devices").why


def asked(checked: Checked, *options: str) -> AskedGpus:
    """The GPUs a container with these options is known to have."""
    name = checked.start(*options, image="small")
    return asked_of(checked.session, checked.session.engine.container(name))


def test_what_a_container_was_given_is_known_with_its_holders(cdi: Checked) -> None:
    found = asked(cdi, "--device", "nvidia.com/gpu=0")
    assert found.count == 1
    assert found.gpus is not None
    (gpu,) = found.gpus
    assert (gpu.uuid, gpu.index, gpu.name, gpu.minor) == (FIRST, 0, "NVIDIA H200", 0)
    assert gpu.memory_used_bytes is not None
    assert gpu.memory_used_bytes >= 20 * GIB
    assert gpu.holders == (f"process {2**22 - 3} (20 GiB)",)
    assert asked(cdi).gpus == ()
    assert asked(cdi, "--device", "nvidia.com/gpu=all").count == 2


def test_the_toolkit_s_ways_of_asking(hook: Checked) -> None:
    for options, uuids in (
        (("--gpus", f"device={SECOND}"), [SECOND]),
        (("--gpus", "all"), [FIRST, SECOND]),
        (("--gpus", "1"), [FIRST]),
        ((), []),
    ):
        found = asked(hook, *options)
        assert found.gpus is not None
        assert [gpu.uuid for gpu in found.gpus] == uuids


def test_without_a_driver_our_own_label_tells(engine_modern: Engine, tmp_path: Path) -> None:
    with opened(engine_modern, tmp_path) as checked:
        device = ("--device", "nvidia.com/gpu=0")
        unknown = asked(checked, *device)
        assert unknown.gpus is None
        assert unknown.reason
        labelled = asked(checked, *device, "--label", f"gpuconsole.gpus={FIRST}")
        assert labelled.gpus is not None
        assert [gpu.uuid for gpu in labelled.gpus] == [FIRST]
        assert asked(checked, *device, "--label", "gpuconsole.gpus=none").gpus == ()


def image(checked: Checked, name: str, gpus: GpuWish | None = None) -> LaunchSpec:
    return LaunchSpec(image=checked.engine.load(name), gpus=gpus)


def containers(checked: Checked) -> str:
    return checked.engine.docker("ps", "-a", "-q").stdout


def test_an_image_is_checked_in_a_fresh_container_with_a_gpu(cdi: Checked) -> None:
    wish = GpuWish(GpuWishKind.DEVICES, devices=("1",))
    report = check_image(
        cdi.session, image(cdi, "pytorch", wish), lambda _: None, on_step=lambda _: None, cancel=Cancellation()
    )
    assert report.verdict.check == "check.torch"
    assert result(report, "check.devices").value["nodes"] == ["/dev/nvidia1"]
    assert result(report, "check.shm").status is OK
    # It goes away with the check, so that is no warning.
    assert result(report, "check.workspace").status is OK
    assert report.environment.where.startswith("image ")
    assert not containers(cdi)


def test_cancelling_the_check_of_an_image_removes_its_container(cdi: Checked) -> None:
    cancel = Cancellation()

    def stop(record: Record) -> None:
        if isinstance(record, Progress):
            cancel.request()

    with pytest.raises(Cancelled):
        check_image(cdi.session, image(cdi, "pytorch"), stop, on_step=lambda _: None, cancel=cancel)
    assert not containers(cdi)


def test_cancelling_before_the_container_starts_leaves_nothing(cdi: Checked) -> None:
    cancel = Cancellation()
    with pytest.raises(Cancelled):
        check_image(
            cdi.session, image(cdi, "pytorch"), lambda _: None, on_step=lambda _: cancel.request(), cancel=cancel
        )
    assert not containers(cdi)


def test_a_failure_while_telling_removes_the_container_too(cdi: Checked) -> None:
    def broken(record: Record) -> None:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        check_image(cdi.session, image(cdi, "pytorch"), broken, on_step=lambda _: None)
    assert not containers(cdi)


def test_a_container_that_the_engine_does_not_remove_ends_all_the_same(
    cdi: Checked, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(engine: object, container: object) -> None:
        raise EngineRefused("It is left behind.")

    monkeypatch.setattr("gpuconsole.services.checkhost._remove", refused)
    with pytest.raises(EngineRefused, match="left behind"):
        check_image(cdi.session, image(cdi, "pytorch"), lambda _: None, on_step=lambda _: None)
    end = time.monotonic() + 60
    while containers(cdi):
        assert time.monotonic() < end, "its container is still there"
        time.sleep(0.1)


def test_an_image_without_python(cdi: Checked) -> None:
    report = check_image(cdi.session, image(cdi, "small"), lambda _: None, on_step=lambda _: None)
    assert report.verdict.check == "check.python"
    assert not containers(cdi)


def test_an_image_without_anything_to_wait_with(cdi: Checked) -> None:
    with pytest.raises(NotFound, match="has no Python"):
        check_image(cdi.session, image(cdi, "bare"), lambda _: None, on_step=lambda _: None)
    assert not containers(cdi)


def test_an_image_whose_entrypoint_swallows_commands(cdi: Checked) -> None:
    report = check_image(cdi.session, image(cdi, "entrypoint"), lambda _: None, on_step=lambda _: None)
    assert report.verdict.check == "check.python"
    assert not containers(cdi)
