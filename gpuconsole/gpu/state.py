"""The words for what goes on in a memory: one enum for console, command line and forecaster."""

from __future__ import annotations

from gpuconsole.core.words import StrEnum


class MemoryState(StrEnum):
    """What is going on in a GPU's memory."""

    FREE = "free"
    """Nobody holds it."""
    IDLE = "idle"
    """Somebody holds it and computes nothing."""
    LOADING = "loading"
    STEADY = "steady"
    PACKED = "packed"
    """Full on purpose, and not growing."""
    WATCH = "watch"
    RISK = "risk"
    CRITICAL = "critical"
    FAILED = "failed"
    """The GPU does not answer, or its memory ran out."""
    UNKNOWN = "unknown"

    @property
    def severity(self) -> int:
        """The higher, the sooner it must be seen."""
        return _SEVERITY[self]


_SEVERITY = {
    MemoryState.FREE: 0,
    MemoryState.IDLE: 1,
    MemoryState.STEADY: 2,
    MemoryState.LOADING: 2,
    MemoryState.PACKED: 3,
    MemoryState.UNKNOWN: 4,
    MemoryState.WATCH: 5,
    MemoryState.RISK: 6,
    MemoryState.CRITICAL: 7,
    MemoryState.FAILED: 8,
}
