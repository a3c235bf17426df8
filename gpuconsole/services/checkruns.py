"""A check as a run: how far it is, and how it ended, in a sentence each."""

from __future__ import annotations

from gpuconsole.core.document import document
from gpuconsole.probes.records import CheckReport, CheckResult, CheckStatus, Progress, Record, Started, Waiting
from gpuconsole.services.runs import RunState

_STATES = {
    CheckStatus.OK: RunState.OK,
    CheckStatus.WARN: RunState.WARN,
    CheckStatus.FAIL: RunState.FAILED,
    CheckStatus.SKIP: RunState.WARN,
}


class CheckProgress:
    """Counts the checks that are done."""

    def __init__(self) -> None:
        self._planned = 0
        self._done = 0
        self._words = "begins"

    def add(self, record: Record) -> tuple[str, float | None]:
        """What is going on after ``record``, and the share that is done."""
        if isinstance(record, Waiting):
            self._words = record.text
        elif isinstance(record, Started):
            self._planned = len(record.plan)
            self._words = f"runs on {record.python}"
        elif isinstance(record, Progress):
            self._words = f"{record.id.removeprefix('check.')}: {record.text}"
        elif isinstance(record, CheckResult):
            self._done += 1
            self._words = f"{record.id.removeprefix('check.')}: {record.status.value}"
        return self._words, min(1.0, self._done / self._planned) if self._planned else None


def conclusion(report: object) -> tuple[RunState, str, str]:
    """State, headline and document of an ended check."""
    if not isinstance(report, CheckReport):
        raise TypeError(f"{type(report).__name__} is no check report")
    body = document(
        "check", environment=report.environment, checks=report.checks, verdict=report.verdict, seconds=report.seconds
    )
    return _STATES[report.verdict.status], report.verdict.sentence, body
