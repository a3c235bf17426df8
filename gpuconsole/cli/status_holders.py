"""Who holds the GPUs' memory as text for people: a row each, and a remark where nobody can be named."""

from __future__ import annotations

from gpuconsole.cli.glyphs import Glyphs
from gpuconsole.cli.tables import Column, table
from gpuconsole.core.text import size
from gpuconsole.host.account import Part, PartKind
from gpuconsole.host.accounting import NOBODY, UNATTRIBUTED_FROM, account_in
from gpuconsole.host.model import GpuView, Holder, HostView
from gpuconsole.host.processes import BLIND, WINDOWS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_COLUMNS = (
    Column("GPU"), Column("CONTAINER", flexible=True), Column("PID", "right"), Column("USER", flexible=True),
    Column("GPU MEM", "right"), Column("RAM", "right"), Column("CPU", "right"), Column("COMMAND", flexible=True),
)  # fmt: skip
_CPU_COLUMN = 6


def holders_text(view: HostView, glyphs: Glyphs, *, averaged: bool = False) -> str:
    """The table of who holds which GPU; empty when nobody does."""
    rows = [row for entry in view.gpus for row in _rows(entry)]
    columns = list(_COLUMNS)
    if averaged:
        columns[_CPU_COLUMN] = Column("CPU AVG", "right")
    if not any(holder.cpu_pct is not None for entry in view.gpus for holder in entry.holders):
        del columns[_CPU_COLUMN]
        for row in rows:
            del row[_CPU_COLUMN]
    return table(columns, rows, width=glyphs.width) if rows else ""


def memory_remarks(entry: GpuView) -> list[str]:
    """Why memory of a GPU is in use that no process explains, and what contradicts itself in its figures."""
    index = entry.gpu.index
    lines = [f"GPU {index}: {_unexplained(entry, part)}" for part in _unattributed(entry)]
    account = account_in(entry)
    for part in account.parts:
        if part.reason and part.kind is PartKind.PROCESS:
            lines.append(f"GPU {index}: Process {part.pids[0]} holds {size(part.bytes)}: {part.reason}.")
        elif part.kind is PartKind.UNDIVIDED and part.bytes >= UNATTRIBUTED_FROM:
            lines.append(f"GPU {index}: {size(part.bytes)} in use; the driver does not tell {_whose(part)}.")
    return lines + [f"GPU {index}: {note}" for note in account.notes]


def _unattributed(entry: GpuView) -> Iterator[Part]:
    for part in account_in(entry).parts:
        if part.kind is PartKind.UNATTRIBUTED and part.bytes >= UNATTRIBUTED_FROM:
            yield part


def _unexplained(entry: GpuView, part: Part) -> str:
    sentence = f"{size(part.bytes)} unattributed: {part.reason or NOBODY}."
    minor = entry.gpu.minor
    if part.reason == NOBODY and minor is not None:
        return f"{sentence} → 'sudo fuser -v /dev/nvidia{minor}' shows who has it open."
    return sentence


def _whose(part: Part) -> str:
    if len(part.pids) == 1:
        return f"the share of process {part.pids[0]}"
    return f"which of {len(part.pids)} processes has how much"


def _rows(entry: GpuView) -> list[list[str]]:
    instances = {mig.uuid: mig.gpu_instance for mig in entry.gpu.migs if mig.uuid}
    rows = [_row(holder, instances.get(holder.mig_uuid or "")) for holder in entry.holders]
    for part in _unattributed(entry):
        place = _place(entry.gpu.index, instances.get(part.mig_uuid or ""))
        rows.append([place, "unattributed", "", "", size(part.bytes), "", "", "(no process explains it)"])
    there = {holder.container_name for holder in entry.holders}
    idle = [name for name in entry.given_to if name not in there]
    return rows + [[str(entry.gpu.index), name, *[""] * 5, "(given to it, holds nothing)"] for name in idle]


def _row(holder: Holder, instance: int | None) -> list[str]:
    return [
        _place(holder.gpu_index, instance),
        _container(holder),
        str(holder.pid),
        holder.user or ("–" if holder.uid is None else str(holder.uid)),
        size(holder.memory_bytes),
        size(holder.host_memory_bytes),
        "–" if holder.cpu_pct is None else f"{holder.cpu_pct:.0f} %",
        holder.command or _no_command(holder),
    ]


def _place(index: int, instance: int | None) -> str:
    return str(index) if instance is None else f"{index}#{instance}"


def _no_command(holder: Holder) -> str:
    reason = holder.unknown.get("command", "unknown")
    # What is true of all of them is said once, below.
    return "–" if reason == WINDOWS or reason.startswith(BLIND) else f"– ({reason})"


def _container(holder: Holder) -> str:
    if holder.container_id is None:
        return "–" if "container_id" in holder.unknown else "(host)"
    return holder.container_name or holder.container_id[:12]
