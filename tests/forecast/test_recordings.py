"""The forecast against the recordings: what RESULTS.md says is what comes out, and the tuned half meets its targets."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from gpuconsole.gpu.forecast import changes, predict
from gpuconsole.gpu.state import MemoryState
from gpuconsole.host.recorded import memory_samples
from gpuconsole.host.recording import read_recording
from tests.forecast.judge import Verdict, verdict
from tests.forecast.table import report
from tests.forecast.truth import CALM, FOLDER, GROWTH, HALVES, UNFORESEEN, Recording, recordings

RESULTS = Path(__file__).with_name("RESULTS.md")


@pytest.fixture(scope="module")
def runs() -> list[Recording]:
    return recordings()


def test_every_recording_is_of_a_known_class_and_half(runs: list[Recording]) -> None:
    others = {"leak-stops", "stairs-stops", "slowing-leak", "fragments", "ram-leak-stops"}
    assert {run.half for run in runs} == set(HALVES)
    assert {run.kind for run in runs} <= GROWTH | CALM | UNFORESEEN | others
    assert not GROWTH & CALM
    for run in runs:
        assert (run.oom_t is None) == (run.full is None)
        if run.kind in GROWTH:
            assert run.loaded_t is not None
            assert run.oom_t is not None


def test_the_targets_are_met_on_the_half_it_was_tuned_on(runs: list[Recording]) -> None:
    _, gates = report([run for run in runs if run.half == "tune"], "tune")
    assert len(gates) >= 9
    assert not [f"{gate.what}: {gate.found}" for gate in gates if not gate.met]


@pytest.mark.parametrize("half", HALVES)
def test_the_published_table_is_what_comes_out(runs: list[Recording], half: str) -> None:
    text, _ = report([run for run in runs if run.half == half], half)
    assert text in RESULTS.read_text(encoding="utf-8"), "run: python -m tests.forecast"


def ran_out(run: Recording) -> set[int]:
    """Processes that ran out of GPU memory, by the recording's events."""
    lines = (line for _, line in read_recording(FOLDER / f"{run.name}.jsonl.gz"))
    return {line["pid"] for line in lines if line["type"] == "event" and line["event"] == "cuda_oom"}


@pytest.mark.parametrize("every", [0.5, 1.0])
def test_only_a_process_that_ran_out_of_memory_is_said_to_have(runs: list[Recording], every: float) -> None:
    told = 0
    for run in runs:
        said = [each for statements in predict(run.every(every)) for each in statements]
        failed = {each.pid for each in said if each.state is MemoryState.FAILED}
        assert failed <= ran_out(run), run.name
        of_nobody = run.kind == "leak-hidden"  # the driver lists no processes
        announced = run.full == "gpu" and run.kind in GROWTH and verdict(run, every).hit is not None
        assert failed or of_nobody or not announced, run.name
        told += bool(failed)
    assert told


def test_events_are_never_read(runs: list[Recording], tmp_path: Path) -> None:
    for name in (runs[0].name, "stairs-oom", "ram-001"):
        source = FOLDER / f"{name}.jsonl.gz"
        bare = tmp_path / f"{name}.jsonl"
        with gzip.open(source, "rt", encoding="utf-8") as file:
            bare.write_text("".join(line for line in file if json.loads(line)["type"] != "event"), encoding="utf-8")
        assert list(changes(memory_samples(bare))) == list(changes(memory_samples(source)))


def test_a_run_thinned_to_its_own_rate_is_whole(runs: list[Recording]) -> None:
    for run in runs:
        assert len(run.every(run.interval_s)) >= len(run.samples) - 2
        assert len(run.every(4 * run.interval_s)) == pytest.approx(len(run.samples) / 4, abs=2)


def test_outcomes_are_told_apart(runs: list[Recording]) -> None:
    """The judge itself: a rule that always warns is wrong on a flat run, and a leak's warner is right."""

    def of(kind: str, rule: str) -> Verdict:
        return verdict(next(run for run in runs if run.kind == kind and run.half == "tune"), 0.5, rule)

    assert of("packed", "level").count("wrong") == 1
    assert of("leak-oom", "level").hit is not None
    assert of("leak-stops", "forecast").count("withdrawn") == 1
    assert of("steady", "forecast").alarms == []
