"""Why memory is in use that no listed process has: what was seen of it, now and at the looks before."""

from __future__ import annotations

import time

from gpuconsole.core.records import dataclass, replace
from gpuconsole.gpu.model import Gpu, ProcessKind
from gpuconsole.host.account import Account, Part, PartKind
from gpuconsole.host.accounting import NOBODY, TOO_LITTLE, UNATTRIBUTED_FROM
from gpuconsole.host.model import Holder
from gpuconsole.host.processes import BLIND, BLIND_HINT, WINDOWS, ProcessFacts, ProcessTable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpuconsole.host.openers import Openers

LONG_ENDED = "it ended a while ago and is still listed: its memory is stuck, or it runs in a virtual machine"
_SEARCH_FROM = 512 * 2**20
"""Less is not worth searching all processes for."""
_SCREEN_AT_MOST = 2 * 2**30
"""Pictures of screens and windows need not more."""
_FORGOTTEN_S = 600.0
_LONG_S = 5.0
"""A driver needs less to clear up behind a process that ends."""
_NAMED = 3
_MOST_GONE = 16
"""Of each GPU; the oldest go, so that a machine whose processes last a moment costs no more to look at."""


@dataclass(frozen=True, slots=True)
class _Gone:
    """A process that was on a GPU and is not listed any more."""

    holder: Holder
    since: float
    """Of the monotonic clock."""
    before: int
    """Bytes that nobody had when it was listed last: those are not its."""


class Evidence:
    """What is known of memory without a process; remembers who was on each GPU.

    Args:
        processes: Where processes are looked up.
    """

    def __init__(self, processes: ProcessTable) -> None:
        self._processes = processes
        self._openers: Openers | None = None
        self._last: dict[str, dict[tuple[int, float], Holder]] = {}
        self._gone: dict[str, dict[tuple[int, float], _Gone]] = {}
        self._ended: dict[tuple[str, int], float] = {}
        self._unexplained: dict[str, int] = {}
        """Of each GPU, bytes that nobody had at the look before."""

    @property
    def pids(self) -> set[int]:
        """Processes that may hold memory though they are listed no more, to be looked up with the listed ones."""
        last = {pid for listed in self._last.values() for pid, _ in listed}
        return last | {pid for gone in self._gone.values() for pid, _ in gone}

    def see(self, gpu: Gpu, holders: Sequence[Holder]) -> None:
        """Remember who is on ``gpu`` now. A number that is used again is another process."""
        key, now = _key(gpu), time.monotonic()
        if gpu.processes is None:
            return
        listed = {(one.pid, one.started_at): one for one in holders if one.started_at is not None}
        gone = self._gone.setdefault(key, {})
        before = self._unexplained.get(key, 0)
        for who, holder in self._last.get(key, {}).items():
            if who not in listed:
                gone[who] = _Gone(holder, now, before)
        left = gpu.unattributed_bytes
        for who, one in list(gone.items()):
            given_back = left is not None and left < one.before + UNATTRIBUTED_FROM
            if given_back or who in listed or now - one.since > _FORGOTTEN_S:
                del gone[who]
        for who in list(gone)[:-_MOST_GONE]:
            del gone[who]
        self._last[key], self._unexplained[key] = listed, left or 0

    def reasons(self, gpu: Gpu, holders: Sequence[Holder], facts: Mapping[int, ProcessFacts], count: int) -> str:
        """Why ``count`` bytes of ``gpu`` have no process, in one phrase."""
        if gpu.processes is None and not self._processes.windows:
            return f"its processes cannot be listed: {gpu.unknown.get('processes', 'no reason given')}"
        if count < UNATTRIBUTED_FROM:
            return TOO_LITTLE
        found = [
            *self._unlisting(gpu, holders),
            *self._departed(gpu, facts),
            *self._searched(gpu, holders, count),
            *_screen(holders, count),
        ]
        if not found and gpu.mig_enabled:
            found.append("held for MIG, in none of its instances")
        if not found:
            found.append(NOBODY)
        if gpu.memory_reserved_bytes is None and "memory_reserved_bytes" in gpu.unknown:
            found.append("the driver's own reserve is in it")
        return "; ".join(found)

    def lasting(self, gpu: Gpu, account: Account) -> Account:
        """``account``, where processes that ended long ago are told from those that ended just now."""
        now, key = time.monotonic(), _key(gpu)
        ended = {pid for part in account.parts if part.kind is PartKind.ENDED for pid in part.pids}
        for gone in [one for one in self._ended if one[0] == key and one[1] not in ended]:
            del self._ended[gone]
        since = {pid: now - self._ended.setdefault((key, pid), now) for pid in ended}
        parts = tuple(_long_ended(part, since) if part.kind is PartKind.ENDED else part for part in account.parts)
        return replace(account, parts=parts) if ended else account

    def _unlisting(self, gpu: Gpu, holders: Sequence[Holder]) -> list[str]:
        """Why a driver lists fewer processes than there are."""
        if self._processes.windows:
            return [WINDOWS]
        if gpu.virtualization == "vgpu":
            return ["it is a virtual GPU, whose driver may list no processes"]
        if not holders and self._processes.blind:
            return [f"{BLIND}; {BLIND_HINT}"]
        return []

    def _departed(self, gpu: Gpu, facts: Mapping[int, ProcessFacts]) -> list[str]:
        gone = sorted(self._gone.get(_key(gpu), {}).values(), key=lambda one: -(one.holder.memory_bytes or 0))
        return [_departure(one, facts.get(one.holder.pid)) for one in gone[:_NAMED]]

    def _searched(self, gpu: Gpu, holders: Sequence[Holder], count: int) -> list[str]:
        if count < _SEARCH_FROM or gpu.minor is None or self._processes.blind:
            return []
        listed = {one.pid for one in holders} | self.pids
        from gpuconsole.host.openers import Openers

        self._openers = self._openers or Openers(self._processes.proc)
        found = self._openers.of(gpu.minor, listed=listed)
        if not found:
            return []
        names = ", ".join(f"{one.pid} ({one.name})" for one in found[:_NAMED])
        more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
        verb = "has" if len(found) == 1 else "have"
        return [f"{names}{more} {verb} the GPU open and {'is' if len(found) == 1 else 'are'} not listed"]


def _key(gpu: Gpu) -> str:
    return gpu.uuid or f"index {gpu.index}"


def _departure(gone: _Gone, now: ProcessFacts | None) -> str:
    """What became of a process that the driver lists no more."""
    who = f"process {gone.holder.pid}"
    if now is None or now.started_at != gone.holder.started_at:
        if time.monotonic() - gone.since < _LONG_S:
            return f"{who} ended just now"
        return f"{who} has ended, and its memory was not given back"
    if now.state == "defunct":
        return f"{who} has ended, and its parent has not noticed (defunct)"
    if now.state == "stuck":
        return f"{who} is listed no more, and waits in the kernel (state D): it cannot be ended now"
    return f"{who} is listed no more, and still runs"


def _screen(holders: Sequence[Holder], count: int) -> list[str]:
    drawing = [one.pid for one in holders if one.kind is ProcessKind.GRAPHICS]
    if not drawing or count > _SCREEN_AT_MOST:
        return []
    who = f"process {drawing[0]} draws" if len(drawing) == 1 else f"{len(drawing)} processes draw"
    return [f"a screen may be on it: {who} there, and pictures count as nobody's"]


def _long_ended(part: Part, since: Mapping[int, float]) -> Part:
    if max((since[pid] for pid in part.pids), default=0.0) < _LONG_S:
        return part
    return replace(part, reason=LONG_ENDED)
