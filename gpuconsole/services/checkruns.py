"""A check as a run: how it ended, in a sentence."""

from __future__ import annotations

from gpuconsole.core.document import document
from gpuconsole.probes.records import CheckReport, CheckStatus
from gpuconsole.services.runs import RunState

_STATES = {
    CheckStatus.OK: RunState.OK,
    CheckStatus.WARN: RunState.WARN,
    CheckStatus.FAIL: RunState.FAILED,
    CheckStatus.SKIP: RunState.WARN,
}


def conclusion(report: object) -> tuple[RunState, str, str]:
    """State, headline and document of an ended check."""
    if not isinstance(report, CheckReport):
        raise TypeError(f"{type(report).__name__} is no check report")
    body = document(
        "check", environment=report.environment, checks=report.checks, verdict=report.verdict, seconds=report.seconds
    )
    return _STATES[report.verdict.status], report.verdict.sentence, body
