"""A GPU process as a row."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from gpuconsole.core.text import amount, duration
from gpuconsole.host.model import Holder
from gpuconsole.host.processes import BLIND, WINDOWS
from gpuconsole.services.ringing import process_key
from gpuconsole.tui.present.cell import EMPTY, Cell, Column, Row
from gpuconsole.tui.theme import UNICODE, Glyphs

COLUMNS = (
    Column("pid", "PID", 8, align="right"),
    Column("gpu", "GPU", 3),
    Column("gpumem", "GPU MEM", 8, align="right"),
    Column("user", "USER", 8, rank=1),
    Column("container", "CONTAINER", 12, grow=1, rank=1),
    Column("cpu", "CPU", 6, align="right", rank=3),
    Column("ram", "RAM", 7, align="right", rank=4),
    Column("age", "TIME", 7, align="right", rank=5),
    Column("command", "COMMAND", 14, grow=4),
)


def row(holder: Holder, *, now: float, glyphs: Glyphs = UNICODE) -> Row:
    """One process as a row."""
    age = None if holder.started_at is None else now - holder.started_at
    container = holder.container_name or (holder.container_id[:12] if holder.container_id else None)
    return Row(
        process_key(holder),
        (
            Cell(str(holder.pid), "strong"),
            Cell(str(holder.gpu_index)),
            EMPTY if holder.memory_bytes is None else Cell(amount(holder.memory_bytes)),
            EMPTY if holder.user is None and holder.uid is None else Cell(holder.user or str(holder.uid)),
            Cell(container, "accent") if container else EMPTY,
            EMPTY if holder.cpu_pct is None else Cell(f"{holder.cpu_pct:.0f} %"),
            EMPTY if holder.host_memory_bytes is None else Cell(amount(holder.host_memory_bytes)),
            Cell(duration(age), "dim"),
            _ahead(holder, Cell(holder.command or _no_command(holder), "" if holder.command else "dim"), glyphs),
        ),
    )


def _ahead(holder: Holder, command: Cell, glyphs: Glyphs) -> Cell:
    """Its command, and before it that its memory is running full: there is no column for what is seldom so."""
    if holder.outlook is None:
        return command
    from gpuconsole.tui.present.outlook import row_cell

    return row_cell((holder.outlook,), command, glyphs, named=False)


def _no_command(holder: Holder) -> str:
    reason = holder.unknown.get("command", "–")
    # What is true of every process is said once, on the screen of the GPU, and in full on that of the process.
    return "–" if reason == WINDOWS or reason.startswith(BLIND) else reason


SORT_KEYS: dict[str, Callable[[Holder], Any]] = {
    "gpumem": lambda holder: -(holder.memory_bytes or 0),
    "gpu": lambda holder: (holder.gpu_index, -(holder.memory_bytes or 0)),
    "pid": lambda holder: holder.pid,
    "user": lambda holder: (holder.user or "~").lower(),
    "cpu": lambda holder: -(holder.cpu_pct or 0.0),
    "ram": lambda holder: -(holder.host_memory_bytes or 0),
    "command": lambda holder: (holder.command or "~").lower(),
}


def matches(holder: Holder, words: Iterable[str]) -> bool:
    """Every word is in its pid, user, container or command."""
    parts = (str(holder.pid), holder.user, holder.container_name, holder.container_id, holder.command)
    text = " ".join(part for part in parts if part).lower()
    return all(word in text for word in words)
