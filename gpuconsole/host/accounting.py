"""From a GPU's figures and its processes to the account of its memory.

The driver's figures are read one after the other, so they need not fit each other. Used memory is believed first, then
the reserve, then free memory; processes that together claim more than is in use share it, or it changed between two
readings: what is too much is taken from the largest. So the sum is always right, and a note says what was done.
"""

from __future__ import annotations

from gpuconsole.core.records import dataclass, replace
from gpuconsole.core.text import size
from gpuconsole.gpu.model import Gpu, Mig
from gpuconsole.host.account import LISTED, Account, MemoryOf, Part, PartKind
from gpuconsole.host.model import GpuView, Holder
from gpuconsole.host.processes import ENDED, REUSED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    Why = Callable[[int], str]
    """Gives the reason for so many bytes that no process explains."""

NOBODY = "no process that the driver lists explains it"
UNATTRIBUTED_FROM = 64 * 2**20
"""Smaller amounts of memory that no process explains are the driver's own: page tables, rounding."""
TOO_LITTLE = "the driver's own, too little for a process"
NO_SHARE = "the driver does not tell it"
"""Why the share of a process is unknown."""
DEFUNCT = "it has ended, and gives its memory back once its parent has noticed (defunct)"
_DISCREPANCY_FROM = 2**20
"""Smaller contradictions between two readings are not worth a word."""


@dataclass(frozen=True, slots=True)
class SystemMemory:
    """The memory of the machine, as the kernel counts it."""

    total_bytes: int
    available_bytes: int
    """What programs can still get: free, or used for what can be dropped."""


def account_of(gpu: Gpu, holders: Iterable[Holder], *, why: Why, system: SystemMemory | None = None) -> Account:
    """Where the memory of ``gpu`` is.

    Args:
        gpu: With its figures.
        holders: Its processes.
        why: The reason for memory that no process explains; asked only if there is such memory.
        system: The machine's own memory, for GPUs that have none of their own.
    """
    found = distinct(holders)
    if gpu.memory_total_bytes is None and gpu.unified_memory and system is not None:
        return _of_system(found, system)
    if gpu.memory_total_bytes is None:
        return Account(reason=gpu.unknown.get("memory_total_bytes", "the driver does not tell how much memory it has"))
    notes: list[str] = []
    figures = _Figures(gpu.memory_total_bytes, gpu.memory_used_bytes, gpu.memory_reserved_bytes, gpu.memory_free_bytes)
    used = figures.used_at_most()
    parts = _divided(gpu, found, used, why, notes)
    return figures.completed(MemoryOf.GPU, parts, gpu.unknown.get("memory_used_bytes"), notes)


def account_in(view: GpuView) -> Account:
    """Where the memory of a GPU is that was looked at, also of one recorded before accounts were kept."""
    return view.account or account_of(view.gpu, view.holders, why=lambda count: NOBODY)


def use_of(view: GpuView) -> tuple[int | None, int | None]:
    """Bytes in use and in all of a GPU's memory; of the machine's, where the GPU has none of its own."""
    account = account_in(view)
    if account.of is MemoryOf.SYSTEM and account.total_bytes is not None:
        return account.total_bytes - account.bytes_of(PartKind.FREE), account.total_bytes
    return view.gpu.memory_used_bytes, view.gpu.memory_total_bytes


def account_of_instance(mig: Mig, holders: Iterable[Holder], *, why: Why) -> Account:
    """Where the memory of a MIG instance is.

    Args:
        mig: With its figures.
        holders: The processes of the GPU it is a part of, or its own.
        why: As for a GPU.
    """
    if mig.memory_total_bytes is None:
        return Account(
            of=MemoryOf.INSTANCE, reason=mig.unknown.get("memory_total_bytes", "the driver does not tell it")
        )
    notes: list[str] = []
    figures = _Figures(mig.memory_total_bytes, mig.memory_used_bytes, mig.memory_reserved_bytes, mig.memory_free_bytes)
    own = [holder for holder in distinct(holders) if mig.uuid is not None and holder.mig_uuid == mig.uuid]
    parts = _explained(own, figures.used_at_most(), _of_instance(mig, why), mig.uuid, notes)
    return figures.completed(MemoryOf.INSTANCE, parts, mig.unknown.get("memory_used_bytes"), notes)


def distinct(holders: Iterable[Holder]) -> tuple[Holder, ...]:
    """Each process once: not in a GPU's list and again in that of its instance, and with its larger figure."""
    merged: dict[tuple[int, str | None], Holder] = {}
    for holder in holders:
        key = (holder.pid, holder.mig_uuid)
        seen = merged.get(key)
        if seen is None or (seen.memory_bytes or -1) < (holder.memory_bytes or -1):
            merged[key] = holder
    inside = {pid for pid, mig_uuid in merged if mig_uuid is not None}
    return tuple(one for (pid, mig_uuid), one in merged.items() if mig_uuid is not None or pid not in inside)


