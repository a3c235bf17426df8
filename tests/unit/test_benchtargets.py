"""What can be measured from where one is: the freest GPU first, who else is there said, nothing that cannot be."""

from __future__ import annotations

from dataclasses import replace

from gpuconsole.images.facts import ImageFacts
from gpuconsole.launch.spec import GpuWish, GpuWishKind
from gpuconsole.services import benchtargets
from gpuconsole.services.images import ImageView, view_images
from tests.tui import looking

DEVICES = GpuWishKind.DEVICES


def images() -> tuple[ImageView, ...]:
    return view_images(looking.images(), ())


def test_a_container_is_measured_where_it_is() -> None:
    (target,) = benchtargets.of_container(looking.containers()[0])
    assert target.container is not None
    assert target.title == "llama-ft"
    assert "inside, on GPU 0; 131 GiB of GPU memory are in use" in target.note
    assert target.shared
    (cpu,) = benchtargets.of_container(looking.containers()[2])
    assert "the CPU: it has no GPU" in cpu.note
    assert not cpu.shared
    (unknown,) = benchtargets.of_container(replace(looking.containers()[0], gpus=None))
    assert "not known" in unknown.note


def test_an_image_is_measured_on_the_freest_gpu_first() -> None:
    view, host = images()[0], looking.host()
    found = benchtargets.of_image(view, host)
    assert [target.title for target in found] == ["GPU 2 H200", "GPU 1 H200", "GPU 0 H200", "all GPUs", "the CPU"]
    assert found[0].gpus == GpuWish(DEVICES, devices=(host.gpus[2].gpu.uuid or "",))
    assert "free" in found[0].note
    assert not found[0].shared
    assert "held by jupyter-mei" in found[1].note
    assert found[1].shared
    assert found[3].shared
    assert found[-1].gpus == GpuWish(GpuWishKind.NONE)
    assert {target.image for target in found} == {(view.image.name, view.image.id)}


def test_a_torch_of_the_cpu_is_measured_there_first() -> None:
    view = replace(images()[0], facts=ImageFacts(cpu_only=True))
    assert benchtargets.of_image(view, looking.host())[0].title == "the CPU"
    assert [target.title for target in benchtargets.of_image(view, None)] == ["the CPU"]
    assert [target.title for target in benchtargets.of_image(images()[0], None)] == ["one GPU", "the CPU"]


def test_a_lost_gpu_is_not_offered() -> None:
    titles = [target.title for target in benchtargets.of_image(images()[0], looking.host(count=5))]
    assert "GPU 4 H200" not in titles


def test_a_gpu_is_measured_by_its_containers_else_by_an_image() -> None:
    host = looking.host()
    found = benchtargets.of_gpu(host.gpus[0], looking.containers(), images())
    assert found[0].title == "llama-ft"
    assert found[0].container is not None
    assert [target.image is not None for target in found[1:]] == [True, True]  # not the one without torch
    assert all(target.gpus == GpuWish(DEVICES, devices=(host.gpus[0].gpu.uuid or "",)) for target in found[1:])
    free = benchtargets.of_gpu(host.gpus[2], looking.containers(), ())
    assert free == ()
