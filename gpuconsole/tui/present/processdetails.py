"""A GPU process in full."""

from __future__ import annotations

from gpuconsole.core.text import duration, size
from gpuconsole.host.model import Holder
from gpuconsole.services.secrets import mask_text
from gpuconsole.tui.present.cell import Cell
from gpuconsole.tui.present.details import Field, Line, field, unknown
from gpuconsole.tui.present.outlook import told
from gpuconsole.tui.theme import UNICODE, Glyphs


def fields(holder: Holder, *, now: float, glyphs: Glyphs = UNICODE) -> tuple[Field, ...]:
    """Everything known of a process on a GPU."""
    why = holder.unknown
    where = f"{holder.gpu_index}  {holder.gpu_uuid or ''}".strip()
    user = holder.user or (None if holder.uid is None else str(holder.uid))
    container: Line | None = None
    if holder.container_id is not None:
        container = (Cell(f"{holder.container_name or ''}  ".lstrip(), "accent"), Cell(holder.container_id, "dim"))
    elif "container_id" in why:
        container = (unknown(why["container_id"]),)
    started = None if holder.started_at is None else f"{duration(now - holder.started_at)} ago"
    return (
        field("pid", str(holder.pid)),
        field("GPU", where, Cell(f"instance {holder.mig_uuid}") if holder.mig_uuid else None),
        field("GPU memory", _known(holder.memory_bytes, why.get("memory_bytes"))),
        field("forecast", *(told(holder.outlook, glyphs) if holder.outlook is not None else ())),
        field("uses it for", holder.kind.value),
        field("user", user or unknown(why.get("user") or why.get("uid"))),
        field("container", container or Cell("none: it runs on the host itself", "dim")),
        field("command", mask_text(holder.command) if holder.command else unknown(why.get("command"))),
        field("state", _state(holder)),
        field("CPU", _cpu(holder)),
        field("memory", _known(holder.host_memory_bytes, why.get("host_memory_bytes"))),
        field("began", started or unknown(why.get("started_at"))),
    )


def _known(count: int | None, reason: str | None) -> str | Cell:
    return unknown(reason) if count is None else size(count)


_STATES = {
    "stuck": "it waits in the kernel (state D) and cannot be ended now; if that lasts, restart the machine",
    "stopped": "it is stopped, and holds its memory",
    "defunct": "it has ended (defunct): its memory comes back when its parent notices, or is ended too",
}


def _state(holder: Holder) -> Cell | None:
    """Only what is not as usual."""
    words = _STATES.get(holder.state or "")
    return Cell(words, "watch") if words else None


def _cpu(holder: Holder) -> str | Cell:
    if holder.cpu_pct is None:
        return unknown(holder.unknown.get("cpu_pct", "it takes two looks"))
    return f"{holder.cpu_pct:.0f} % (100 is one core)"
