"""The GPUs as the one line for tmux, and the word for a GPU's state."""

from __future__ import annotations

from gpuconsole.core.text import eta, shorten
from gpuconsole.gpu.names import short_name
from gpuconsole.gpu.state import MemoryState
from gpuconsole.host.state import ahead_of, memory_state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gpuconsole.gpu.model import Gpu
    from gpuconsole.host.seen import GpuSeen, HostSeen

_NEVER = float("inf")

COLOURS = {
    MemoryState.FREE: "green", MemoryState.IDLE: "cyan", MemoryState.PACKED: "yellow", MemoryState.WATCH: "yellow",
    MemoryState.RISK: "red", MemoryState.CRITICAL: "red", MemoryState.FAILED: "red", MemoryState.UNKNOWN: "magenta",
}  # fmt: skip


def word(entry: GpuSeen) -> str:
    """The state, with the time ahead where that is near: ``risk ~4 min``."""
    if entry.gpu.asleep:
        return "asleep"
    said = ahead_of(entry)
    state = memory_state(entry)
    return f"{state} {eta(said.eta_s)}" if said is not None and said.eta_s is not None and alarms(state) else state


def alarms(state: MemoryState) -> bool:
    """Memory is running out."""
    return MemoryState.WATCH.severity <= state.severity < MemoryState.FAILED.severity


def tmux_line(view: HostSeen, *, colour: bool) -> str:
    """The line for tmux's ``status-right``: how many GPUs are free, and the worst one.

    tmux reads ``#`` in it as the start of a format; ours are colours, and that of foreign text is doubled.
    """
    problem = view.snapshot.reason if view.snapshot.problem is not None else None
    if not view.gpus:
        return _tmux_coloured(f"no GPU: {problem or 'unknown'}", MemoryState.FAILED, colour=colour)
    free = sum(memory_state(entry) is MemoryState.FREE for entry in view.gpus)
    count = f"GPU {free}/{len(view.gpus)} free"
    if problem is not None:
        return _tmux_coloured(f"{count} · {problem}", MemoryState.FAILED, colour=colour)
    worst = max(view.gpus, key=_urgency)
    return _tmux_coloured(f"{count} · {_in_short(worst)}", memory_state(worst), colour=colour)


def _urgency(entry: GpuSeen) -> tuple[int, float, float]:
    """The worst state, of these the one that is full first, else the fullest."""
    said = ahead_of(entry)
    eta_s = said.eta_s if said is not None else None
    return memory_state(entry).severity, -_NEVER if eta_s is None else -eta_s, _share(entry.gpu)


def _in_short(entry: GpuSeen) -> str:
    """``2 H200 packed 98% 131/140G``."""
    gpu = entry.gpu
    words = [str(gpu.index)]
    if gpu.name:
        words.append(shorten(short_name(gpu.name), 12))
    words.append(word(entry))
    if gpu.utilization_pct is not None:
        words.append(f"{gpu.utilization_pct}%")
    if gpu.memory_used_bytes is not None and gpu.memory_total_bytes is not None:
        words.append(f"{gpu.memory_used_bytes / 2**30:.0f}/{gpu.memory_total_bytes / 2**30:.0f}G")
    return " ".join(words)


def _share(gpu: Gpu) -> float:
    return gpu.memory_used_bytes / gpu.memory_total_bytes if gpu.memory_used_bytes and gpu.memory_total_bytes else 0.0


def _tmux_coloured(text: str, state: MemoryState, *, colour: bool) -> str:
    escaped = text.replace("#", "##")
    tint = COLOURS.get(state)
    return f"#[fg={tint}]{escaped}#[default]" if colour and tint else escaped
