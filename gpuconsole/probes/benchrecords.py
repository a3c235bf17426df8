"""What is kept of a benchmark run: each result with its shares and grade, the machine, and the run as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from gpuconsole.probes.benchresults import BenchStatus
from gpuconsole.probes.records import NOTHING, CheckResult, Environment, Note, RunEnd


class BenchLevel(StrEnum):
    """The grade of one result."""

    OK = "ok"
    LOW = "low"
    BAD = "bad"
    NOISY = "noisy"
    """Its figures spread too far, or others used the GPU: not judged, and never a reference for others."""
    NO_REFERENCE = "no-reference"
    """Nothing is known that it could be judged against."""
    SKIPPED = "skipped"
    TIMEOUT = "timeout"
    ERROR = "error"
    WRONG = "wrong"
    """The result of the calculation was wrong, so its speed says nothing."""


class Rule(StrEnum):
    """What a result was judged against, the nearest first."""

    SIBLINGS = "siblings"
    HISTORY = "history"
    REFERENCE = "reference"
    DATASHEET = "datasheet"
    HEALTHY = "healthy"


class Origin(StrEnum):
    """Where a run was made."""

    HERE = "here"
    IMPORTED = "imported"


@dataclass(frozen=True, slots=True)
class Spread:
    """The least, the mean and the most of some readings."""

    low: float
    mean: float
    high: float


@dataclass(frozen=True, slots=True)
class DeviceUse:
    """How one GPU was while a benchmark ran, as NVML told it. What is unknown is None."""

    gpu: int
    """N of ``cuda:N`` inside."""
    samples: int = 0
    sm_mhz: Spread | None = None
    memory_mhz: Spread | None = None
    power_w: Spread | None = None
    temperature_c: Spread | None = None
    reasons: tuple[str, ...] = ()
    """What held the clocks down in any sample: ``sw-power-cap`` …"""
    reasons_share: Mapping[str, float] = field(default_factory=lambda: NOTHING)
    """Each of these with the share of the samples it was seen in."""
    unknown: str = ""
    """Why there are no samples; empty when there are."""


@dataclass(frozen=True, slots=True)
class Share:
    """A score as a share of what it is compared with, 1.0 being the same; None where there is nothing to compare."""

    datasheet: float | None = None
    at_clock: float | None = None
    """Of what the card can do at the mean clock it held."""
    siblings: float | None = None
    history: float | None = None
    reference: float | None = None


@dataclass(frozen=True, slots=True)
class Judgement:
    """What one rule says of a result."""

    rule: Rule
    level: BenchLevel
    words: str
    """The rule with its figures, a phrase: ``96 % of the median of your last 5 runs (bad below 85 %)``."""
    share: float | None = None


@dataclass(frozen=True, slots=True)
class BenchVerdict:
    """The grade of a result, and the rule it is from."""

    level: BenchLevel = BenchLevel.NO_REFERENCE
    rule: Rule | None = None
    """None when no rule decided it."""
    words: str = ""
    judgements: tuple[Judgement, ...] = ()
    """All that could be judged, the nearest comparison first."""


@dataclass(frozen=True, slots=True)
class BenchRecord:
    """One result of one benchmark: a figure for one set of parameters."""

    id: str
    """``bench.mm``."""
    code: str = ""
    """``B01``."""
    rev: int = 1
    """Rises whenever the method changes; results of different ones are not compared."""
    status: BenchStatus = BenchStatus.OK
    params: Mapping[str, Any] = field(default_factory=lambda: NOTHING)
    gpu: tuple[int, ...] = ()
    """N of ``cuda:N``; none for what ran on the CPU."""
    device: str = "cuda"
    """``cuda`` or ``cpu``."""
    unit: str = ""
    score: float | None = None
    """In ``unit``; the median of its repeats."""
    better: str = "higher"
    """Which scores are better: ``higher``, or ``lower`` for times."""
    stat: Mapping[str, Any] = field(default_factory=lambda: NOTHING)
    """Of the repeats, in milliseconds: ``median_ms``, ``p20``, ``p80``, ``min``, ``max``, their number ``n``, and
    ``riqr``, the middle half's width as a share of the median."""
    values: Mapping[str, Any] = field(default_factory=lambda: NOTHING)
    """Further figures, with units in their names."""
    headline: bool = False
    """It is the score its benchmark is known by."""
    noisy: bool = False
    contended: bool | None = None
    """Others used its GPUs before or meanwhile; None when that cannot be told."""
    contended_by: tuple[str, ...] = ()
    """Who, each a short phrase."""
    cold_s: float | None = None
    """The first call, with all that is made ready by it."""
    peak_reserved_bytes: int | None = None
    began: float | None = None
    """Seconds since the epoch."""
    ended: float | None = None
    why: str = ""
    """Why it is not ok, or what a reader should know."""
    fix: str = ""
    """What to do, one sentence; empty when there is nothing to do."""
    dev: tuple[DeviceUse, ...] = ()
    share: Share = Share()
    verdict: BenchVerdict = BenchVerdict()

    @property
    def measured(self) -> bool:
        """It has a figure that holds."""
        return self.status is BenchStatus.OK and self.score is not None

    @property
    def trusted(self) -> bool:
        """Others may be judged by it: it holds, did not spread too far, and nobody else is known to have interfered."""
        return self.measured and not self.noisy and not self.contended


