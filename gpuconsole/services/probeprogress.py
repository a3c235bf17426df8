"""How far a check or a benchmark is that runs, in a few words and a share."""

from __future__ import annotations

from gpuconsole.probes.benchresults import BenchResult, BenchStatus, Measured
from gpuconsole.probes.benchwords import figure
from gpuconsole.probes.records import CheckResult, Progress, Record, Started, Waiting


class ProbeProgress:
    """Counts the checks or benchmarks that are done."""

    def __init__(self) -> None:
        self._planned = 0
        self._done = 0
        self._words = "begins"

    def add(self, record: Record) -> tuple[str, float | None]:
        """What is going on after ``record``, and the share that is done; None while it is not known of how many."""
        if isinstance(record, Waiting):
            self._words = record.text
        elif isinstance(record, Started):
            self._planned = len(record.plan)
            self._words = f"runs on {record.python}"
        elif isinstance(record, Progress):
            self._words = f"{_short(record.id)}: {record.text}"
        elif isinstance(record, CheckResult):
            self._done += 1
            self._words = f"{_short(record.id)}: {record.status.value}"
        elif isinstance(record, BenchResult):
            self._words = f"{_short(record.id)}: {_told(record)}"
        elif isinstance(record, Measured):
            self._done += 1
        return self._words, min(1.0, self._done / self._planned) if self._planned else None


def _short(slug: str) -> str:
    return slug.removeprefix("check.").removeprefix("bench.")


def _told(result: BenchResult) -> str:
    if result.status is BenchStatus.OK and result.score is not None:
        return f"{figure(result.score)} {result.unit}".strip()
    return result.status.value
