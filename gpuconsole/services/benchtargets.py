"""What can be measured from where one is: a container, an image on one of the GPUs, or something to run on a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpuconsole.core.text import size
from gpuconsole.gpu.names import short_name
from gpuconsole.images.reference import shorter
from gpuconsole.launch.claims import Claimant
from gpuconsole.launch.gpus import freedom
from gpuconsole.launch.spec import GpuWish, GpuWishKind
from gpuconsole.launch.units import GpuUnit

if TYPE_CHECKING:
    from gpuconsole.engine.model import Container
    from gpuconsole.host.model import GpuView, HostView
    from gpuconsole.services.containers import ContainerView
    from gpuconsole.services.images import ImageView


@dataclass(frozen=True, slots=True)
class BenchTarget:
    """Something that can be measured."""

    title: str
    """``llama-ft``, or where an image would be measured: ``GPU 2 H200``."""
    note: str
    """How, and who else is there."""
    container: Container | None = None
    """It is measured inside this."""
    image: tuple[str, str] | None = None
    """Name and id of what is measured in a fresh container."""
    gpus: GpuWish | None = None
    """The fresh container's GPUs; None gives it one where there is one."""
    shared: bool = False
    """Others hold the GPU now: what they do is in the figures."""
    given: bool = False
    """Containers run that were given the GPU and have nothing on it now: they may begin at any moment."""


def of_container(view: ContainerView) -> tuple[BenchTarget, ...]:
    """A container that runs."""
    gpus = view.gpus
    words = "GPUs that are not known" if gpus is None else "the CPU: it has no GPU" if not gpus else ", ".join(
        f"GPU {'?' if gpu.index is None else gpu.index}" for gpu in gpus
    )  # fmt: skip
    used = bool(view.gpus) and bool(view.gpu_memory_bytes)
    note = f"inside, on {words}" + (f"; {size(view.gpu_memory_bytes)} of GPU memory are in use" if used else "")
    return (BenchTarget(view.container.name, note, container=view.container, shared=used),)


def of_image(view: ImageView, host: HostView | None) -> tuple[BenchTarget, ...]:
    """An image on each GPU, the freest first, on all of them, and on the CPU; that first where its torch is so."""
    image = (view.image.name, view.image.id)
    found = [_fresh(image, gpu) for gpu in _freest(host)]
    if len(found) > 1:
        shared, given = any(target.shared for target in found), any(target.given for target in found)
        said = _TAKEN if shared else _GIVEN if given else ""
        note = f"also what is between them{said}"
        found.append(BenchTarget("all GPUs", note, image=image, gpus=GpuWish(GpuWishKind.ALL),
                                 shared=shared, given=given))  # fmt: skip
    if host is None and view.facts.cpu_only is not True:
        found.append(BenchTarget("one GPU", "a fresh container with the freest GPU, where there is one", image=image))
    cpu = BenchTarget("the CPU", "a fresh container without a GPU", image=image, gpus=GpuWish(GpuWishKind.NONE))
    return (cpu, *found) if view.facts.cpu_only else (*found, cpu)


def of_gpu(gpu: GpuView, containers: Sequence[ContainerView], images: Sequence[ImageView]) -> tuple[BenchTarget, ...]:
    """The running containers that have the GPU, then each local image with a torch for it, in a fresh container."""
    found: list[BenchTarget] = []
    for view in containers:
        if view.container.running and any(each.uuid == gpu.gpu.uuid for each in view.gpus or () if each.uuid):
            (target,) = of_container(view)
            others = "" if view.gpus is None or len(view.gpus) == 1 else f" and its {len(view.gpus) - 1} others"
            found.append(BenchTarget(target.title, f"{target.note}{others}", target.container, shared=target.shared))
    for image in images:
        facts = image.facts
        fits = image.verdict is None or image.verdict.word.value != "will_not_run"
        if facts.torch is not None and not facts.cpu_only and fits:
            one = _fresh((image.image.name, image.image.id), gpu)
            found.append(BenchTarget(shorter(image.image.name), one.note, image=one.image, gpus=one.gpus,
                                     shared=one.shared, given=one.given))  # fmt: skip
    return tuple(found)


_TAKEN = "; others use some of them"
_GIVEN = "; others were given some of them"


def _freest(host: HostView | None) -> list[GpuView]:
    if host is None or host.snapshot.problem:
        return []
    there = [view for view in host.gpus if not view.gpu.problem and view.gpu.uuid]
    return sorted(there, key=_freedom)


def _freedom(view: GpuView) -> tuple[bool, tuple[int, ...]]:
    """The order in which a launch takes GPUs: those that nobody is on or was given come first."""
    claimants = tuple(map(Claimant, view.given_to))
    # Processes on its instances are not in the list of the whole.
    return bool(view.gpu.migs and view.holders), freedom(GpuUnit(view.gpu, claimants=claimants))


def _fresh(image: tuple[str, str], view: GpuView) -> BenchTarget:
    gpu = view.gpu
    name = f"GPU {gpu.index} {short_name(gpu.name)}"
    holders = list(dict.fromkeys(one.container_name or one.user or f"pid {one.pid}" for one in view.holders))
    idle = [each for each in view.given_to if each not in holders]
    used = "" if gpu.memory_used_bytes is None or not holders else f", {size(gpu.memory_used_bytes)}"
    said = [f"held by {_few(holders)}{used}"] if holders else []
    said += [f"given to {_few(idle)} (idle)"] if idle else []
    wish = GpuWish(GpuWishKind.DEVICES, devices=(gpu.uuid,)) if gpu.uuid else None
    note = f"{'; '.join(said) or 'free'}; in a fresh container"  # what matters first: a narrow list cuts the end
    return BenchTarget(name, note, image=image, gpus=wish,
                       shared=bool(holders), given=bool(idle))  # fmt: skip


def _few(names: Sequence[str]) -> str:
    return f"{', '.join(names[:2])}{' …' if len(names) > 2 else ''}"
