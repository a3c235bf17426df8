"""The talk with a payload that measures: as with one that checks, but a benchmark tells many results."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

from gpuconsole.probes import catalog, obstacles, parsing
from gpuconsole.probes.benchresults import BenchResult, BenchStatus, Measured
from gpuconsole.probes.conversation import Conversation
from gpuconsole.probes.place import Place
from gpuconsole.probes.records import CheckResult, CheckStatus, Record

_MOST_RESULTS = 2000


class BenchConversation(Conversation):
    """One run of benchmarks in ``place``; what it told of them is in ``results`` and ``measured``.

    Args:
        place: Where it runs.
        on_record: Called from the thread that holds the conversation.
        cancel: When set, the payload is ended.
        deadline_s: What the payload was told it has.
    """

    def __init__(
        self, place: Place, *, on_record: Callable[[Record], None], cancel: threading.Event, deadline_s: float
    ) -> None:
        super().__init__(place, on_record=on_record, cancel=cancel, deadline_s=deadline_s)
        self.results: list[BenchResult] = []
        self.measured: set[str] = set()
        """The benchmarks that have told all they had to tell."""
        self._handlers.update({"bench": self._hear_bench, "measured": self._hear_measured})

    @property
    def started(self) -> bool:
        """The payload runs, or ran."""
        return bool(self._plan)

    def _hear_bench(self, record: parsing.RawRecord) -> None:
        result = parsing.bench_of(record)
        if result is not None and result.id in self._plan and len(self.results) < _MOST_RESULTS:
            self._tell(result)

    def _hear_measured(self, record: parsing.RawRecord) -> None:
        slug = parsing.text_of(record, "id")
        if slug in self._plan and slug not in self.measured:
            self.measured.add(slug)
            self._on_record(Measured(slug))

    def _tell(self, result: BenchResult) -> None:
        self.results.append(result)
        self._on_record(result)

    def _fail_current(self, why: str, fix: str = "") -> None:
        """Give the benchmark that was under way the failure; without one, the start has failed."""
        slug = next((slug for slug in self._plan if slug not in self.measured), None)
        if slug is None:
            if not self._plan:
                self._heard.obstacle = obstacles.not_started(why)
            return
        info = next((one for one in catalog.BENCHMARKS if one.id == slug), None)
        told = CheckResult(slug, "", CheckStatus.FAIL, f"{why} while it ran", fix or obstacles.look_at_logs(why))
        said = of_benchmarks(told)
        self._tell(
            BenchResult(
                slug, info.code if info else "", BenchStatus.ERROR, rev=info.rev if info else 1, why=said.why,
                fix=said.fix, headline=not any(one.id == slug and one.headline for one in self.results),
            )
        )  # fmt: skip
        self.measured.add(slug)


def of_benchmarks(told: CheckResult) -> CheckResult:
    """What was said of checks, said of benchmarks."""
    why = told.why.replace("the checks", "the benchmarks").replace("first check", "first benchmark")
    fix = told.fix.replace("Run the check again", "Run the benchmark again").replace("run the check", "run it")
    return replace(told, why=why, fix=fix)
