"""Ring once when something ends, or when a GPU is free: the marks, and what becomes of each as news comes.

What cannot be known now is no end: an engine that is away, a driver that does not answer, a GPU that is lost.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpuconsole.gpu.model import GpuStatus
from gpuconsole.gpu.state import MemoryState
from gpuconsole.host.model import GpuView, Holder, HostView
from gpuconsole.host.state import memory_state
from gpuconsole.services.kinds import is_container
from gpuconsole.services.runs import Run

if TYPE_CHECKING:
    from gpuconsole.services.containers import ContainerView

    Thing = ContainerView | Holder | Run | GpuView

FREE_LOOKS = 2
"""Looks in a row at which a GPU is free before it counts: between two jobs of a script it is free for a moment."""


def process_key(holder: Holder) -> str:
    """Names a process on a GPU for good, also when its pid is used again."""
    return f"{holder.pid}/{holder.started_at or 0:.0f}/{holder.mig_uuid or holder.gpu_uuid or holder.gpu_index}"


def gpu_key(view: GpuView) -> str:
    """Names a GPU: its UUID, else its index."""
    return view.gpu.uuid or f"index-{view.gpu.index}"


def key_of(thing: object) -> str:
    """Names a thing that can be marked, whatever it is; empty for one that cannot."""
    if is_container(thing):
        return f"container {thing.container.id}"
    if isinstance(thing, Holder):
        return f"process {process_key(thing)}"
    if isinstance(thing, Run):
        return f"run {thing.id}"
    return f"gpu {gpu_key(thing)}" if isinstance(thing, GpuView) else ""


@dataclass(slots=True)
class _Mark:
    """One thing that is waited for."""

    name: str
    """As a sentence begins with it."""
    gpu: str = ""
    """Of a process, the key of its GPU."""
    started_at: float | None = None
    """Of a container."""
    free_looks: int = 0
    """Of a GPU."""
    seen_at: float = 0.0


class Ringing:
    """What is waited for. For one thread."""

    def __init__(self) -> None:
        self._marks: dict[str, _Mark] = {}

    @property
    def marked(self) -> frozenset[str]:
        """Keys of what is waited for, as :func:`key_of` gives them."""
        return frozenset(self._marks)

    def toggle(self, thing: Thing) -> str:
        """Wait for ``thing``, or do so no more; returns what is to be told."""
        key = key_of(thing)
        if self._marks.pop(key, None) is not None:
            return "It does not ring any more."
        mark, over, when = _mark(thing)
        if over:
            return over
        self._marks[key] = mark
        return f"It rings when {mark.name} {when}."

    def containers_listed(self, views: Iterable[ContainerView]) -> tuple[str, ...]:
        """The engine's containers are these; returns a sentence for each that rings."""
        known = {key_of(view): view for view in views}
        return self._settle({key: _container_end(mark, known.get(key)) for key, mark in self._of("container ")})

    def runs_changed(self, runs: Iterable[Run]) -> tuple[str, ...]:
        """The runs are these; returns a sentence for each that rings."""
        known = {key_of(run): run for run in runs}
        return self._settle({key: _run_end(mark, known.get(key)) for key, mark in self._of("run ")})

    def host_looked(self, host: HostView) -> tuple[str, ...]:
        """The GPUs and who holds them are so; returns a sentence for each that rings."""
        if host.snapshot.problem is not None:
            return ()
        gpus = {gpu_key(view): view for view in host.gpus}
        holders = {key_of(holder) for view in host.gpus for holder in view.holders}
        ends = {
            key: "" if key in holders else _process_end(mark, gpus.get(mark.gpu)) for key, mark in self._of("process ")
        }
        known = {key_of(view): view for view in host.gpus}
        frees = {key: _gpu_free(mark, known.get(key), host.snapshot.taken_at) for key, mark in self._of("gpu ")}
        return self._settle(ends | frees)

    def _of(self, kind: str) -> list[tuple[str, _Mark]]:
        return [(key, mark) for key, mark in self._marks.items() if key.startswith(kind)]

    def _settle(self, ends: dict[str, str]) -> tuple[str, ...]:
        """Forget what has ended; it rings once."""
        rang = {key: words for key, words in ends.items() if words}
        for key in rang:
            del self._marks[key]
        return tuple(rang.values())


def _mark(thing: Thing) -> tuple[_Mark, str, str]:
    """The mark; why there is nothing to wait for, else empty; what is waited for."""
    if is_container(thing):
        container = thing.container
        over = "" if container.running else f"{container.name} does not run."
        return _Mark(container.name, started_at=container.started_at), over, "ends"
    if isinstance(thing, Holder):
        mark = _Mark(f"process {thing.pid}", gpu=thing.gpu_uuid or f"index-{thing.gpu_index}")
        return mark, "", f"lets go of GPU {thing.gpu_index}"
    if isinstance(thing, Run):
        name = f"the {thing.kind.value} of {thing.subject}"
        return _Mark(name), f"{_first(name)} is over." if thing.ended else "", "is over"
    name = f"GPU {thing.gpu.index}"
    return _Mark(name), f"{name} is free already." if _is_free(thing) else "", "is free"


def _first(text: str) -> str:
    return text[:1].upper() + text[1:]


def _is_free(view: GpuView) -> bool:
    return view.gpu.status is GpuStatus.OK and memory_state(view) is MemoryState.FREE


def _container_end(mark: _Mark, view: ContainerView | None) -> str:
    if view is None:
        return f"{mark.name} has ended, and was removed."
    from gpuconsole.services.endings import describe_ending

    container = view.container
    if not container.running:
        how = describe_ending(container)
        return f"{container.name} has ended: {how.rstrip('.')}." if how else f"{container.name} has ended."
    if mark.started_at is not None and container.started_at is not None and container.started_at > mark.started_at:
        return f"{container.name} has ended, and was started again."
    return ""


def _run_end(mark: _Mark, run: Run | None) -> str:
    if run is None:
        return f"{_first(mark.name)} is over."
    return f"{_first(mark.name)} is over: {run.state.value}. {run.headline}".strip() if run.ended else ""


def _process_end(mark: _Mark, gpu: GpuView | None) -> str:
    """How a process that is not listed any more has ended; empty while its GPU does not tell."""
    if gpu is None:
        return f"{_first(mark.name)} has ended: its GPU is not there any more."
    if gpu.gpu.status is not GpuStatus.OK or gpu.gpu.processes is None:
        return ""
    return f"{_first(mark.name)} has let go of GPU {gpu.gpu.index}."


def _gpu_free(mark: _Mark, view: GpuView | None, taken_at: float) -> str:
    if view is None:
        return f"{mark.name} is not there any more."
    if not _is_free(view):
        mark.free_looks = 0
    elif taken_at != mark.seen_at:
        mark.free_looks += 1
    mark.seen_at = taken_at
    return f"{mark.name} is free." if mark.free_looks >= FREE_LOOKS else ""
