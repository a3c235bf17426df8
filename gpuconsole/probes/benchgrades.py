"""Grades: how a result stands beside its siblings, its own past, other machines and the datasheet, and by which rule.

Nothing is graded without something to grade it by, and what spread too far or was disturbed is not graded at all.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from gpuconsole.probes.benchhealth import health
from gpuconsole.probes.benchrecords import (
    BenchLevel,
    BenchRecord,
    BenchRun,
    BenchVerdict,
    Judgement,
    Rule,
    Share,
)
from gpuconsole.probes.benchreference import reference_for
from gpuconsole.probes.benchresults import BenchStatus
from gpuconsole.probes.benchshares import of_clock, of_datasheet
from gpuconsole.probes.payload.bench.timing import LEAST_N, NOISY_RIQR

HISTORY = 5
"""So many of the newest comparable results make the past a result is judged by."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Shares below which a result is low, or bad; none is bad where that is None."""

    low: float
    bad: float | None = None

    def level(self, share: float) -> BenchLevel:
        """The level of ``share``."""
        if self.bad is not None and share < self.bad:
            return BenchLevel.BAD
        return BenchLevel.LOW if share < self.low else BenchLevel.OK

    @property
    def words(self) -> str:
        """The rule, as it stands beside a grade."""
        bad = "" if self.bad is None else f", bad below {self.bad * 100:.0f} %"
        return f"low below {self.low * 100:.0f} %{bad}"


LIMITS = {
    Rule.SIBLINGS: Limits(0.95, 0.90),
    Rule.HISTORY: Limits(0.95, 0.85),
    Rule.REFERENCE: Limits(0.90, 0.75),
}
MEASURED_OTHERWISE = Limits(0.75)
"""For references of another method, where less than the figure is usual."""


@dataclass(frozen=True, slots=True)
class Peers:
    """What a result may be judged by, each comparable with it, held and undisturbed."""

    siblings: tuple[float, ...] = ()
    """Scores of the other GPUs of the same model in this machine."""
    history: tuple[float, ...] = ()
    """Scores of the same GPUs before, the newest first."""
    other_software: bool = False
    """The past was measured with another torch, CUDA or driver."""


def grade_run(run: BenchRun, peers: Callable[[BenchRecord], Peers]) -> BenchRun:
    """``run`` with the shares and the verdict of each result; ``peers`` knows what each may be compared with."""
    graded = []
    for record in run.benchmarks:
        known = peers(record)
        inside = siblings_inside(record, run)
        known = replace(known, siblings=inside or known.siblings)
        graded.append(grade(record, run, known))
    return replace(run, benchmarks=tuple(graded))


def siblings_inside(record: BenchRecord, run: BenchRun) -> tuple[float, ...]:
    """The same measured in this run on each other GPU of the same model."""
    mine = run.gpus_of(record)
    if len(mine) != 1 or mine[0].name is None:
        return ()
    found = []
    for other in run.benchmarks:
        gpus = run.gpus_of(other)
        same = (other.id, other.rev, other.params, other.unit) == (record.id, record.rev, record.params, record.unit)
        if same and len(gpus) == 1 and gpus[0].position != mine[0].position and gpus[0].name == mine[0].name:
            found += [other.score] if other.trusted and other.score is not None else []
    return tuple(found)


def grade(record: BenchRecord, run: BenchRun, peers: Peers) -> BenchRecord:
    """``record`` with its shares and its verdict."""
    if not record.measured:
        level = BenchLevel.ERROR if record.status is BenchStatus.OK else BenchLevel(record.status.value)
        return replace(record, share=Share(), verdict=BenchVerdict(level, None, record.why))
    gpus = run.gpus_of(record)
    sheet, clock, reference = of_datasheet(record, gpus), of_clock(record, gpus), reference_for(record, gpus)
    of_reference = None if reference is None else _share(record, reference.value)
    siblings = _of_others(record, peers.siblings)
    history = _of_others(record, peers.history[:HISTORY])
    share = Share(
        datasheet=None if sheet is None else _rounded(sheet.share),
        at_clock=None if clock is None else _rounded(clock.share),
        siblings=siblings,
        history=history,
        reference=of_reference,
    )
    found: list[Judgement] = []
    if siblings is not None:
        found.append(_judged(Rule.SIBLINGS, LIMITS[Rule.SIBLINGS], siblings, _of_siblings(len(peers.siblings))))
    if history is not None:
        count = min(HISTORY, len(peers.history))
        past = _of_past(count, other_software=peers.other_software)
        found.append(_judged(Rule.HISTORY, LIMITS[Rule.HISTORY], history, past))
    if reference is not None and of_reference is not None:
        limits = MEASURED_OTHERWISE if reference.otherwise else LIMITS[Rule.REFERENCE]
        found.append(_judged(Rule.REFERENCE, limits, of_reference, reference.words))
    found += health(record, run, sheet)
    return replace(record, share=share, verdict=_verdict(record, tuple(found)))


def _verdict(record: BenchRecord, judgements: tuple[Judgement, ...]) -> BenchVerdict:
    """The worst of the judgements, and of equals the nearest comparison."""
    if record.contended:
        who = ", ".join(record.contended_by) or "others"
        return BenchVerdict(BenchLevel.NOISY, None, f"not judged: {who} used the GPU", judgements)
    if record.noisy:
        return BenchVerdict(BenchLevel.NOISY, None, f"not judged: {_doubt(record)}", judgements)
    if not judgements:
        return BenchVerdict(BenchLevel.NO_REFERENCE, None, "nothing to compare it with yet", ())
    order = (BenchLevel.OK, BenchLevel.LOW, BenchLevel.BAD)
    worst = max(judgements, key=lambda each: order.index(each.level))  # the first of equals
    return BenchVerdict(worst.level, worst.rule, worst.words, judgements)


def _doubt(record: BenchRecord) -> str:
    """Why a result is noisy: of its own repeats, or of those it was measured beside (a ratio, several ranks)."""
    spread, count = record.stat.get("riqr"), record.stat.get("n")
    if isinstance(spread, int | float) and spread > NOISY_RIQR:
        return f"its repeats spread by {spread * 100:.0f} %"
    if isinstance(count, int | float) and count < LEAST_N:
        return f"it was repeated only {count:.0f} {'time' if count == 1 else 'times'}"
    return "what it was measured beside spread too far"


def _judged(rule: Rule, limits: Limits, share: float, against: str) -> Judgement:
    words = f"{share * 100:.0f} % of {against} ({limits.words})"
    return Judgement(rule, limits.level(share), words, share)


def _of_siblings(count: int) -> str:
    return "the sibling GPU" if count == 1 else f"the median of {count} sibling GPUs"


def _of_past(count: int, *, other_software: bool) -> str:
    past = "your last comparable run" if count == 1 else f"the median of your last {count} comparable runs"
    return past + (" with other software" if other_software else "")


def _of_others(record: BenchRecord, scores: Sequence[float]) -> float | None:
    return _share(record, statistics.median(scores)) if scores else None


def _share(record: BenchRecord, other: float) -> float | None:
    """How well ``record`` did beside ``other``: 1.1 is better by a tenth, whether more or less is better."""
    score = record.score
    if score is None or score <= 0 or other <= 0:
        return None
    return _rounded(score / other if record.better == "higher" else other / score)


def _rounded(share: float) -> float:
    return round(share, 4)
