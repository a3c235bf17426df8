"""Where every memory is going, look by look: what each look saw as a sample, and what the forecaster says of it.

A recording is watched by the same class, with the samples that it holds: what was said live is said again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from gpuconsole.gpu.forecast import Forecaster
from gpuconsole.gpu.forecast_model import (
    HOST_ID,
    SHM_OF,
    Assessment,
    GpuMemory,
    MemorySample,
    PoolMemory,
    ProcessMemory,
    Settings,
    Subject,
)
from gpuconsole.gpu.model import GpuStatus
from gpuconsole.gpu.state import MemoryState
from gpuconsole.host.memories import has_own_shm, ram_of_host, shm_of_container, shm_of_host

if TYPE_CHECKING:
    from gpuconsole.engine.model import Container, Usage
    from gpuconsole.gpu.model import Gpu
    from gpuconsole.host.model import GpuView, HostView

_NOT_OK = "the GPU does not answer"
_NOT_TOLD = "the driver does not tell its memory"


class MemoryWatch:
    """Watches the memories of one machine. For one thread; :attr:`last` may be read by any.

    Args:
        settings: The forecast's numbers.
        clock: Seconds that never go back, and stand still while the machine is suspended, as its processes do.
    """

    def __init__(self, settings: Settings | None = None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings or Settings()
        self._forecaster = Forecaster(self._settings)
        self._clock = clock
        self._began: float | None = None
        self._began_at: dict[tuple[int, int], float | None] = {}
        """GPU and pid → when the process began, of the last look: a pid may be given to another process."""
        self._gpus: tuple[GpuMemory, ...] = ()
        self._looks: dict[int, int] = {}
        """GPU → looks in a row that it was seen."""
        self.last: tuple[Assessment, ...] = ()
        """What was said of every memory after the last sample."""

    def look(
        self, view: HostView, containers: Sequence[Container] = (), usages: Mapping[str, Usage] | None = None
    ) -> HostView:
        """Take what was just seen, read the rest of the machine's memories, and say where each is going.

        Args:
            view: The GPUs and their holders.
            containers: Those of this machine; none of an engine elsewhere.
            usages: What is known of their RAM, by id.
        """
        now = self._clock()
        if self._began is None:
            self._began = now
        gpus = self._gpus_of(view)
        pools = (*_host_pools(), *_container_pools(containers, usages or {}))
        sample = MemorySample(round(now - self._began, 3), gpus, pools)
        self.take(sample)
        return replace(self.shown(view), memory=sample)

    def take(self, sample: MemorySample) -> None:
        """Take the next sample; one that is not later than the last is left out."""
        said = self._forecaster.feed(sample)
        if said:
            self.last = said
            seen = [gpu.index for gpu in sample.gpus if gpu.used_bytes is not None]
            self._looks = {index: self._looks.get(index, 0) + 1 for index in seen}

    def shown(self, view: HostView) -> HostView:
        """``view`` with what is ahead of its GPUs and processes, and of all else."""
        gpus = {each.gpu: each for each in self.last if each.subject is Subject.GPU}
        processes = {(each.gpu, each.pid): each for each in self.last if each.subject is Subject.PROCESS}
        return replace(
            view, gpus=tuple(self._with_outlook(each, gpus, processes) for each in view.gpus), outlooks=self.last
        )

    def _with_outlook(
        self,
        view: GpuView,
        gpus: Mapping[int | None, Assessment],
        processes: Mapping[tuple[int | None, int | None], Assessment],
    ) -> GpuView:
        index = view.gpu.index
        said = gpus.get(index)
        if said is None or not _is_watched(view.gpu):
            return view
        if said.state is MemoryState.FREE:
            said = None  # nothing is ahead of it; who holds it is seen in one look, and better there
        elif said.state is MemoryState.STEADY and self._looks.get(index, 0) < self._settings.idle_samples:
            said = None  # whether it computes at all is not known before
        holders = tuple(
            replace(each, outlook=found) if (found := processes.get((index, each.pid))) and _is_news(found) else each
            for each in view.holders
        )
        return replace(view, outlook=said, holders=holders)

    def _gpus_of(self, view: HostView) -> tuple[GpuMemory, ...]:
        """What the forecaster reads of the GPUs; of a driver that is away, that they cannot be read."""
        problem = view.snapshot.problem
        if problem is not None and not view.gpus:
            return tuple(replace(each, used_bytes=None, free_bytes=None, processes=None, problem=problem)
                         for each in self._gpus)  # fmt: skip
        began = {(each.gpu.index, holder.pid): holder.started_at for each in view.gpus for holder in each.holders}
        taken_over = {
            key
            for key, at in began.items()
            if at is not None and self._began_at.get(key) is not None and abs(at - (self._began_at[key] or 0)) > 1
        }
        self._began_at = {key: at for key, at in began.items() if key not in taken_over}
        self._gpus = tuple(_gpu(each, taken_over) for each in view.gpus if _is_watched(each.gpu))
        return self._gpus


def _is_watched(gpu: Gpu) -> bool:
    """Its memory is one: neither divided into instances, nor the processor's own, which the host's RAM is."""
    return not gpu.migs and not gpu.unified_memory


def _is_news(said: Assessment) -> bool:
    """There is more to say of a process than that it is calm."""
    return said.rate_bytes_s is not None or said.state is MemoryState.LOADING


def _gpu(view: GpuView, taken_over: set[tuple[int, int]]) -> GpuMemory:
    gpu = view.gpu
    total = gpu.memory_total_bytes
    if gpu.status is not GpuStatus.OK:
        return GpuMemory(gpu.index, total, None, None, None, None, gpu.problem or _NOT_OK)
    names = {holder.pid: holder.container_name or "" for holder in view.holders}
    processes = None
    if gpu.processes is not None:
        # A process whose pid was another's at the look before: left out once, so that the other one ends.
        listed = (each for each in gpu.processes if (gpu.index, each.pid) not in taken_over)
        processes = tuple(ProcessMemory(each.pid, each.memory_bytes, names.get(each.pid, "")) for each in listed)
    reason = gpu.unknown.get("memory_used_bytes") or gpu.unknown.get("memory_total_bytes")
    return GpuMemory(
        index=gpu.index,
        total_bytes=total,
        used_bytes=gpu.memory_used_bytes,
        free_bytes=gpu.memory_free_bytes,
        utilization_pct=gpu.utilization_pct,
        processes=processes,
        problem=reason or _NOT_TOLD,
    )


def _host_pools() -> Iterator[PoolMemory]:
    used, total = ram_of_host()
    if total is not None:
        yield PoolMemory(Subject.HOST, HOST_ID, "this machine's memory", used, total)
    shm, size = shm_of_host()
    if size is not None:
        yield PoolMemory(Subject.SHM, HOST_ID, "/dev/shm", shm, size)  # noqa: S108  # a name


def _container_pools(containers: Sequence[Container], usages: Mapping[str, Usage]) -> Iterator[PoolMemory]:
    for one in containers:
        if not one.running:
            continue
        usage = usages.get(one.id)
        if usage is not None:
            used = usage.memory_bytes if usage.memory_kept_bytes is None else usage.memory_kept_bytes
            yield PoolMemory(Subject.CONTAINER, one.id, one.name, used, usage.memory_limit_bytes)
        elif one.memory_limit_bytes is not None:
            yield PoolMemory(Subject.CONTAINER, one.id, one.name, None, one.memory_limit_bytes)
        if one.pid is not None and has_own_shm(one):
            used, size = shm_of_container(one.pid)
            if size is not None:
                yield PoolMemory(Subject.SHM, one.id, f"{SHM_OF}{one.name}", used, size)
