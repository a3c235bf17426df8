"""Benchmarks that start processes, in the plainest container: little shared memory, no network, no compiler."""

from __future__ import annotations

import threading

import pytest

from gpuconsole.probes.benchrunner import run_bench
from gpuconsole.probes.records import RunEnd
from gpuconsole.services.naming import find
from tests.engine.checking import Checked

pytestmark = pytest.mark.engine
SHORT = {"slice_s": 0.1, "sample_bytes": 16 << 20, "deadline_s": 60.0}


def test_processes_meet_without_a_network_and_what_is_missing_is_told(modern: Checked) -> None:
    name = modern.start("--network", "none", "--read-only", "--tmpfs", "/tmp", "--user", "12345:12345", "-e", "HOME=/")
    engine = modern.session.engine
    report = run_bench(
        engine,
        find(engine, name),
        only=("loader", "allreduce", "compile"),
        on_record=lambda record: None,
        cancel=threading.Event(),
        options=SHORT,
    )
    assert report.end is RunEnd.COMPLETE, report
    by_code = {code: [one for one in report.benchmarks if one.code == code] for code in ("B08", "B09", "B11")}
    loaded = {one.params["workers"]: one for one in by_code["B09"]}
    assert loaded[0].status.value == loaded["best"].status.value == "ok", report.benchmarks
    assert loaded[2].status.value == "skipped"
    assert loaded[2].why == "shared memory: 2 workers need 96 MiB of /dev/shm, and 64 MiB are free"
    assert {one.status.value for one in by_code["B11"]} == {"ok"}, by_code["B11"]
    assert {one.params["ranks"] for one in by_code["B11"]} == {2}
    assert {one.why for one in by_code["B08"]} == {"the image has no compiler"}, by_code["B08"]
    assert all(sum(one.headline for one in results) == 1 for results in by_code.values())
    assert modern.is_clean(name)
