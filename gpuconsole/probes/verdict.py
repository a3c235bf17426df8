"""The verdict: one sentence that names the one thing to mend first."""

from __future__ import annotations

from collections.abc import Sequence

from gpuconsole.probes import catalog
from gpuconsole.probes.gpuchecks import NOT_GIVEN
from gpuconsole.probes.records import CheckResult, CheckStatus, Environment, RunEnd, Verdict
from gpuconsole.probes.suite import GPU_CLOCKS, GPU_HEALTH, sorted_by_cause

_HOST = {GPU_HEALTH.id: "health", GPU_CLOCKS.id: "clocks"}


def judge(checks: Sequence[CheckResult], environment: Environment, end: RunEnd) -> Verdict:
    """The verdict on ``checks``; of several failures the one that explains the others is named."""
    checks = sorted_by_cause(checks)
    failed = [check for check in checks if check.status is CheckStatus.FAIL]
    if failed:
        more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
        return Verdict(CheckStatus.FAIL, f"Not fit for training: {failed[0].why}{more}.", failed[0].id)
    if end is RunEnd.CANCELLED:
        return Verdict(CheckStatus.SKIP, "Cancelled before it could tell.")
    if end is not RunEnd.COMPLETE:
        return Verdict(CheckStatus.SKIP, "Ended before it could tell.")
    if checks and all(check.status is CheckStatus.SKIP for check in checks):
        return Verdict(CheckStatus.SKIP, f"Nothing could be checked: {checks[0].why}.", checks[0].id)
    where = _where(checks, environment)
    warned = [check for check in checks if check.status is CheckStatus.WARN]
    if warned:
        more = f" (and {len(warned) - 1} more)" if len(warned) > 1 else ""
        return Verdict(CheckStatus.WARN, f"{where}, but {warned[0].why}{more}.", warned[0].id)
    return Verdict(CheckStatus.OK, f"{where}; nothing stands out{_but_not(checks)}.")


def _but_not(checks: Sequence[CheckResult]) -> str:
    """What the host could not look at, and why; empty where it looked, or there was no GPU to look at."""
    unseen = [
        check for check in checks if check.id in _HOST and check.status is CheckStatus.SKIP and check.why != NOT_GIVEN
    ]
    if not unseen:
        return ""
    what = " and ".join(_HOST[check.id] for check in unseen)
    return f", but the host could not look at the GPUs' {what}: {unseen[0].why.rstrip('.')}"


def _where(checks: Sequence[CheckResult], environment: Environment) -> str:
    if not {check.id for check in checks}.issuperset(check.id for check in catalog.CHECKS):
        return "Nothing failed of what was checked"
    kernel = next((check for check in checks if check.id == "check.kernel"), None)
    if kernel is not None and kernel.status in (CheckStatus.OK, CheckStatus.WARN):
        count = len(environment.gpus)
        return f"Fit for training on {count} GPU{'' if count == 1 else 's'}" if count else "Fit for training"
    if environment.torch_cuda is None:
        return "torch works here on the CPU only: it is a CPU build"
    return "torch works here, on the CPU: no GPU took part"
