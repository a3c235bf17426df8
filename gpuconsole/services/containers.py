"""The engine's containers together with what this machine knows of them: GPUs, GPU memory, CPU, memory, user."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING

from gpuconsole.core.errors import ConsoleError, NotFound
from gpuconsole.core.users import user_name
from gpuconsole.engine.model import Container, Image, Usage
from gpuconsole.gpu.model import Gpu
from gpuconsole.host.claims import ClaimedGpu, ClaimedGpus, resolve_claims
from gpuconsole.host.model import GpuView, Holder, HostView
from gpuconsole.host.processes import ENDED, REUSED
from gpuconsole.images.reference import parse, short
from gpuconsole.launch.labels import USER
from gpuconsole.services.containerusage import DEADLINE_S, WORKERS, Meter, usages_of
from gpuconsole.services.gather import gather
from gpuconsole.services.imagenames import written_name
from gpuconsole.services.ownership import main_process_uid

if TYPE_CHECKING:
    from gpuconsole.gpu.forecast_model import Assessment
    from gpuconsole.services.session import Session

_ELSEWHERE = "the engine is not on this machine"


class FoundBy(StrEnum):
    """How it is known that a container has a GPU."""

    CLAIM = "claim"
    """Its configuration says so."""
    PROCESS = "process"
    """A process of it was seen there, though its configuration names no GPU."""


@dataclass(frozen=True, slots=True)
class ContainerGpu:
    """A GPU of a container."""

    index: int | None
    uuid: str | None
    mig_uuid: str | None = None
    name: str | None = None
    found_by: FoundBy = FoundBy.CLAIM


@dataclass(frozen=True, slots=True)
class ContainerView:
    """A container, and what this machine knows of it. Unknown is None, and ``unknown`` says why."""

    container: Container
    gpus: tuple[ContainerGpu, ...] | None = ()
    """None when it has GPUs and which ones cannot be told."""
    gpu_memory_bytes: int | None = None
    """Held by its processes on all GPUs."""
    usage: Usage | None = None
    """None when it does not run, was not asked for, or could not be had."""
    user: str | None = None
    """Who launched it, or runs it."""
    image: str = ""
    """Its image in few words."""
    image_digest: str | None = None
    """``sha256:…`` that the registry knows the image by."""
    unknown: Mapping[str, str] = field(default_factory=dict)
    """Field → why it is None, one short phrase; for ``gpus`` also what does not fit this machine."""
    outlooks: tuple[Assessment, ...] = field(default=(), metadata={"derived": True})
    """Where its RAM, its ``/dev/shm`` and its processes' GPU memory go; empty while nobody watches them over time."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What is known beside the engine's own list, to join it with."""

    host: HostView | None = None
    """None when it cannot be known."""
    no_host: str = _ELSEWHERE
    """Why it cannot be known."""
    usages: Mapping[str, Usage | ConsoleError] = field(default_factory=dict)
    """By container id; containers that were not asked are missing."""
    images: Mapping[str, Image] = field(default_factory=dict)
    """By image id."""
    uid_of: Callable[[Container], int | None] = main_process_uid
    """The user id of a container's main process; None when it cannot be seen."""
    holding: frozenset[str | None] = field(init=False)
    """Ids of the containers whose processes are on a GPU."""

    def __post_init__(self) -> None:
        """See who holds something: with many containers and GPUs most pairs of them have nothing to do."""
        views = self.host.gpus if self.host is not None else ()
        found = frozenset(holder.container_id for each in views for holder in each.holders)
        object.__setattr__(self, "holding", found)


def containers(session: Session, *, usage: bool = True, everything: bool = True) -> tuple[ContainerView, ...]:
    """All containers of the session's engine, newest first.

    Args:
        session: The engine and the GPUs.
        usage: Also ask for CPU and memory of those that run, which takes a second or two.
        everything: Also those that do not run.

    Raises:
        ConsoleError: The engine cannot be asked for its list. Everything else that fails becomes an unknown.
    """
    return view(session, session.engine.containers(everything=everything), usage=usage)


def view(session: Session, listed: Sequence[Container], *, usage: bool = True) -> tuple[ContainerView, ...]:
    """``listed`` joined with what this machine knows of them."""
    from gpuconsole.services.overview import overview

    engine = session.engine
    local = engine.info().local
    asked = [one for one in listed if usage and one.running]
    meter = Meter(asked if local else ())
    image_ids = list(dict.fromkeys(one.image_id for one in listed if one.image_id))
    names = {one.id: one.name for one in listed}
    looks: list[Callable[[], object]] = [partial(overview, session, names=names)] if local else []
    lookups: list[Callable[[], object]] = [partial(engine.image, image_id) for image_id in image_ids]
    answers = list(gather([*looks, *lookups], workers=WORKERS, deadline_s=DEADLINE_S))
    host = answers.pop(0) if local else None
    known = Surroundings(
        host=host if isinstance(host, HostView) else None,
        no_host="the GPU driver does not answer" if local else _ELSEWHERE,
        usages=usages_of(engine, asked, meter),
        images={key: answer for key, answer in zip(image_ids, answers, strict=True) if isinstance(answer, Image)},
    )
    # One that vanished after it was listed is left out, as the engine's own list would by now.
    return tuple(join(one, known) for one in listed if not isinstance(known.usages.get(one.id), NotFound))


def join(container: Container, known: Surroundings) -> ContainerView:
    """One container with what is known beside it."""
    unknown: dict[str, str] = {}
    digest = _digest(container, known.images.get(container.image_id))
    usage, user = _usage(container, known, unknown), _user(container, known, unknown)
    gpus, memory = _gpus(container, known, unknown)
    return ContainerView(
        container=container,
        gpus=gpus,
        gpu_memory_bytes=memory,
        usage=usage,
        user=user,
        image=short(written_name(container, known.images), digest=digest),
        image_digest=digest,
        outlooks=known.host.outlooks_of(container.id) if known.host else (),
        unknown=unknown,
    )


