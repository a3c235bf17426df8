"""All checks: those that run inside and those of the host, in the order they are shown and in that of cause."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpuconsole.core.errors import UsageError
from gpuconsole.probes import catalog
from gpuconsole.probes.catalog import CheckInfo
from gpuconsole.probes.payload.plan import BY_SLUG
from gpuconsole.probes.records import CheckResult

GPU_HEALTH = CheckInfo("check.gpu-health", "C23", "the GPUs are whole")
GPU_CLOCKS = CheckInfo("check.gpu-clocks", "C24", "nothing holds the GPUs back")
HOST_CHECKS = (GPU_HEALTH, GPU_CLOCKS)
"""Taken on the host through NVML, while the others run inside."""

_CAUSES = (
    "check.python", "check.delivery", "check.torch", "check.cuda-available", "check.devices", "check.driver",
    "check.gpu-health", "check.gpu-memory", "check.kernel", "check.numerics", "check.gpu-pattern", "check.cudnn",
    "check.attention", "check.amp", "check.bf16", "check.optimizer", "check.determinism", "check.p2p", "check.shm",
    "check.limits", "check.host-memory", "check.workspace", "check.cpu", "check.environment", "check.compile",
    "check.all-reduce", "check.gpu-clocks", "check.clock",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Selection:
    """The checks of one run."""

    inside: tuple[str, ...]
    """For the payload, in the order they run, with those that others stand on."""
    host: tuple[CheckInfo, ...]
    whole: bool
    """Nothing was left out."""


def in_order() -> tuple[CheckInfo, ...]:
    """All checks in the order of their codes, which is that of a report."""
    return tuple(sorted((*catalog.CHECKS, *HOST_CHECKS), key=lambda check: check.code))


def select(only: Sequence[str] = ()) -> Selection:
    """The checks to run.

    Args:
        only: Names or codes of those wanted, in any case: ``shm``, ``check.shm``, ``C15``; none for all. What they
            stand on (torch, CUDA) runs too.

    Raises:
        UsageError: There is none of such a name.
    """
    if not only:
        return Selection(tuple(check.id for check in catalog.CHECKS), HOST_CHECKS, whole=True)
    wanted = {name.strip().lower().removeprefix("check.") for name in only}
    if strange := sorted(wanted - {name for check in in_order() for name in _names(check)}):
        raise UsageError(
            f"There is no check {strange[0]}.",
            hint="They are " + ", ".join(f"{one.code} {one.id.removeprefix('check.')}" for one in in_order()) + ".",
        )
    named = {check.id for check in catalog.CHECKS if wanted & _names(check)}
    needs = {need for check in named for need in BY_SLUG[check].needs}
    if needs or "check.shm" in named:
        named.add("check.torch")
    if needs or any(check.startswith("check.gpu-") for check in named):
        named.add("check.cuda-available")
    return Selection(
        tuple(check.id for check in catalog.CHECKS if check.id in named),
        tuple(check for check in HOST_CHECKS if wanted & _names(check)),
        whole=False,
    )


def _names(check: CheckInfo) -> set[str]:
    return {check.code.lower(), check.id.removeprefix("check.")}


def sorted_for_report(checks: Sequence[CheckResult]) -> tuple[CheckResult, ...]:
    """In the order of their codes; what kept the checks from starting comes first."""
    return tuple(sorted(checks, key=lambda check: check.code))


def sorted_by_cause(checks: Sequence[CheckResult]) -> tuple[CheckResult, ...]:
    """An earlier failure explains a later one."""
    ranks = {slug: rank for rank, slug in enumerate(_CAUSES)}
    return tuple(sorted(checks, key=lambda check: ranks.get(check.id, len(ranks))))
