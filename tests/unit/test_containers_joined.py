"""A container's GPU memory, where the driver lists its processes and where it does not."""

from __future__ import annotations

import pytest

from gpuconsole.engine.model import Container, ContainerState, GpuClaim, GpuRequestKind
from gpuconsole.gpu.model import Gpu, GpuProcess, GpuSnapshot, Mig
from gpuconsole.host.model import GpuView, Holder, HostView
from gpuconsole.services.containers import Surroundings, join

ID = "a1" * 32


def container(*devices: str) -> Container:
    claims = (GpuClaim(GpuRequestKind.CDI, devices=devices),)
    return Container(ID, "train", "image", "sha256:1", ContainerState.RUNNING, gpu_claims=claims)


def host(gpu: Gpu, *holders: Holder) -> HostView:
    return HostView(GpuSnapshot(0.0, (gpu,)), (GpuView(gpu, holders),))


def instance(uuid: str | None, *, listed: bool) -> Mig:
    return Mig(uuid, "1g.5gb", 1, 0, None, None, processes=() if listed else None)


@pytest.mark.parametrize("device", ["0", "0:1", "MIG-2"])
def test_memory_on_an_instance_whose_processes_cannot_be_listed_is_unknown(device: str) -> None:
    migs = (instance("MIG-1", listed=True), instance("MIG-2", listed=False))
    gpu = Gpu(0, "GPU-0", None, mig_enabled=True, migs=migs)
    view = join(container(device), Surroundings(host=host(gpu)))
    assert view.gpu_memory_bytes is None
    assert view.unknown["gpu_memory_bytes"] == "the processes of GPU 0 cannot be listed"


def test_an_instance_of_somebody_else_that_cannot_be_listed_does_not_matter() -> None:
    process = GpuProcess(7, 3, mig_uuid="MIG-1")
    mine = Mig("MIG-1", "1g.5gb", 1, 0, None, None, processes=(process,))
    gpu = Gpu(
        0, "GPU-0", None, mig_enabled=True, migs=(mine, instance("MIG-2", listed=False), instance(None, listed=False))
    )
    holder = Holder(7, gpu_index=0, gpu_uuid="GPU-0", memory_bytes=3, mig_uuid="MIG-1", container_id=ID)
    view = join(container("MIG-1"), Surroundings(host=host(gpu, holder)))
    assert view.gpu_memory_bytes == 3
    assert "gpu_memory_bytes" not in view.unknown


def test_a_gpu_that_cannot_be_listed_makes_the_memory_unknown() -> None:
    view = join(container("0"), Surroundings(host=host(Gpu(0, "GPU-0", None, processes=None))))
    assert view.gpu_memory_bytes is None
