"""Who holds the GPUs: NVML's pids joined with what this machine knows of the processes."""

from __future__ import annotations

from gpuconsole.core.records import fields
from gpuconsole.core.text import plain_line
from gpuconsole.gpu.model import Gpu, GpuProcess, GpuSnapshot
from gpuconsole.host.accounting import NO_SHARE, SystemMemory, account_of, account_of_instance, distinct
from gpuconsole.host.evidence import Evidence
from gpuconsole.host.model import GpuView, Holder, HostView
from gpuconsole.host.processes import BLIND, BLIND_HINT, WINDOWS, ProcessFacts, ProcessTable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class HolderTable:
    """Turns snapshots into views of the host; remembers processes from one look to the next.

    Args:
        processes: Where processes are looked up; ``/proc`` when None.
    """

    def __init__(self, processes: ProcessTable | None = None) -> None:
        self._processes = processes or ProcessTable()
        self._evidence = Evidence(self._processes)

    def view(self, snapshot: GpuSnapshot, *, names: Mapping[str, str] | None = None) -> HostView:
        """The GPUs of ``snapshot`` with their holders as they are now, and where their memory is.

        Args:
            snapshot: Taken just before; processes that began after it are not believed to be its.
            names: Container names by full id, as far as the caller knows them.
        """
        names = names or {}
        pids = {process.pid for gpu in snapshot.gpus for process in _listed(gpu)}
        facts = self._processes.look(pids | self._evidence.pids, listed_at=snapshot.taken_at, known=names)
        system = None
        if any(gpu.unified_memory and gpu.memory_total_bytes is None for gpu in snapshot.gpus):
            system = system_memory(self._processes)
        return HostView(
            snapshot=snapshot,
            gpus=tuple(self._gpu_view(gpu, facts, names, system) for gpu in snapshot.gpus),
            notes=self._notes() if pids else (),
        )

    def _notes(self) -> tuple[str, ...]:
        if not self._processes.blind:
            return ()
        return (f"Who holds the GPUs is not known: {WINDOWS}.",) if self._processes.windows else (
            f"{BLIND}; {BLIND_HINT}.",
        )  # fmt: skip

    def _gpu_view(
        self, gpu: Gpu, facts: Mapping[int, ProcessFacts], names: Mapping[str, str], system: SystemMemory | None
    ) -> GpuView:
        unattributed = gpu.unattributed_bytes
        holders = distinct(_holder(gpu, process, facts[process.pid], names) for process in _listed(gpu))
        self._evidence.see(gpu, holders)

        def why(count: int) -> str:
            return self._evidence.reasons(gpu, holders, facts, count)

        return GpuView(
            gpu=gpu,
            holders=holders,
            unattributed_bytes=unattributed,
            unknown={} if unattributed is not None else {"unattributed_bytes": _why_unattributed_is_unknown(gpu)},
            account=self._evidence.lasting(gpu, account_of(gpu, holders, why=why, system=system)),
            instances=tuple(account_of_instance(mig, holders, why=why) for mig in gpu.migs),
        )


def _listed(gpu: Gpu) -> Iterator[GpuProcess]:
    """The processes of a GPU and of its MIG instances."""
    yield from gpu.processes or ()
    for mig in gpu.migs:
        yield from mig.processes or ()


def system_memory(processes: ProcessTable) -> SystemMemory | None:
    """The machine's memory, from ``/proc/meminfo``; None when that does not tell it."""
    found: dict[bytes, int] = {}
    try:
        with open(f"{processes.proc}/meminfo", "rb") as file:
            text = file.read()
        for line in text.splitlines():
            name, _, rest = line.partition(b":")
            if name in (b"MemTotal", b"MemAvailable"):
                found[name] = int(rest.split()[0]) * 1024
        return SystemMemory(found[b"MemTotal"], found[b"MemAvailable"])
    except (OSError, ValueError, LookupError):
        return None


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
        unknown["memory_bytes"] = NO_SHARE
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
