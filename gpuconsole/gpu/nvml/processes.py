"""The processes on a GPU: NVML's three lists (compute, graphics, MPS) merged into one without counting twice."""

from __future__ import annotations

from gpuconsole.core.records import dataclass
from gpuconsole.gpu.model import GpuProcess, ProcessKind
from gpuconsole.gpu.nvml.codes import ABSENT, INSUFFICIENT_SIZE
from gpuconsole.gpu.nvml.gateway import Failure
from gpuconsole.gpu.nvml.sheet import Sheet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

PID_LIMIT = 1 << 22
"""No Linux numbers a process higher (PID_MAX_LIMIT)."""

NO_INSTANCE = 0xFFFF_FFFF
"""Instance number of a process outside MIG."""

_LISTS = (
    (ProcessKind.MPS, "nvmlDeviceGetMPSComputeRunningProcesses"),
    (ProcessKind.COMPUTE, "nvmlDeviceGetComputeRunningProcesses"),
    (ProcessKind.GRAPHICS, "nvmlDeviceGetGraphicsRunningProcesses"),
)
"""A process in several lists is of the first kind that lists it."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A process as NVML lists it, with the MIG instance by number."""

    pid: int
    memory_bytes: int | None
    kind: ProcessKind
    gpu_instance: int | None = None
    compute_instance: int | None = None

    def process(self, mig_uuid: str | None = None) -> GpuProcess:
        """The process as the model has it."""
        return GpuProcess(self.pid, self.memory_bytes, self.kind, mig_uuid)


def take_processes(sheet: Sheet, *, total_bytes: int | None) -> tuple[Entry, ...] | None:
    """Read and merge the lists; None, with the reason on the sheet, when the compute list cannot be read.

    Args:
        sheet: Of a GPU or MIG instance.
        total_bytes: Its memory: a process that seems to hold more holds an unknown amount.
    """
    entries: list[Entry] = []
    for kind, function in _LISTS:
        listed = _list(sheet, function)
        if not isinstance(listed, Failure):
            entries.extend(_entry(info, kind) for info in listed)
        elif kind is ProcessKind.COMPUTE:
            sheet.lack(listed.reason, "processes")
            return None
        elif listed.code not in ABSENT:
            sheet.notes.append(f"The list of {kind} processes could not be read: {listed.reason}.")
    believed, notes = sift(entries, total_bytes=total_bytes)
    sheet.notes.extend(notes)
    return merge(believed)


def _list(sheet: Sheet, function: str) -> list[Any] | Failure:
    """One list, by the newest form of the call that the library has."""
    answer: list[Any] | Failure = []
    for version in ("_v3", "_v2", ""):
        answer = sheet.ask(function + version)
        if isinstance(answer, Failure) and answer.code == INSUFFICIENT_SIZE:
            answer = sheet.ask(function + version)  # processes came between the question for the size and the list
        if not isinstance(answer, Failure) or answer.code not in ABSENT:
            break
    return answer


def _entry(info: Any, kind: ProcessKind) -> Entry:
    memory = info.usedGpuMemory  # None where the library gave all ones: it does not know
    return Entry(
        pid=int(info.pid),
        memory_bytes=None if memory is None else int(memory),
        kind=kind,
        gpu_instance=_instance(info, "gpuInstanceId"),
        compute_instance=_instance(info, "computeInstanceId"),
    )


def _instance(info: Any, field: str) -> int | None:
    number = getattr(info, field, NO_INSTANCE)
    return None if number == NO_INSTANCE else int(number)


def sift(entries: Iterable[Entry], *, total_bytes: int | None) -> tuple[list[Entry], list[str]]:
    """Leave out what cannot be, and say so: a library of another driver generation lays its lists out differently."""
    kept: list[Entry] = []
    nonsense = too_large = 0
    for entry in entries:
        if not 0 < entry.pid <= PID_LIMIT:
            nonsense += 1
        elif total_bytes is not None and entry.memory_bytes is not None and entry.memory_bytes > total_bytes:
            too_large += 1
            kept.append(Entry(entry.pid, None, entry.kind, entry.gpu_instance, entry.compute_instance))
        else:
            kept.append(entry)
    notes = []
    if nonsense:
        notes.append(f"{_count(nonsense)} with an impossible pid left out: driver and its library do not fit.")
    if too_large:
        notes.append(f"{_count(too_large)} seemed to hold more memory than there is; their share is unknown.")
    return kept, notes


def _count(number: int) -> str:
    return "1 listed process" if number == 1 else f"{number} listed processes"


def merge(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """One entry for each process and instance, by memory, the largest first.

    NVML gives a process that computes and draws in both lists, each time with all its memory: the larger figure is
    its share, not the sum.
    """
    merged: dict[tuple[int, int | None, int | None], Entry] = {}
    for entry in entries:
        key = (entry.pid, entry.gpu_instance, entry.compute_instance)
        seen = merged.get(key)
        if seen is None:
            merged[key] = entry
        else:
            known = [size for size in (seen.memory_bytes, entry.memory_bytes) if size is not None]
            merged[key] = Entry(entry.pid, max(known, default=None), seen.kind, *key[1:])
    return tuple(sorted(merged.values(), key=lambda entry: (-(entry.memory_bytes or 0), entry.pid)))
