"""What a run of benchmarks tells: a result for each set of parameters, and the report at the end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpuconsole.probes.records import CheckResult, Environment, Note, RunEnd

NOTHING: Mapping[str, Any] = MappingProxyType({})


class BenchStatus(StrEnum):
    """How a measurement came out."""

    OK = "ok"
    SKIPPED = "skipped"
    """It does not apply; ``why`` says the reason."""
    TIMEOUT = "timeout"
    ERROR = "error"
    WRONG = "wrong"
    """The result of the calculation was wrong, so its speed means nothing."""


@dataclass(frozen=True, slots=True)
class BenchResult:
    """One measurement of one benchmark: a figure for one set of parameters."""

    id: str
    """``bench.mm``."""
    code: str
    """``B01``."""
    status: BenchStatus
    rev: int = 1
    """Rises when the method changes; results of different ones do not compare."""
    params: Mapping[str, Any] = field(default_factory=lambda: NOTHING)
    device: str = ""
    """``cuda`` or ``cpu``; empty when it is not known, as for what did not run."""
    gpu: tuple[int, ...] = ()
    """N of ``cuda:N``; none on a CPU."""
    unit: str = ""
    score: float | None = None
    """In ``unit``; the median."""
    stat: Mapping[str, float] = field(default_factory=lambda: NOTHING)
    """``median_ms``, ``p20``, ``p80``, ``min``, ``max`` in milliseconds, their number ``n``, and ``riqr``, the width of
    the middle half as a share of the median; empty where the score is no median of times."""
    values: Mapping[str, Any] = field(default_factory=lambda: NOTHING)
    """Further figures, with units in their names."""
    headline: bool = False
    """The score its benchmark is known by."""
    noisy: bool = False
    """The figures spread too far, or were too few."""
    cold_s: float | None = None
    """Seconds of the very first call."""
    peak_reserved_bytes: int | None = None
    """The most GPU memory torch held."""
    began: float | None = None
    """Seconds since the epoch, when the timed part began."""
    ended: float | None = None
    why: str = ""
    """The reason of anything but ``ok``, a phrase without a full stop."""
    fix: str = ""
    """What to do, one sentence; empty when there is nothing to do."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A benchmark has told all its results."""

    id: str


@dataclass(frozen=True, slots=True)
class BenchReport:
    """All that a run of benchmarks told."""

    end: RunEnd
    environment: Environment
    mode: str
    """``quick`` or ``full``."""
    benchmarks: tuple[BenchResult, ...]
    """In the order of the suite, at least one for each benchmark of the plan: what did not run says why."""
    notes: tuple[Note, ...] = ()
    obstacle: CheckResult | None = None
    """Why nothing could be started at all, with what to do about it."""
    seconds: float | None = None

    @property
    def failed(self) -> bool:
        """Something could not be measured, or came out wrong."""
        bad = (BenchStatus.ERROR, BenchStatus.WRONG, BenchStatus.TIMEOUT)
        return self.obstacle is not None or any(result.status in bad for result in self.benchmarks)