@dataclass(frozen=True, slots=True)
class _Figures:
    """What the driver says of a memory."""

    total: int
    used: int | None
    reserved: int | None
    free: int | None

    def used_at_most(self) -> int | None:
        """Bytes to be explained by processes; None where only they themselves can tell."""
        if self.used is not None:
            return min(self.used, self.total)
        if self.free is None:
            return None
        return max(0, self.total - self.free - (self.reserved or 0))

    def completed(self, of: MemoryOf, parts: list[Part], no_use: str | None, notes: list[str]) -> Account:
        """The account, when ``parts`` are what is in use."""
        budget = self.used_at_most()
        parts, _ = _within(parts, self.total if budget is None else budget)
        left = self.total - sum(part.bytes for part in parts)
        told = (self.used or 0) + (self.reserved or 0) + (self.free or 0)
        if self.used is not None and told - self.total >= _DISCREPANCY_FROM:
            notes.append(f"The driver's figures add up to {size(told - self.total)} more than the total.")
        for kind, figure in ((PartKind.RESERVE, self.reserved), (PartKind.FREE, self.free)):
            amount = min(figure or 0, left)
            left -= amount
            if amount or (kind is PartKind.FREE and figure is not None):
                parts.append(Part(kind, amount))
        if left:
            reason = no_use or "the driver's figures do not add up to the total"
            parts.append(Part(PartKind.UNTOLD, left, reason=reason))
        return Account(self.total, of, tuple(parts), tuple(notes))


def _divided(gpu: Gpu, holders: Sequence[Holder], used: int | None, why: Why, notes: list[str]) -> list[Part]:
    """What is in use on a GPU: in each of its MIG instances, then beside them."""
    parts: list[Part] = []
    inside: set[str] = set()
    for mig in gpu.migs:
        if mig.uuid is None or mig.uuid in inside:
            continue  # its processes cannot be told from those beside it
        inside.add(mig.uuid)
        own = [holder for holder in holders if holder.mig_uuid == mig.uuid]
        parts += _explained(own, mig.memory_used_bytes, _of_instance(mig, why), mig.uuid, notes)
    if used is not None:
        parts, excess = _within(parts, used)
        _note_excess(excess, notes)
        used -= sum(part.bytes for part in parts)
    return parts + _explained([one for one in holders if one.mig_uuid not in inside], used, why, None, notes)


def _of_instance(mig: Mig, why: Why) -> Why:
    if mig.processes is None:
        reason = f"its processes cannot be listed: {mig.unknown.get('processes', 'no reason given')}"
        return lambda count: reason
    return why


def _explained(
    holders: Sequence[Holder], used: int | None, why: Why, mig_uuid: str | None, notes: list[str]
) -> list[Part]:
    """``used`` bytes divided among ``holders``, and what is left of it with its reason."""
    parts = [_of_process(holder) for holder in holders if holder.memory_bytes is not None]
    parts.sort(key=lambda part: -part.bytes)
    silent = tuple(holder.pid for holder in holders if holder.memory_bytes is None)
    left = 0
    if used is not None:
        parts, excess = _within(parts, used)
        _note_excess(excess, notes)
        left = used - sum(part.bytes for part in parts)
    if silent:
        whose = "its share" if len(silent) == 1 else f"the shares of {len(silent)} processes"
        reason = f"the driver does not tell {whose}"
        parts.append(Part(PartKind.UNDIVIDED, left, silent, mig_uuid, reason))
    elif left:
        parts.append(Part(PartKind.UNATTRIBUTED, left, (), mig_uuid, why(left)))
    return parts


def _of_process(holder: Holder) -> Part:
    kind, reason = PartKind.PROCESS, None
    if holder.started_at is None and (reason := holder.unknown.get("started_at")) is not None:
        kind = PartKind.ENDED if reason in (ENDED, REUSED) else PartKind.HIDDEN
    elif holder.state == "defunct":
        reason = DEFUNCT
    return Part(kind, max(0, holder.memory_bytes or 0), (holder.pid,), holder.mig_uuid, reason)


def _within(parts: list[Part], budget: int) -> tuple[list[Part], int]:
    """``parts`` made to fit ``budget`` bytes, and how much was too much; the largest gives way first."""
    excess = over = max(0, sum(part.bytes for part in parts) - budget)
    fitted = list(parts)
    for place in sorted(range(len(parts)), key=lambda place: -parts[place].bytes) if over else ():
        less = min(over, fitted[place].bytes)
        fitted[place] = replace(fitted[place], bytes=fitted[place].bytes - less)
        over -= less
    kept = [part for part in fitted if part.bytes or part.kind in (*LISTED, PartKind.UNDIVIDED)]
    return kept, excess


def _note_excess(excess: int, notes: list[str]) -> None:
    if excess >= _DISCREPANCY_FROM:
        notes.append(
            f"The processes' figures are {size(excess)} more than what is in use: they share it, or it changed "
            "between two readings."
        )


def _of_system(holders: Sequence[Holder], system: SystemMemory) -> Account:
    """GPU and CPU have one memory: the GPU's processes, the rest of the machine, what programs can still get."""
    notes: list[str] = ["GPU and CPU share the machine's memory, so these are its figures."]
    total = system.total_bytes
    available = min(system.available_bytes, total)
    parts = _explained(holders, total - available, lambda left: "", None, notes)
    rest = sum(part.bytes for part in parts if part.kind in (PartKind.UNATTRIBUTED, PartKind.UNDIVIDED))
    parts = [replace(part, bytes=0) if part.kind is PartKind.UNDIVIDED else part for part in parts
             if part.kind is not PartKind.UNATTRIBUTED]  # fmt: skip
    if rest:
        parts.append(Part(PartKind.SYSTEM, rest, reason="the machine's programs, beside what the GPU was given"))
    parts.append(Part(PartKind.FREE, available, reason="what programs can still get"))
    return Account(total, MemoryOf.SYSTEM, tuple(parts), tuple(notes))