def _usage(container: Container, known: Surroundings, unknown: dict[str, str]) -> Usage | None:
    answer = known.usages.get(container.id)
    if isinstance(answer, Usage):
        return answer
    if isinstance(answer, ConsoleError):
        unknown["usage"] = answer.message
    elif not container.running:
        unknown["usage"] = "it does not run"
    else:
        unknown["usage"] = "not asked for"
    return None


def _user(container: Container, known: Surroundings, unknown: dict[str, str]) -> str | None:
    if label := container.labels.get(USER):
        return label
    if known.host is None:
        unknown["user"] = known.no_host
    elif container.pid is None:
        unknown["user"] = "it does not run, and nothing says who launched it"
    else:
        uid = known.uid_of(container)
        if uid is not None:
            return user_name(uid)
        unknown["user"] = "its main process cannot be seen from here"
    return None


def _digest(container: Container, image: Image | None) -> str | None:
    """The digest the registry knows the image by: of the repository the container was made from, else the first."""
    digests = {name: digest for name, _, digest in (text.partition("@") for text in image.digests)} if image else {}
    try:
        reference = parse(container.image)
    except ValueError:
        return next(iter(digests.values()), None)
    return digests.get(reference.name) or reference.digest


def _gpus(
    container: Container, known: Surroundings, unknown: dict[str, str]
) -> tuple[tuple[ContainerGpu, ...] | None, int | None]:
    """Its GPUs and the memory its processes hold there."""
    host = known.host
    if host is None:
        claimed = resolve_claims(container.gpu_claims, None, unknown=known.no_host)
        unknown["gpu_memory_bytes"] = known.no_host
    elif host.snapshot.problem is not None:
        claimed = resolve_claims(container.gpu_claims, None, unknown=host.snapshot.problem)
        unknown["gpu_memory_bytes"] = host.snapshot.problem
    else:
        claimed = resolve_claims(container.gpu_claims, [gpu.gpu for gpu in host.gpus])
    if claimed.reason is not None:
        unknown["gpus"] = claimed.reason
    gpus = _named(claimed, container, host, holds=container.id in known.holding)
    if "gpu_memory_bytes" in unknown or host is None:
        return gpus, None
    return gpus, _memory(container, host, gpus, unknown)


def _named(
    claimed: ClaimedGpus, container: Container, host: HostView | None, *, holds: bool
) -> tuple[ContainerGpu, ...] | None:
    if claimed.gpus is None:
        return None
    if not claimed.gpus and not holds:
        return ()
    views = host.gpus if host is not None else ()
    names = {gpu_view.gpu.uuid: gpu_view.gpu.name for gpu_view in views}
    gpus = [_container_gpu(gpu, names.get(gpu.uuid)) for gpu in claimed.gpus]
    for gpu_view in views if holds else ():
        gpu = gpu_view.gpu
        if any(gpu.index == other.index for other in gpus) or not _held(gpu_view, container):
            continue
        gpus.append(ContainerGpu(index=gpu.index, uuid=gpu.uuid, name=gpu.name, found_by=FoundBy.PROCESS))
    return tuple(gpus)


def _container_gpu(gpu: ClaimedGpu, name: str | None) -> ContainerGpu:
    return ContainerGpu(index=gpu.index, uuid=gpu.uuid, mig_uuid=gpu.mig_uuid, name=name)


def _held(gpu_view: GpuView, container: Container) -> tuple[Holder, ...]:
    return tuple(holder for holder in gpu_view.holders if holder.container_id == container.id)


def _memory(
    container: Container, host: HostView, gpus: tuple[ContainerGpu, ...] | None, unknown: dict[str, str]
) -> int | None:
    """GPU memory its processes hold; unknown as soon as one of them, or one GPU's list, is unknown."""
    if not container.running:
        unknown["gpu_memory_bytes"] = "it does not run"
        return None
    indices = None if gpus is None else {gpu.index for gpu in gpus}
    total = 0
    for gpu_view in host.gpus:
        gpu = gpu_view.gpu
        if indices is not None and gpu.index not in indices:
            continue
        if not _listable(gpu, gpus):
            unknown["gpu_memory_bytes"] = f"the processes of GPU {gpu.index} cannot be listed"
            return None
        for holder in gpu_view.holders:
            reason = _obscure(holder, container)
            if reason is not None:
                unknown["gpu_memory_bytes"] = reason
                return None
            if holder.container_id == container.id:
                total += holder.memory_bytes or 0
    return total


def _listable(gpu: Gpu, gpus: tuple[ContainerGpu, ...] | None) -> bool:
    """Whether the processes on that part of ``gpu`` can be listed which the container has."""
    own = None if gpus is None else {one.mig_uuid for one in gpus if one.index == gpu.index}
    unlisted = [mig for mig in gpu.migs if mig.processes is None]
    return gpu.processes is not None and not any(own is None or None in own or mig.uuid in own for mig in unlisted)


def _obscure(holder: Holder, container: Container) -> str | None:
    """Why ``holder`` makes the container's GPU memory unknown; None when it does not."""
    if holder.container_id == container.id and holder.memory_bytes is None:
        return holder.unknown.get("memory_bytes") or "the driver does not tell the memory of a process"
    if holder.container_id is None and holder.unknown.get("container_id", ENDED) not in (ENDED, REUSED):
        return f"process {holder.pid} on GPU {holder.gpu_index} may be its own: {holder.unknown['container_id']}"
    return None
