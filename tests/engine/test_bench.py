"""Benchmarks inside a container of a real engine: figures of real torch, and nothing of them left, however they end."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from gpuconsole.probes.benchresults import BenchReport, BenchStatus
from gpuconsole.probes.benchrunner import run_bench
from gpuconsole.probes.records import Progress, Record, RunEnd
from gpuconsole.services.naming import find
from tests.engine.checking import Checked
from tests.payload.bench.planned import FINDER, HEAD

pytestmark = pytest.mark.engine
TINY = {"mm_size": 64, "buffer_bytes": 1 << 20, "launches": 50, "deadline_s": 40.0}
STUCK = HEAD + (
    "def run(context):\n"
    "    subprocess.Popen(['sleep', '600'])\n"
    "    context.report('deep')\n"
    "    time.sleep(600)\n"
    "    yield\n"
)


def bench(
    modern: Checked, name: str, *only: str, at: str = "", then: Callable[[], object] | None = None
) -> BenchReport:
    """Measure in the container; do something when it comes to the step ``at``."""
    cancel = threading.Event()

    def on_record(record: Record) -> None:
        if at and isinstance(record, Progress) and record.text == at:
            (then or cancel.set)()

    engine = modern.session.engine
    return run_bench(engine, find(engine, name), only=only, on_record=on_record, cancel=cancel, options=TINY)


def test_measured_in_a_container_cancelled_in_it_and_removed_under_it(modern: Checked) -> None:
    name = modern.start("--shm-size", "256m", "--read-only", "--tmpfs", "/tmp")
    report = bench(modern, name, "mm", "mem", "launch", "h2d")
    assert report.end is RunEnd.COMPLETE, report
    headlines = {result.code: result for result in report.benchmarks if result.headline}
    assert {code: result.status.value for code, result in headlines.items()} == {
        "B01": "ok", "B02": "ok", "B03": "skipped", "B04": "ok",
    }, report.benchmarks  # fmt: skip
    assert {result.device for result in report.benchmarks} == {"cpu"}
    assert headlines["B01"].unit == "TFLOP/s"
    assert headlines["B01"].params["data"] == "randn"
    assert report.environment.container_id
    assert report.environment.torch
    assert report.environment.where == f"container {name}"
    assert modern.is_clean(name)

    modern.module("sitecustomize", FINDER.format(sources={"gpuconsole.probes.payload.bench.launch": STUCK}))
    report = bench(modern, name, "launch", "attn", at="deep")
    assert report.end is RunEnd.CANCELLED
    assert [(result.code, result.why) for result in report.benchmarks] == [
        ("B04", "cancelled while it ran"),
        ("B05", "cancelled before it ran"),
    ]
    assert modern.is_clean(name)

    report = bench(modern, name, "launch", at="deep", then=lambda: modern.engine.docker("rm", "-f", name))
    assert report.end is RunEnd.BROKEN
    (lost,) = report.benchmarks
    assert lost.status is BenchStatus.ERROR
    assert lost.why == "the container was removed while it ran"
    assert lost.fix == "Launch it again."
