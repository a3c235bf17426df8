"""A benchmark as a run: how it ended, in a sentence; and one carried out as such."""

from __future__ import annotations

from collections.abc import Callable

from gpuconsole.core.document import document
from gpuconsole.core.errors import ConsoleError
from gpuconsole.core.text import plain_line
from gpuconsole.probes.benchrecords import BenchLevel, BenchRecord, BenchRun
from gpuconsole.probes.benchwords import words_of
from gpuconsole.probes.records import Record, RunEnd
from gpuconsole.services.benching import Benched
from gpuconsole.services.cancelling import Cancelled
from gpuconsole.services.probeprogress import ProbeProgress
from gpuconsole.services.runs import RunKind, Runs, RunState


def conclusion(run: BenchRun) -> tuple[RunState, str, str]:
    """State, headline and summary of an ended benchmark run."""
    return _state(run), sentence(run), summary(run)


def summary(run: BenchRun) -> str:
    """The scores that benchmarks are known by and what limits the box, as a document.

    All runs are read when a console starts, so that each has only this; :class:`BenchStore` has the whole under its id.
    """
    return document(
        "bench-summary",
        run=run.run,
        mode=run.mode,
        end=run.end,
        headline=run.headline,
        claims=run.claims,
        benchmarks=[_score(record) for record in run.benchmarks if record.headline],
    )


def _score(record: BenchRecord) -> dict[str, object]:
    return {
        "id": record.id,
        "code": record.code,
        "what": words_of(record),
        "status": record.status,
        "score": record.score,
        "unit": record.unit,
        "device": record.device,
        "datasheet": record.share.datasheet,
        "level": record.verdict.level,
        "rule": record.verdict.rule,
        "words": record.verdict.words,
    }


def _state(run: BenchRun) -> RunState:
    if run.end is RunEnd.CANCELLED:
        return RunState.CANCELLED
    if run.failed or run.end is RunEnd.BROKEN:
        return RunState.FAILED
    doubtful = any(record.verdict.level in (BenchLevel.LOW, BenchLevel.NOISY) for record in run.benchmarks)
    return RunState.WARN if doubtful or run.partial else RunState.OK


def sentence(run: BenchRun) -> str:
    """How a run came out: what limits the box, or why that cannot be told; what was cut short says so first."""
    if run.obstacle is not None:
        return f"Nothing was measured: {run.obstacle.why}."
    told = run.headline.sentence if run.headline is not None else "Nothing was measured."
    reasons = {record.why for record in run.benchmarks}
    if len(reasons) == 1 and not any(record.measured for record in run.benchmarks) and (why := reasons.pop()):
        told = f"Nothing was measured: {why}."  # one reason for all of them
    early = {
        RunEnd.CANCELLED: "Cancelled before its end",
        RunEnd.TIMEOUT: "Its time was over before its end",
        RunEnd.BROKEN: "It broke off before its end",
    }.get(run.end)
    return told if early is None else f"{early}. {told}"


def recorded(
    runs: Runs, subject: str, subject_id: str, measure: Callable[[Callable[[Record], None]], Benched]
) -> Benched:
    """Carry ``measure`` out as a run of ``runs``; it is given whom to tell its records.

    Raises:
        ConsoleError: What ``measure`` raised; the run says so too.
    """
    run_id = runs.begin(RunKind.BENCH, subject, subject_id, "begins")
    progress = ProbeProgress()
    try:
        benched = measure(lambda record: runs.advance(run_id, *progress.add(record)))
    except ConsoleError as error:
        state = RunState.CANCELLED if isinstance(error, Cancelled) else RunState.FAILED
        runs.end(run_id, state, f"{error.message} → {error.hint}" if error.hint else error.message)
        raise
    except BaseException as error:
        runs.end(run_id, RunState.FAILED, plain_line(f"gpuconsole itself failed: {type(error).__name__}: {error}"))
        raise
    runs.end(run_id, *conclusion(benched.run), subject=benched.run.subject, subject_id=benched.run.subject_id)
    return benched
