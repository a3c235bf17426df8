"""What a memory forecast is made from, and what it says."""

from __future__ import annotations

from gpuconsole.core.records import dataclass
from gpuconsole.core.words import StrEnum
from gpuconsole.gpu.state import MemoryState

HOST_ID = "host"
"""What the memories of the machine itself have for an id."""
SHM_OF = "/dev/shm of "  # noqa: S108  # a name
"""Begins the name of a container's ``/dev/shm``."""


class Subject(StrEnum):
    """What a statement is about."""

    PROCESS = "process"
    GPU = "gpu"
    CONTAINER = "container"
    HOST = "host"
    SHM = "shm"


@dataclass(frozen=True, slots=True)
class ProcessMemory:
    """GPU memory of one process."""

    pid: int
    memory_bytes: int | None
    """None where the driver does not tell."""
    name: str = ""
    """What people call it, as the container it runs in; empty for its pid alone."""


@dataclass(frozen=True, slots=True)
class GpuMemory:
    """One GPU at one moment."""

    index: int
    total_bytes: int | None
    used_bytes: int | None
    free_bytes: int | None
    """As NVML gives it, never total less used: the driver keeps some."""
    utilization_pct: float | None = None
    processes: tuple[ProcessMemory, ...] | None = ()
    """None when they could not be listed."""
    problem: str = "the driver does not tell its memory"
    """Why used, free or total is None."""


@dataclass(frozen=True, slots=True)
class PoolMemory:
    """A memory without processes of its own: a container's or the host's RAM, or a ``/dev/shm``."""

    subject: Subject
    id: str
    name: str
    used_bytes: int | None
    limit_bytes: int | None
    """What it may grow to; None without a limit of its own."""


@dataclass(frozen=True, slots=True)
class MemorySample:
    """All memories at one moment."""

    t: float
    """Seconds; only differences matter."""
    gpus: tuple[GpuMemory, ...] = ()
    pools: tuple[PoolMemory, ...] = ()


@dataclass(frozen=True, slots=True)
class Assessment:
    """What is going on in one memory, or with one process in it."""

    subject: Subject
    id: str
    gpu: int | None
    pid: int | None
    state: MemoryState
    eta_s: float | None
    """Seconds until the memory is full if it goes on as seen; None without a trend."""
    why: str
    """One line: who, how fast, when, and what to do."""
    rate_bytes_s: float | None = None
    """How fast it grows now; None without a trend."""

    @property
    def key(self) -> tuple[Subject, str]:
        """Names the subject."""
        return self.subject, self.id


@dataclass(frozen=True, slots=True)
class Settings:
    """The numbers of the forecast; every one is a ratio, none a time or a size.

    They were chosen on the recordings' tune half; ``tests/forecast/RESULTS.md`` has what they give on the other.
    """

    step: float = 0.001
    """Of the capacity: growth less than this is no step."""
    fall: float = 0.02
    """Of the capacity: a fall less than this is none."""
    deep: float = 0.3
    """Of the growth above the base: a fall of so much makes a cycle."""
    settled: float = 0.45
    """Growth slower than this share of the loading's pace is no loading."""
    steps: int = 3
    """Steps that make a trend."""
    biggest: float = 0.6
    """Of the growth: more than this in one step is a jump, no trend."""
    watch: float = 2.0
    """Of the growth time seen: full within it is worth watching."""
    risk: float = 0.72
    """Of the growth time seen: full within it is a risk, for steady growth."""
    risk_speeding: float = 0.54
    """The same where only the speeding-up makes it so near."""
    risk_speeding_surely: float = 0.14
    """So much more once two steps more have borne it out."""
    risk_slowing: float = 0.35
    """The same for growth that slows down."""
    doubt: float = 1.0
    """Steps' worth of doubt: few steps must come nearer to full than many to be a risk."""
    looks: float = 4.0
    """Samples that growth must have lasted to be a risk."""
    idle_caution: float = 0.8
    """On a GPU that computes nothing a risk must be nearer by this factor: it is a cache more often than a leak."""
    pool_caution: float = 0.9
    """The same for RAM and shm."""
    load_samples: int = 150
    """Of RAM and shm: growth that lasted for so many samples is no load, however fast it is."""
    scarce: float = 0.08
    """Of the capacity of RAM or shm: with less left growth is an alarm, be it a load or not."""
    clear: float = 1.0
    """Of the growth time seen: a risk ends when full is farther than this."""
    critical: float = 0.2
    """Of the growth time seen: full within it is critical."""
    stopped: float = 2.0
    """Of the longest usual pause: growth is over when the last step is longer ago."""
    wary: float = 0.6
    """Each alarm that was withdrawn multiplies what makes the next one by this."""
    concordant: float = 0.9
    """Share of pairs of peaks in which the later is the higher, from which on peaks are said to grow."""
    packed: float = 0.9
    """Of the capacity in use, and nothing grows: packed."""
    idle_pct: float = 3.0
    """Utilisation below it, for ``idle_samples``: it computes nothing."""
    idle_samples: int = 10
    free: float = 0.01
    """Of the capacity: a GPU with less in use and no process is free."""


@dataclass(frozen=True, slots=True)
class Trend:
    """Growth that goes on."""

    gained_bytes: float
    """Since it began."""
    lasted_s: float
    """Since it began, up to now."""
    steps: int
    step_bytes: float
    """The next step, if it goes on as it did."""
    interval_s: float
    """Usual time between steps."""
    since_s: float
    """Since the last step."""
    seen_s: float
    """Growth time seen so far, with what went before at another pace."""
    overdue: bool = False
    """The next step should have come by now."""
    bend: float = 0.0
    """By how much the steps grow from one to the next, as a logarithm; 0 is steady, negative slows down."""
    steady_step_bytes: float = 0.0
    """The mean step: what a steady growth would go on with."""
    drift_s: float = 0.0
    """By how much the time between steps grows each time."""
    cyclic: bool = False
    """It is peaks that grow."""

    @property
    def rate_bytes_s(self) -> float:
        """Pace now."""
        return self.step_bytes / self.interval_s
