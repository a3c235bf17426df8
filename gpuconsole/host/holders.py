"""Who holds the GPUs: NVML's pids joined with what this machine knows of the processes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields

from gpuconsole.core.text import plain_line
from gpuconsole.gpu.model import Gpu, GpuProcess, GpuSnapshot
from gpuconsole.host.model import GpuView, Holder, HostView
from gpuconsole.host.processes import BLIND, BLIND_HINT, ProcessFacts, ProcessTable


class HolderTable:
    """Turns snapshots into views of the host; remembers CPU times from one look to the next.

    Args:
        processes: Where processes are looked up; ``/proc`` when None.
    """

    def __init__(self, processes: ProcessTable | None = None) -> None:
        self._processes = processes or ProcessTable()

    def view(self, snapshot: GpuSnapshot, *, names: Mapping[str, str] | None = None) -> HostView:
        """The GPUs of ``snapshot`` with their holders as they are now.

        Args:
            snapshot: Taken just before; processes that began after it are not believed to be its.
            names: Container names by full id, as far as the caller knows them.
        """
        pids = {process.pid for gpu in snapshot.gpus for process in _listed(gpu)}
        facts = self._processes.look(pids, listed_at=snapshot.taken_at)
        blind = bool(pids) and self._processes.blind
        return HostView(
            snapshot=snapshot,
            gpus=tuple(_gpu_view(gpu, facts, names or {}) for gpu in snapshot.gpus),
            notes=(f"{BLIND}; {BLIND_HINT}.",) if blind else (),
        )


def _listed(gpu: Gpu) -> Iterator[GpuProcess]:
    """The processes of a GPU and of its MIG instances."""
    yield from gpu.processes or ()
    for mig in gpu.migs:
        yield from mig.processes or ()


def _gpu_view(gpu: Gpu, facts: Mapping[int, ProcessFacts], names: Mapping[str, str]) -> GpuView:
    unattributed = gpu.unattributed_bytes
    return GpuView(
        gpu=gpu,
        holders=tuple(_holder(gpu, process, facts[process.pid], names) for process in _listed(gpu)),
        unattributed_bytes=unattributed,
        unknown={} if unattributed is not None else {"unattributed_bytes": _why_unattributed_is_unknown(gpu)},
    )


def _why_unattributed_is_unknown(gpu: Gpu) -> str:
    if gpu.memory_used_bytes is None:
        return gpu.unknown.get("memory_used_bytes", "the memory in use is unknown")
    if gpu.processes is None:
        return gpu.unknown.get("processes", "the list of processes is unknown")
    unknown = sum(process.memory_bytes is None for process in _listed(gpu))
    if unknown:
        return f"the driver does not tell the share of {unknown} of its processes"
    return "the processes of an instance could not be read"


def _holder(gpu: Gpu, process: GpuProcess, facts: ProcessFacts, names: Mapping[str, str]) -> Holder:
    unknown = dict(facts.unknown)
    if process.memory_bytes is None:
        unknown["memory_bytes"] = "the driver does not tell it"
    name = names.get(facts.container_id) if facts.container_id else None
    if facts.container_id and name is None:
        unknown["container_name"] = "the engine was not asked"
    known = {each.name: getattr(facts, each.name) for each in fields(facts)}
    return Holder(
        **(known | {"unknown": unknown}),
        gpu_index=gpu.index,
        gpu_uuid=gpu.uuid,
        memory_bytes=process.memory_bytes,
        kind=process.kind,
        mig_uuid=process.mig_uuid,
        container_name=None if name is None else plain_line(name),
    )