@dataclass(frozen=True, slots=True)
class BenchGpu:
    """A GPU of a run as the host knows it. What is unknown is None."""

    position: int
    """N of ``cuda:N`` inside."""
    uuid: str | None = None
    """Of a MIG instance where it is one."""
    name: str | None = None
    compute_capability: str | None = None
    multiprocessors: int | None = None
    memory_total_bytes: int | None = None
    power_limit_w: float | None = None
    power_default_w: float | None = None
    """The limit it comes with."""
    max_sm_clock_mhz: int | None = None
    max_memory_clock_mhz: int | None = None
    ecc: bool | None = None
    mig: bool | None = None
    pcie_generation: int | None = None
    """Of the link while it was measured; None when it was not."""
    pcie_width: int | None = None
    pcie_max_generation: int | None = None
    pcie_max_width: int | None = None
    numa_node: int | None = None


@dataclass(frozen=True, slots=True)
class BenchMachine:
    """The machine of a run, beside what its environment inside says."""

    cpu: str | None = None
    """The processor's model."""
    governor: str | None = None
    """How the processor's clock is chosen."""
    virtual: bool | None = None
    """It is a virtual machine."""
    driver: str | None = None
    gpus: tuple[BenchGpu, ...] = ()
    unknown: str = ""
    """Why the host tells nothing of the GPUs; empty when it does."""


@dataclass(frozen=True, slots=True)
class Limit:
    """What limits the box, in one word and one sentence."""

    limit: str
    """``compute``, ``memory``, ``host-link``, ``interconnect``, ``cpu``, ``software``, ``hardware`` or ``unknown``."""
    sentence: str
    because: tuple[str, ...] = ()
    """The results it rests on, a phrase each."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What people read about, and what it is on this machine."""

    name: str
    """``amp``, ``compile`` or ``scaling``."""
    title: str
    claimed: str
    """``1.5–2×``."""
    measured: float | None = None
    """A ratio, 1.0 being no gain; None when it was not measured, and ``why`` says why."""
    shown: str = "–"
    """The same as it is read: ``1.7×``, ``+34 %``, ``0.93``."""
    answer: str = "not-measured"
    """``as-claimed``, ``more``, ``less``, ``unclear`` where a result spread too far or was disturbed, or
    ``not-measured``."""
    why: str = ""
    """What was compared with what; else why it was not measured."""


@dataclass(frozen=True, slots=True)
class BenchRun:
    """A benchmark run with all its results."""

    run: str
    """Its id."""
    mode: str
    """``quick`` or ``full``."""
    end: RunEnd
    environment: Environment
    machine: BenchMachine = BenchMachine()
    benchmarks: tuple[BenchRecord, ...] = ()
    obstacle: CheckResult | None = None
    """Why nothing could be started at all, with what to do about it."""
    headline: Limit | None = None
    claims: tuple[Claim, ...] = ()
    notes: tuple[Note, ...] = ()
    only: tuple[str, ...] = ()
    """The benchmarks that were asked for; none for all of the mode."""
    seconds: float | None = None
    taken_at: float = 0.0
    """Seconds since the epoch when it began."""
    subject: str = ""
    """The container's or image's name, or ``this machine``."""
    subject_id: str = ""
    origin: Origin = Origin.HERE

    @property
    def failed(self) -> bool:
        """Something could not be measured, came out wrong, or is far below what it should be."""
        bad = (BenchLevel.ERROR, BenchLevel.WRONG, BenchLevel.TIMEOUT, BenchLevel.BAD)
        return self.obstacle is not None or any(record.verdict.level in bad for record in self.benchmarks)

    @property
    def partial(self) -> bool:
        """It did not come to its end."""
        return self.end is not RunEnd.COMPLETE

    def gpus_of(self, record: BenchRecord) -> tuple[BenchGpu, ...]:
        """The GPUs a result is of, as far as the run knows them."""
        known = {gpu.position: gpu for gpu in self.machine.gpus}
        return tuple(known.get(position, BenchGpu(position)) for position in record.gpu)
