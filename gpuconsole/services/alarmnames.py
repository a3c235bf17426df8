"""What the forecaster's subjects are called, and by which key each is known for good."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpuconsole.core.text import plain_line
from gpuconsole.gpu.forecast_model import Assessment, Subject
from gpuconsole.services.ringing import gpu_key, process_key

if TYPE_CHECKING:
    from gpuconsole.engine.model import Container
    from gpuconsole.host.model import Holder, HostView

Name = tuple[Subject, str]
"""As an assessment names its subject."""


@dataclass(frozen=True, slots=True)
class Named:
    """What a subject is called."""

    key: str
    """Names it for good: a process by pid, beginning and GPU."""
    name: str
    """As a sentence begins with it: ``Process 812 of train on GPU 0``."""
    container_id: str | None = None


def names_of(host: HostView, containers: Iterable[Container] = ()) -> dict[Name, Named]:
    """What everything is called that the forecaster may speak of.

    Args:
        host: The GPUs and their holders.
        containers: Those that are known.
    """
    names: dict[Name, Named] = {}
    for view in host.gpus:
        index = view.gpu.index
        names[Subject.GPU, str(index)] = Named(f"gpu {gpu_key(view)}", f"GPU {index}")
        for holder in view.holders:
            names[Subject.PROCESS, f"{index}:{holder.pid}"] = process_name(holder)
    names[Subject.HOST, "host"] = Named("host", "The machine's memory")
    names[Subject.SHM, "host"] = Named("shm host", "/dev/shm")  # noqa: S108  # a name
    for each in containers:
        # Each run of it is another one: what was dismissed of the last says nothing of this.
        run = f"{each.id}/{each.started_at or 0:.0f}"
        names[Subject.CONTAINER, each.id] = Named(f"container {run}", f"Memory of {each.name}", each.id)
        names[Subject.SHM, each.id] = Named(f"shm {run}", f"/dev/shm of {each.name}", each.id)  # noqa: S108
    return names


def process_name(holder: Holder) -> Named:
    """What a process on a GPU is called."""
    whose = f" of {holder.container_name}" if holder.container_name else f" of {holder.user}" if holder.user else ""
    return Named(
        f"process {process_key(holder)}", f"Process {holder.pid}{whose} on GPU {holder.gpu_index}", holder.container_id
    )


def usual_name(said: Assessment) -> str:
    """What a subject is called of which nothing else is known."""
    if said.subject is Subject.PROCESS:
        return f"Process {said.pid} on GPU {said.gpu}"
    if said.subject is Subject.GPU:
        return f"GPU {said.gpu}"
    short = plain_line(said.id[:12])
    if said.subject is Subject.CONTAINER:
        return f"Memory of container {short}"
    if said.subject is Subject.HOST:
        return "The machine's memory"
    return "/dev/shm" if said.id == "host" else f"/dev/shm of {short}"  # noqa: S108  # a name
