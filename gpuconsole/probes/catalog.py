"""Checks and benchmarks as the host knows them: name, code, title, and which failure explains which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpuconsole.core.errors import UsageError
from gpuconsole.probes.payload.benchplan import BENCHMARKS as _PAYLOAD_BENCHMARKS
from gpuconsole.probes.payload.benchplan import FULL_S, QUICK_S
from gpuconsole.probes.payload.plan import CHECKS as _PAYLOAD_CHECKS


@dataclass(frozen=True, slots=True)
class CheckInfo:
    """One check of the suite."""

    id: str
    code: str
    title: str


PYTHON = CheckInfo("check.python", "", "a Python to run the checks with")
"""Not in the suite: it stands in a report only when the checks could not be started at all."""
DELIVERY = CheckInfo("check.delivery", "", "a place for the checks' files")
"""As above, for a container that takes no file anywhere."""

CHECKS: tuple[CheckInfo, ...] = tuple(CheckInfo(check.slug, check.code, check.title) for check in _PAYLOAD_CHECKS)
"""In the order they run, which is also the order of cause: an earlier failure explains a later one."""


@dataclass(frozen=True, slots=True)
class BenchInfo:
    """One benchmark of the suite."""

    id: str
    code: str
    title: str
    rev: int
    quick: bool
    """A quick run has it too."""


BENCHMARKS: tuple[BenchInfo, ...] = tuple(
    BenchInfo(one.slug, one.code, one.title, one.rev, one.quick_s > 0) for one in _PAYLOAD_BENCHMARKS
)
"""In the order they run; their codes are in the order they are shown."""


def benchmarks_for(mode: str, only: Sequence[str] = ()) -> tuple[BenchInfo, ...]:
    """The benchmarks of a run.

    Args:
        mode: ``quick`` or ``full``.
        only: Names or codes of those wanted: ``B01``, ``bench.mm`` or ``mm``, in any case. One that a quick run does
            not have is run all the same when it is named.

    Raises:
        UsageError: There is none of such a name.
    """
    if not only:
        return tuple(one for one in BENCHMARKS if one.quick or mode == "full")
    names = {name.strip().lower().removeprefix("bench.") for name in only if name.strip()}
    known = {key for one in BENCHMARKS for key in _names(one)}
    if strange := sorted(names - known):
        raise UsageError(
            f"There is no benchmark {strange[0]}.",
            hint="They are " + ", ".join(f"{one.code} {one.id.removeprefix('bench.')}" for one in in_order()) + ".",
        )
    return tuple(one for one in BENCHMARKS if names & _names(one))


def in_order() -> tuple[BenchInfo, ...]:
    """The benchmarks in the order they are shown."""
    return tuple(sorted(BENCHMARKS, key=lambda one: one.code))


def bench_deadline_s(mode: str, plan: Sequence[BenchInfo]) -> float:
    """Seconds a run may take as a whole."""
    return QUICK_S if mode == "quick" and all(one.quick for one in plan) else FULL_S


def _names(one: BenchInfo) -> set[str]:
    return {one.code.lower(), one.id.removeprefix("bench.")}
