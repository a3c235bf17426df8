"""Benchmarks as the host runs them: which, for how long, what is believed of their records, and what is reported."""

from __future__ import annotations

import json
import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from gpuconsole.core.document import jsonable
from gpuconsole.core.errors import UsageError
from gpuconsole.probes import catalog, parsing
from gpuconsole.probes.benchresults import BenchReport, BenchResult, BenchStatus, Measured
from gpuconsole.probes.benchrunner import run_bench_local
from gpuconsole.probes.payload.benchplan import BENCHMARKS, FULL_S, QUICK_S
from gpuconsole.probes.records import AskedGpu, AskedGpus, Progress, Record, RunEnd, Started
from tests.payload.bench.planned import plan
from tests.payload.driving import Payload


def codes(mode: str, *only: str) -> list[str]:
    return sorted(one.code for one in catalog.benchmarks_for(mode, only))


def test_a_quick_run_leaves_out_what_takes_long() -> None:
    assert codes("quick") == ["B01", "B02", "B03", "B04", "B05", "B06", "B09", "B10", "B11"]
    assert codes("full") == [f"B{number:02}" for number in range(1, 14)]


def test_the_shares_fit_the_run_with_time_to_start() -> None:
    assert sum(one.quick_s for one in BENCHMARKS) <= QUICK_S - 8
    assert sum(one.full_s for one in BENCHMARKS) <= FULL_S
    assert all(one.full_s >= one.quick_s for one in BENCHMARKS)
    assert all(one.deadline_s("full") >= 2 * one.full_s for one in BENCHMARKS)


def test_they_are_named_by_code_or_name_in_any_case() -> None:
    assert codes("quick", "b01", "bench.mem", " ATTN ") == ["B01", "B02", "B05"]
    assert codes("quick", "B13") == ["B13"]  # a quick run has it when it is named


def test_a_name_that_is_none_is_told_with_those_that_are() -> None:
    with pytest.raises(UsageError, match="There is no benchmark b99") as caught:
        catalog.benchmarks_for("quick", ["B01", "B99"])
    assert "B01 mm, B02 mem" in caught.value.hint


def test_the_time_for_a_run_goes_by_what_is_in_it() -> None:
    assert catalog.bench_deadline_s("quick", catalog.benchmarks_for("quick")) == QUICK_S
    assert catalog.bench_deadline_s("quick", catalog.benchmarks_for("quick", ["B01", "B08"])) == FULL_S
    assert catalog.bench_deadline_s("full", catalog.benchmarks_for("full", ["B01"])) == FULL_S


GOOD: dict[str, Any] = {
    "t": "bench", "id": "bench.mm", "code": "B01", "rev": 2, "status": "ok", "params": {"dtype": "bf16", "m": 8192},
    "device": "cuda", "gpu": [0], "unit": "TFLOP/s", "score": 787.2,
    "stat": {"median_ms": 1.397, "n": 120, "riqr": 0.006}, "values": {"heat_s": 3.0}, "headline": True, "noisy": False,
    "cold_s": 1.9, "peak_reserved_bytes": 1207959552, "began": 1.5, "ended": 2.5, "why": "", "fix": "",
}  # fmt: skip


def test_a_record_is_read_whole() -> None:
    result = parsing.bench_of(json.loads(json.dumps(GOOD)))
    assert result is not None
    shown = {name: value for name, value in jsonable(result).items() if name in GOOD}
    assert shown == {name: value for name, value in GOOD.items() if name != "t"}


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("score", "787", None), ("score", True, None), ("score", 10**400, None), ("score", None, None),
        ("gpu", [0, "1", None, True, 3], (0, 3)), ("gpu", {"0": 1}, ()),
        ("stat", {"n": "many", "riqr": 0.1}, {"riqr": 0.1}), ("stat", [1, 2], {}), ("params", "none", {}),
        ("values", {"a": "x\x1b[31my"}, {"a": "xy"}), ("headline", 1, False), ("noisy", "yes", False), ("rev", None, 1),
        ("why", "[/red]\x1b[2J\nfor\x07 now", "[/red] for now"), ("unit", 7, ""),
        ("peak_reserved_bytes", -0.5, 0), ("cold_s", [], None), ("began", "now", None),
    ],
)  # fmt: skip
def test_of_what_a_record_says_nothing_is_believed_too_far(name: str, value: object, wanted: object) -> None:
    result = parsing.bench_of(GOOD | {name: value})
    assert result is not None
    found = getattr(result, name)
    assert (dict(found) if isinstance(wanted, dict) else found) == wanted


