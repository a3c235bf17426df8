"""How far a check or a benchmark is that runs: its plan, what it is at, what it has told, the time it still takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gpuconsole.core.text import plain_line
from gpuconsole.probes.benchresults import BenchResult, Measured
from gpuconsole.probes.records import CheckResult, Progress, Record, Started

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class Live:
    """A probe under way."""

    mode: str = ""
    """Of a benchmark ``quick`` or ``full``."""
    plan: tuple[str, ...] = ()
    """What it runs, in order; empty until that is known."""
    at: str = ""
    """Which of these it is at; empty between them."""
    at_since: float | None = None
    """Since when, in seconds since the epoch."""
    step: int = 0
    of: int = 0
    """Steps the one it is at has."""
    text: str = ""
    """What it does."""
    done: tuple[str, ...] = ()
    """Those of the plan that are over."""
    results: tuple[CheckResult | BenchResult, ...] = ()
    budgets_s: tuple[tuple[str, float], ...] = ()
    """How long each usually takes; none where that is not known."""

    @property
    def checks(self) -> tuple[CheckResult, ...]:
        """What checks told."""
        return tuple(each for each in self.results if isinstance(each, CheckResult))

    @property
    def benchmarks(self) -> tuple[BenchResult, ...]:
        """What benchmarks told."""
        return tuple(each for each in self.results if isinstance(each, BenchResult))

    def left_s(self, now: float) -> float | None:
        """Seconds it usually still takes; None when that cannot be told."""
        known = dict(self.budgets_s)
        if not self.plan or not known:
            return None
        rest = sum(known.get(each, 0.0) for each in self.plan if each not in self.done and each != self.at)
        if self.at and self.at not in self.done and self.at_since is not None:
            rest += max(0.0, known.get(self.at, 0.0) - (now - self.at_since))
        return rest


class LiveProbe:
    """Gathers what a probe tells; :attr:`now` may be read from any thread.

    Args:
        clock: Seconds since the epoch.
        mode: Of a benchmark ``quick`` or ``full``.
        budgets: Gives how long each of a plan usually takes.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        *,
        mode: str = "",
        budgets: Callable[[Iterable[str]], Mapping[str, float]] = lambda plan: {},
    ) -> None:
        self._clock = clock
        self._budgets = budgets
        self.now = Live(mode=mode)
        """As it is now."""

    def add(self, record: Record) -> None:
        """It has told something."""
        before = self.now
        if isinstance(record, Started):
            self.now = replace(before, plan=record.plan, budgets_s=tuple(self._budgets(record.plan).items()))
        elif isinstance(record, Progress):
            since = before.at_since if record.id == before.at else self._clock()
            self.now = replace(
                before, at=record.id, at_since=since, step=record.step, of=record.of, text=plain_line(record.text)
            )
        elif isinstance(record, CheckResult):
            self.now = replace(before, results=(*before.results, record), done=(*before.done, record.id))
        elif isinstance(record, BenchResult):
            self.now = replace(before, results=(*before.results, record))
        elif isinstance(record, Measured):
            self.now = replace(before, done=(*before.done, record.id))
