"""What a check run tells: its results, its progress, and the report at the end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from gpuconsole.probes.benchresults import BenchResult, Measured

NOTHING: Mapping[str, Any] = MappingProxyType({})


class CheckStatus(StrEnum):
    """How a check came out."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"
    SKIP = "skip"
    """It does not apply, or what it stands on did not work; ``why`` says which."""


class RunEnd(StrEnum):
    """How the run as a whole came to its end."""

    COMPLETE = "complete"
    CANCELLED = "cancelled"
    TIMEOUT = "timeout"
    BROKEN = "broken"
    """It never started, or the container or process ended under it; the failed check says which."""


@dataclass(frozen=True, slots=True)
class AskedGpu:
    """A GPU a container was given, as the host knows it."""

    uuid: str
    index: int | None = None
    name: str | None = None
    minor: int | None = None
    """N of ``/dev/nvidiaN``."""
    memory_total_bytes: int | None = None
    memory_used_bytes: int | None = None
    """Before the check."""
    holders: tuple[str, ...] = ()
    """Who holds memory on it, each a short phrase."""


@dataclass(frozen=True, slots=True)
class AskedGpus:
    """The GPUs a container was given."""

    gpus: tuple[AskedGpu, ...] | None = ()
    """None when it is not known which; ``count`` may still be."""
    count: int | None = 0
    """None when not even that is known."""
    reason: str = ""
    """Why something is not known."""

    @classmethod
    def of(cls, gpus: tuple[AskedGpu, ...]) -> AskedGpus:
        """Exactly these."""
        return cls(gpus=gpus, count=len(gpus))

    @classmethod
    def unknown(cls, reason: str, *, count: int | None = None) -> AskedGpus:
        """It cannot be told which."""
        return cls(gpus=None, count=count, reason=reason)


NO_GPUS = AskedGpus()
"""A container that was given none."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check."""

    id: str
    """``check.shm``."""
    code: str
    """``C15``; empty for what is no check of the suite."""
    status: CheckStatus
    why: str
    """What was seen, a phrase without a full stop."""
    fix: str = ""
    """What to do, one sentence; empty when there is nothing to do."""
    value: Mapping[str, Any] = field(default_factory=lambda: NOTHING)
    """What was measured, by name."""
    seconds: float | None = None
    """How long it took; None when it did not run."""


@dataclass(frozen=True, slots=True)
class Started:
    """The payload runs; ``plan`` names the checks to come."""

    plan: tuple[str, ...]
    python: str
    """The interpreter it runs on."""


@dataclass(frozen=True, slots=True)
class Progress:
    """A check has begun, or is at a further step."""

    id: str
    step: int
    of: int
    text: str
    elapsed_s: float | None = None


@dataclass(frozen=True, slots=True)
class Note:
    """A line the container wrote that is no record: a warning, a banner."""

    text: str
    stream: str = "stdout"
    id: str = ""
    """The check that ran then."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Nothing has begun yet: something else has to be over before."""

    text: str
    """For what it waits, a phrase."""


Record = Started | Progress | CheckResult | Note | BenchResult | Measured | Waiting
"""What :func:`gpuconsole.probes.runner.run_check` and :func:`gpuconsole.probes.benchrunner.run_bench` tell while they
run."""


@dataclass(frozen=True, slots=True)
class SeenGpu:
    """A GPU as torch sees it inside."""

    position: int
    """N of ``cuda:N``."""
    uuid: str | None = None
    name: str | None = None
    compute_capability: str | None = None
    memory_total_bytes: int | None = None
    multiprocessors: int | None = None


@dataclass(frozen=True, slots=True)
class Environment:
    """Where the checks ran. What is not known is None."""

    suite: str | None = None
    where: str = ""
    """``container NAME``, ``image REF`` or ``this machine``."""
    image: str | None = None
    image_id: str | None = None
    container_id: str | None = None
    python: str | None = None
    python_path: str | None = None
    torch: str | None = None
    torch_git: str | None = None
    torch_cuda: str | None = None
    """CUDA version torch was built for; None for a CPU build as well as for no torch at all."""
    torch_archs: str | None = None
    """What torch has code for, ``sm_80 sm_90 compute_90``; None when it does not say."""
    torch_path: str | None = None
    cudnn: str | None = None
    driver: str | None = None
    driver_cuda: str | None = None
    """The CUDA version the driver offers."""
    gpus: tuple[SeenGpu, ...] = ()
    os: str | None = None
    kernel: str | None = None
    architecture: str | None = None
    cpus: int | None = None
    cpu_quota: float | None = None
    """Processors' worth of time the container may use; None without a limit."""
    memory_bytes: int | None = None
    memory_limit_bytes: int | None = None
    shm_bytes: int | None = None
    limits: Mapping[str, Any] = field(default_factory=lambda: NOTHING)
    """Bytes or numbers, or ``unlimited``."""
    user: str | None = None
    workdir: str | None = None
    variables: Mapping[str, str] = field(default_factory=lambda: NOTHING)
    taken_at: str | None = None
    """UTC, ISO 8601."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer to "is this fit for training", in one sentence."""

    status: CheckStatus
    sentence: str
    check: str | None = None
    """The check that decides it; None when all is well."""


@dataclass(frozen=True, slots=True)
class CheckReport:
    """All that a run told."""

    end: RunEnd
    environment: Environment
    checks: tuple[CheckResult, ...]
    """One for each check of the plan, in its order."""
    verdict: Verdict
    notes: tuple[Note, ...] = ()
    seconds: float | None = None

    @property
    def failed(self) -> bool:
        """A check failed."""
        return any(check.status is CheckStatus.FAIL for check in self.checks)