@pytest.mark.parametrize("status", ["great", "", None, 3])
def test_a_record_without_a_status_is_none(status: object) -> None:
    assert parsing.bench_of(GOOD | {"status": status}) is None


class Run:
    """A run of planned benchmarks on this machine."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.cancel = threading.Event()
        self.cancel_at = self.kill_at = ""

    def hear(self, record: Record) -> None:
        self.records.append(record)
        if self.cancel_at and isinstance(record, Progress) and record.text == self.cancel_at:
            self.cancel.set()
        if self.kill_at and isinstance(record, Progress) and record.text == self.kill_at:
            (first,) = (record for record in self.records if isinstance(record, BenchResult))
            os.kill(int(first.score or 0), signal.SIGKILL)

    def bench(self, *only: str, **options: Any) -> BenchReport:
        return run_bench_local(only=only, on_record=self.hear, cancel=self.cancel, **options)


@pytest.fixture
def payload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Payload:
    """Where the modules of planned benchmarks go."""
    payload = Payload(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(payload.modules))
    monkeypatch.chdir(tmp_path)
    return payload


def test_the_report_has_all_in_the_order_of_their_codes(payload: Payload) -> None:
    plan(payload, mm="", compile="", loader="for n in (1, 2): yield Measurement({'n': n}, score=n, headline=n == 2)")
    run = Run()
    report = run.bench("B09", "compile", "mm", "p2p")
    assert report.end is RunEnd.COMPLETE
    assert report.obstacle is None
    assert [result.code for result in report.benchmarks] == ["B01", "B08", "B09", "B09", "B10"]
    assert [result.headline for result in report.benchmarks] == [True, True, False, True, True]
    assert not report.failed
    assert report.environment.torch == "2.13.0"
    assert report.environment.where == "this machine"
    assert isinstance(run.records[0], Started)
    assert run.records[0].plan == ("bench.mm", "bench.loader", "bench.p2p", "bench.compile")
    told = [record for record in run.records if isinstance(record, BenchResult)]
    assert sorted(told, key=lambda result: result.code) == list(report.benchmarks)
    assert [record.id for record in run.records if isinstance(record, Measured)] == list(run.records[0].plan)


def test_cancelled_in_the_middle_what_was_measured_stays(payload: Payload) -> None:
    plan(
        payload,
        mm="",
        mem="yield Measurement({'n': 1}, score=1.0, headline=True); context.report('deep'); time.sleep(600)",
    )
    run = Run()
    run.cancel_at = "deep"
    report = run.bench("mm", "mem", "launch")
    assert report.end is RunEnd.CANCELLED
    assert [(result.code, result.status, result.why) for result in report.benchmarks] == [
        ("B01", BenchStatus.OK, ""),
        ("B02", BenchStatus.OK, ""),
        ("B04", BenchStatus.SKIPPED, "cancelled before it ran"),
    ]


def test_late_what_did_not_run_says_so(payload: Payload) -> None:
    plan(payload, launch="time.sleep(600); yield")
    report = Run().bench("launch", "attn", deadline_s=5.0)
    assert report.end is RunEnd.TIMEOUT
    assert [(result.code, result.status.value) for result in report.benchmarks] == [
        ("B04", "timeout"),
        ("B05", "timeout"),
    ]
    assert report.benchmarks[1].why == "no time was left for it"
    assert all(result.headline for result in report.benchmarks)
    assert report.failed


def test_a_payload_that_dies_is_told_at_what_it_did(payload: Payload) -> None:
    plan(
        payload,
        mm="yield Measurement({}, score=float(os.getppid()))",
        mem="context.report('deep'); time.sleep(600); yield",
    )
    run = Run()
    run.kill_at = "deep"
    report = run.bench("mm", "mem", "launch")
    assert report.end is RunEnd.BROKEN
    done, died, never = report.benchmarks
    assert done.status is BenchStatus.OK
    assert died.status is BenchStatus.ERROR
    assert died.why == "the benchmarks were killed (exit code -9) while it ran"
    assert (never.status, never.why) == (BenchStatus.SKIPPED, "the run ended before it")


def test_what_the_host_knows_of_gpus_reaches_the_payload(payload: Payload) -> None:
    plan(payload, mm="")
    asked = AskedGpus.of((AskedGpu("GPU-1"), AskedGpu("GPU-2")))
    report = Run().bench("mm", asked_gpus=asked)
    assert report.benchmarks[0].why == "torch is a CPU build, though GPUs were given"
