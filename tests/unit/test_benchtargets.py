"""What can be measured from where one is: the freest GPU first, who else is there said, nothing that cannot be."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given as given_any
from hypothesis import strategies as st

from gpuconsole.gpu.model import GpuProcess, GpuSnapshot
from gpuconsole.host.model import GpuView, HostView
from gpuconsole.images.facts import ImageFacts
from gpuconsole.launch.claims import Claimant
from gpuconsole.launch.gpus import choose_gpus
from gpuconsole.launch.spec import GpuWish, GpuWishKind
from gpuconsole.services import benchtargets
from gpuconsole.services.images import ImageView, view_images
from gpuconsole.tui.present import benchask
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


def given_to(*names: tuple[str, ...]) -> HostView:
    """The three GPUs, each given to containers of these names."""
    host = looking.host()
    return replace(host, gpus=tuple(replace(view, given_to=each) for view, each in zip(host.gpus, names, strict=True)))


def test_a_gpu_that_an_idle_container_was_given_comes_after_those_nobody_was() -> None:
    host = given_to(("llama-ft",), ("jupyter-mei",), ("notebook", "sweep", "more"))
    empty = replace(host, gpus=(*host.gpus[:2], host.gpus[2], free_gpu(3)))
    found = benchtargets.of_image(images()[0], empty)
    assert [target.title for target in found][:4] == ["GPU 3 H200", "GPU 2 H200", "GPU 1 H200", "GPU 0 H200"]
    assert found[0].note.startswith("free; ")
    assert (found[0].shared, found[0].given) == (False, False)
    assert "given to notebook, sweep … (idle)" in found[1].note
    assert (found[1].shared, found[1].given) == (False, True), "nothing is in the figures unless it begins"
    assert "given to" not in found[2].note, "it holds it, which says more"
    assert "(idle)" not in found[3].note
    together = found[4]
    assert "others use some of them" in together.note
    (only,) = [target for target in benchtargets.of_gpu(empty.gpus[2], (), images()[:1]) if target.image]
    assert only.given
    assert "given to notebook" in only.note, "said also where the GPU was named"
    words = "".join(cell.text for line in benchask.plan("", only, width=400) for cell in line)
    assert "Another container was given the GPU" in words
    assert "given" not in "".join(cell.text for line in benchask.plan("", found[0], width=400) for cell in line)


def test_gpus_that_were_only_given_are_said_to_be_so_together() -> None:
    host = looking.host()
    idle = replace(host, gpus=(replace(free_gpu(2), given_to=("notebook",)), free_gpu(3)))
    together = next(target for target in benchtargets.of_image(images()[0], idle) if target.title == "all GPUs")
    assert "others were given some of them" in together.note
    assert (together.shared, together.given) == (False, True)


@given_any(st.lists(st.tuples(st.booleans(), st.booleans(), st.integers(0, 90)), min_size=1, max_size=6))
def test_the_first_is_the_one_that_a_launch_would_take(kinds: list[tuple[bool, bool, int]]) -> None:
    views, claims = [], {}
    for index, (busy, was_given, used) in enumerate(kinds):
        view = free_gpu(index)
        gpu = replace(view.gpu, memory_used_bytes=used * looking.GIB if busy else 0)
        gpu = replace(gpu, processes=(GpuProcess(7, gpu.memory_used_bytes),) if busy else ())
        claims[gpu.uuid or ""] = (Claimant("x"),) if was_given else ()
        views.append(replace(view, gpu=gpu, given_to=("x",) if was_given else ()))
    host = replace(looking.host(), gpus=tuple(views))
    chosen = choose_gpus(GpuWish(GpuWishKind.AUTO), GpuSnapshot(0, gpus=tuple(view.gpu for view in views)), claims)
    assert benchtargets.of_image(images()[0], host)[0].gpus == GpuWish(DEVICES, devices=chosen.uuids)


def free_gpu(index: int) -> GpuView:
    first = looking.host().gpus[2]
    return replace(first, gpu=replace(first.gpu, index=index, uuid=f"GPU-free-{index}"))


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
