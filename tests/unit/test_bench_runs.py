"""A benchmark as a run: how far it is, how it ended, and that it is graded and kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gpuconsole.core.errors import ConsoleError, EngineUnavailable
from gpuconsole.probes.benchrecords import BenchLevel, BenchRun, Rule
from gpuconsole.probes.benchresults import BenchResult, BenchStatus, Measured
from gpuconsole.probes.records import CheckResult, CheckStatus, Progress, Record, RunEnd, Started
from gpuconsole.services.benching import Benched, BenchWish, judged
from gpuconsole.services.benchruns import conclusion, recorded, sentence
from gpuconsole.services.benchstore import BenchStore
from gpuconsole.services.cancelling import Cancelled
from gpuconsole.services.probeprogress import ProbeProgress
from gpuconsole.services.runs import RunKind, Runs, RunState
from tests.unit.benchmade import NOW, SKIPPED, gpu, record, run


def test_progress_counts_benchmarks_and_tells_scores() -> None:
    progress = ProbeProgress()
    result = BenchResult("bench.mm", "B01", BenchStatus.OK, unit="TFLOP/s", score=787.2)
    records: list[Record] = [
        Started(("bench.mm", "bench.mem"), "/usr/bin/python3"), Progress("bench.mm", 1, 2, "bf16 8192"), result,
        replace(result, status=BenchStatus.SKIPPED, score=None), Measured("bench.mm"),
    ]  # fmt: skip
    told = [progress.add(one) for one in records]
    assert told == [
        ("runs on /usr/bin/python3", 0.0), ("mm: bf16 8192", 0.0), ("mm: 787 TFLOP/s", 0.0), ("mm: skipped", 0.0),
        ("mm: skipped", 0.5),
    ]  # fmt: skip


def graded(one: BenchRun, tmp_path: Path) -> BenchRun:
    store = BenchStore(path=tmp_path / "graded.db")
    try:
        return judged(one, store).run
    finally:
        store.close()


def test_how_a_run_ended(tmp_path: Path) -> None:
    good = graded(run(record()), tmp_path)
    assert conclusion(good)[0] is RunState.OK
    assert conclusion(graded(run(record(score=590.0)), tmp_path))[0] is RunState.WARN
    assert conclusion(graded(run(record(score=100.0)), tmp_path))[0] is RunState.FAILED
    assert conclusion(replace(good, end=RunEnd.CANCELLED))[0] is RunState.CANCELLED
    assert conclusion(replace(good, end=RunEnd.BROKEN))[0] is RunState.FAILED
    assert conclusion(replace(good, end=RunEnd.TIMEOUT))[0] is RunState.WARN
    assert sentence(replace(good, end=RunEnd.CANCELLED)).startswith("Cancelled before its end. Nothing stands out")
    assert sentence(run(record(**SKIPPED))) == "Nothing was measured."
    obstacle = CheckResult("check.python", "", CheckStatus.FAIL, "there is no Python in the container")
    stopped = run(obstacle=obstacle)
    assert conclusion(stopped)[:2] == (RunState.FAILED, "Nothing was measured: there is no Python in the container.")


@pytest.mark.parametrize(
    ("error", "state"),
    [(Cancelled("It was stopped."), RunState.CANCELLED),
     (EngineUnavailable("Nothing answers.", hint="Start it."), RunState.FAILED), (ValueError("odd"), RunState.FAILED)],
)  # fmt: skip
def test_a_run_does_not_stay_open_whatever_happens(error: Exception, state: RunState, tmp_path: Path) -> None:
    runs = Runs(path=tmp_path / "runs.db")

    def fail(_: Callable[[Record], None]) -> Benched:
        raise error

    with pytest.raises(type(error)):
        recorded(runs, "train", "c1", fail)
    (listed,) = runs.all()
    assert (listed.kind, listed.state, listed.subject) == (RunKind.BENCH, state, "train")
    assert listed.headline
    runs.close()


def test_a_run_is_recorded_with_its_subject_and_document(tmp_path: Path) -> None:
    runs = Runs(path=tmp_path / "runs.db")
    whole = graded(run(record()), tmp_path)

    def measure(advance: Callable[[Record], None]) -> Benched:
        advance(Started(("bench.mm",), "python3"))
        assert runs.all()[0].headline == "runs on python3"
        return Benched(whole)

    assert recorded(runs, "an image", "", measure).run == whole
    listed = runs.last(whole.subject_id, RunKind.BENCH)
    assert listed is not None
    assert (listed.subject, listed.state) == ("llama-ft", RunState.OK)
    kept = json.loads(listed.document or "")
    assert (kept["schema"], kept["run"]) == ("gpuconsole.bench-summary/1", whole.run)
    (score,) = kept["benchmarks"]
    assert (score["id"], score["what"], score["level"], score["rule"]) == ("bench.mm", "bf16 8192³", "ok", "reference")
    runs.close()


def test_what_all_consoles_read_at_their_start_stays_small(tmp_path: Path) -> None:
    many = [record(params={"dtype": "bf16", "m": side, "n": 64, "k": 64}, headline=side == 0) for side in range(500)]
    assert len(conclusion(graded(run(*many), tmp_path))[2]) < 4096


def test_a_run_is_judged_by_those_before_and_kept(tmp_path: Path) -> None:
    store = BenchStore(path=tmp_path / "records.db")
    unknown = (gpu(name="NVIDIA Something New"),)
    for day, score in enumerate((100.0, 100.0, 80.0)):
        at = NOW + day * 86400
        result = record(score=score, began=at, ended=at + 1)
        last = judged(run(result, gpus=unknown, run=f"{day:08x}", taken_at=at), store)
    assert last.not_kept is None
    (found,) = last.run.benchmarks
    assert (found.verdict.level, found.verdict.rule, found.share.history) == (BenchLevel.BAD, Rule.HISTORY, 0.8)
    assert store.find("last") == last.run
    judged(run(record(**SKIPPED), run="eeeeeeee"), store)
    assert len(store.runs()) == 3, "where nothing was measured there is nothing to remember"
    store.close()


def test_a_run_that_cannot_be_kept_is_shown_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    benched = judged(run(record()), None)
    assert benched.not_kept is not None
    assert benched.run.benchmarks[0].verdict.level is BenchLevel.OK
    assert benched.run.headline is not None


def test_how_long_it_may_take() -> None:
    assert BenchWish().longest_s == 60.0
    assert BenchWish(full=True).longest_s == 600.0
    assert BenchWish(only=("soak",)).longest_s > 60.0
    assert BenchWish(deadline_s=5.0).longest_s == 5.0
    with pytest.raises(ConsoleError):
        _ = BenchWish(only=("nothing",)).longest_s
