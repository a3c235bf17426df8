"""Who holds a GPU and has let it compute nothing for an hour: a quiet note, since others may wait for it."""

from __future__ import annotations

from dataclasses import dataclass

from gpuconsole.core.text import duration, size
from gpuconsole.gpu.model import GpuStatus, ProcessKind
from gpuconsole.host.model import GpuView, Holder, HostView
from gpuconsole.host.state import IDLE_BELOW_PCT
from gpuconsole.services.alarmnames import process_name

IDLE_S = 3600.0
_BLIND_S = 120.0
"""After so long without a look nobody knows what was computed meanwhile."""


@dataclass(frozen=True, slots=True)
class IdleNote:
    """Somebody holds a GPU and computes nothing."""

    key: str
    name: str
    gpu: int
    pid: int
    since: float
    """Seconds since the epoch from which on nothing was computed on that GPU, as far as it was seen."""
    memory_bytes: int | None
    container_id: str | None = None

    def sentence(self, now: float) -> str:
        """``it holds 12 GiB, and nothing was computed on GPU 0 for 1 h``."""
        held = "memory" if self.memory_bytes is None else size(self.memory_bytes)
        return f"it holds {held}, and nothing was computed on GPU {self.gpu} for {duration(now - self.since)}"


class IdleHolders:
    """Follows who holds GPUs that compute nothing. For one thread."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}
        self._looked_at: float | None = None

    def looked(self, host: HostView) -> tuple[IdleNote, ...]:
        """Take a look at the GPUs; returns who has held one for an hour for nothing, the longest first."""
        now = host.snapshot.taken_at
        if host.snapshot.problem is not None:
            return ()
        if self._looked_at is not None and not 0 <= now - self._looked_at <= _BLIND_S:
            self._since.clear()
        self._looked_at = now
        notes: list[IdleNote] = []
        since: dict[str, float] = {}
        for view in host.gpus:
            for holder in view.holders if _is_idle(view) else ():
                if holder.kind is ProcessKind.GRAPHICS:
                    continue  # a display holds its GPU by being there
                named = process_name(holder)
                began = since[named.key] = self._since.get(named.key, now)
                if now - began >= IDLE_S:
                    notes.append(_note(named.key, named.name, holder, began))
        self._since = since
        return tuple(sorted(notes, key=lambda note: (note.since, note.key)))


def _is_idle(view: GpuView) -> bool:
    utilization = view.gpu.utilization_pct
    return view.gpu.status is GpuStatus.OK and utilization is not None and utilization < IDLE_BELOW_PCT


def _note(key: str, name: str, holder: Holder, since: float) -> IdleNote:
    return IdleNote(key, name, holder.gpu_index, holder.pid, since, holder.memory_bytes, holder.container_id)
