"""Where a GPU's memory is: who holds how much of it, by container and process, and why the rest is where it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpuconsole.core.text import amount, shorten, size
from gpuconsole.gpu.model import Mig
from gpuconsole.host.account import LISTED, Account, MemoryOf, Part, PartKind, Share, by_container
from gpuconsole.host.accounting import account_in
from gpuconsole.host.model import GpuView, Holder
from gpuconsole.tui.present.cell import Cell, Tone
from gpuconsole.tui.present.details import Field, Line, unknown
from gpuconsole.tui.present.gpu import bar
from gpuconsole.tui.theme import Glyphs

_BAR = 10
_BARS_FROM = 60
"""Narrower, the words need the room."""
_PROCESSES = 6
"""Of one container that are named; further ones are counted."""
_COMMAND = 40
"""Characters of a command; all of it stands in the list of processes."""
_WORDS = {
    PartKind.UNDIVIDED: "undivided",
    PartKind.UNATTRIBUTED: "unattributed",
    PartKind.RESERVE: "reserve of driver and firmware",
    PartKind.SYSTEM: "system",
    PartKind.UNTOLD: "not told",
    PartKind.FREE: "free",
}
_TONES: Mapping[PartKind, Tone] = {
    PartKind.UNDIVIDED: "info", PartKind.UNATTRIBUTED: "watch", PartKind.RESERVE: "dim", PartKind.SYSTEM: "dim",
    PartKind.UNTOLD: "dim", PartKind.FREE: "ok",
}  # fmt: skip


def memory_field(view: GpuView, *, width: int, glyphs: Glyphs) -> Field:
    """The account of a GPU's memory: a line for each container with its processes, then what nobody has."""
    account = account_in(view)
    if not account.total_bytes:
        return Field("memory", ((unknown(account.reason),),))
    return Field("memory", tuple(_Lines(view, account, width >= _BARS_FROM, glyphs).all()))


def shared_words(account: Account) -> str:
    """Where a memory is the machine's own, how much of it is in use; empty for others."""
    if account.of is not MemoryOf.SYSTEM or account.total_bytes is None:
        return ""
    free = account.bytes_of(PartKind.FREE)
    used = account.total_bytes - free
    return f"{size(used)} of {size(account.total_bytes)} in use, {size(free)} to be had; shared with the CPU"


class _Lines:
    """The lines of one account."""

    def __init__(self, view: GpuView, account: Account, bars: bool, glyphs: Glyphs) -> None:
        self._view = view
        self._account = account
        self._bars = bars
        self._glyphs = glyphs
        self._holders = {(holder.pid, holder.mig_uuid): holder for holder in view.holders}
        self._instances = {mig.uuid: _instance(mig) for mig in view.gpu.migs if mig.uuid}

    def all(self) -> list[Line]:
        lines: list[Line] = []
        for share in by_container(self._account, self._view.holders):
            lines += self._share(share)
        for part in self._account.parts:
            if part.kind not in LISTED and (part.bytes or part.kind is PartKind.FREE):
                lines.append(self._row(part.bytes, _TONES[part.kind], Cell(self._words(part))))
        return [*lines, *((Cell(note, "dim"),) for note in self._account.notes)]

    def _row(self, count: int, tone: Tone, words: Cell) -> Line:
        share = count / self._account.total_bytes if self._account.total_bytes else 0.0
        drawn = (Cell(bar(share, _BAR, self._glyphs), tone), Cell("  ")) if self._bars else ()
        return (Cell(f"{amount(count):>8}  ", "strong" if tone != "dim" else "dim"), *drawn, words)

    def _below(self, words: str, tone: Tone = "dim") -> Line:
        """A line that belongs to the one above it."""
        return (Cell(" " * (10 + (_BAR + 2 if self._bars else 0))), Cell(words, tone))

    def _words(self, part: Part) -> str:
        word = _WORDS[part.kind]
        if part.kind is PartKind.UNDIVIDED:
            word = f"process {part.pids[0]}" if len(part.pids) == 1 else f"{len(part.pids)} processes together"
        place = self._instances.get(part.mig_uuid or "")
        word += f" in {place}" if place else ""
        return f"{word}: {part.reason}" if part.reason else word

    def _share(self, share: Share) -> list[Line]:
        parts = [part for part in self._account.parts
                 if part.kind in LISTED and set(part.pids) <= set(share.pids)]  # fmt: skip
        if not parts:  # only processes of which the driver tells no share: they stand together below
            return []
        tone: Tone = "info" if share.visible else "watch"
        words: Tone = "accent" if share.container_id else ""
        head = _head(share, parts)
        if len(parts) == 1:
            return [self._row(share.bytes, tone, Cell(f"{head}: {self._process(parts[0])}", words))]
        reasons = {part.reason for part in parts}
        common = parts[0].reason if len(reasons) == 1 else None
        lines = [self._row(share.bytes, tone, Cell(f"{head}{f': {common}' if common else ''}", words))]
        lines += [
            self._below(f"{amount(part.bytes):>7}  {self._process(part, said=common)}") for part in parts[:_PROCESSES]
        ]
        if len(parts) > _PROCESSES:
            rest = parts[_PROCESSES:]
            held = amount(sum(part.bytes for part in rest))
            lines.append(self._below(f"{held:>7}  in {len(rest)} more"))
        return lines

    def _process(self, part: Part, *, said: str | None = None) -> str:
        """Number, user, command and, unless it was said, what is odd about it."""
        holder = self._holders.get((part.pids[0], part.mig_uuid))
        user = (holder.user or ("" if holder.uid is None else str(holder.uid))) if holder is not None else ""
        command = shorten((holder.command if holder is not None else None) or "", _COMMAND)
        place = self._instances.get(part.mig_uuid or "", "")
        who = " ".join(filter(None, (str(part.pids[0]), f"in {place}" if place else "", user, command)))
        return f"{who} ({part.reason})" if part.reason and part.reason != said else who


def _instance(mig: Mig) -> str:
    """``3g.20gb #2``, as ``status`` has it."""
    profile = (mig.name or "instance").rpartition("MIG ")[2]
    return profile if mig.gpu_instance is None else f"{profile} #{mig.gpu_instance}"


def _head(share: Share, parts: Sequence[Part]) -> str:
    if share.container_id:
        name = share.name or share.container_id[:12]
    elif share.visible:
        name = "outside containers"
    else:
        name = "ended" if all(part.kind is PartKind.ENDED for part in parts) else "not to be seen here"
    count = f", {len(parts)} processes" if len(parts) > 1 else ""
    return f"{name}{count}{'' if share.complete else ', and what the driver does not tell'}"


def processes_of(container_id: str, views: Sequence[GpuView]) -> list[Line]:
    """The processes of a container on all GPUs, the largest first."""
    held = [holder for view in views for holder in view.holders if holder.container_id == container_id]
    held.sort(key=lambda holder: -(holder.memory_bytes or 0))
    several = len({holder.gpu_index for holder in held}) > 1
    lines = [_held(holder, several=several) for holder in held[:_PROCESSES]]
    if len(held) > _PROCESSES:
        rest = held[_PROCESSES:]
        known = amount(sum(holder.memory_bytes or 0 for holder in rest))
        lines.append((Cell(f"{known:>8}  ", "dim"), Cell(f"in {len(rest)} more", "dim")))
    return lines


def _held(holder: Holder, *, several: bool) -> Line:
    place = f"GPU {holder.gpu_index}  " if several else ""
    why = holder.unknown.get("command", "")
    return (Cell(f"{amount(holder.memory_bytes):>8}  "), Cell(f"{place}{holder.pid} {holder.command or why}", "dim"))
