"""Runs: told as they change, remembered when they end, never confused between namesakes."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gpuconsole.services.openruns import OpenRuns
from gpuconsole.services.runs import LEFT, Run, RunKind, Runs, RunState


def test_a_run_is_told_at_every_step_and_remembered_at_its_end(tmp_path: Path) -> None:
    told: list[tuple[Run, ...]] = []
    runs = Runs(path=tmp_path / "r.db", on_change=told.append)
    run = runs.begin(RunKind.CHECK, "train", "id-1", "shipping")
    runs.advance(run, "numerics", 0.5)
    runs.end(run, RunState.OK, "fit for training", '{"checks": []}')
    assert [(step[0].state, step[0].headline, step[0].progress) for step in told] == [
        (RunState.RUNNING, "shipping", None),
        (RunState.RUNNING, "numerics", 0.5),
        (RunState.OK, "fit for training", None),
    ]
    runs.close()
    (kept,) = Runs(path=tmp_path / "r.db").all()
    assert (kept.id, kept.subject, kept.state, kept.document) == (run, "train", RunState.OK, '{"checks": []}')
    assert kept.ended_at is not None


def test_a_verdict_belongs_to_the_container_not_to_its_name(tmp_path: Path) -> None:
    runs = Runs(path=tmp_path / "r.db")
    runs.end(runs.begin(RunKind.CHECK, "train", "old"), RunState.FAILED, "no shm")
    assert runs.last("new", RunKind.CHECK) is None
    found = runs.last("old", RunKind.CHECK)
    assert found is not None
    assert found.headline == "no shm"
    running = runs.begin(RunKind.CHECK, "train", "old")
    assert runs.last("old", RunKind.CHECK) == found
    assert runs.all()[0].id == running


_HELD = """
import pathlib, sys, time
from gpuconsole.services.runs import RunKind, Runs
runs = Runs(path=pathlib.Path(sys.argv[1]))
for kind in RunKind:
    runs.begin(kind, f"{kind.value} subject", f"{kind.value} id")
print("begun", flush=True)
time.sleep(600)
"""


def test_runs_of_a_program_that_was_killed_are_remembered_as_cut_short_and_those_of_one_that_lives_are_not(
    tmp_path: Path,
) -> None:
    path = tmp_path / "r.db"
    program = subprocess.Popen([sys.executable, "-c", _HELD, str(path)], stdout=subprocess.PIPE, text=True)
    try:
        assert program.stdout is not None
        assert program.stdout.readline() == "begun\n"
        beside = Runs(path=path)
        assert beside.all() == ()  # it lives: they are its to tell
        program.kill()
        program.wait()
    finally:
        program.kill()
        program.wait()
    for _ in range(2):  # found out once, remembered then
        runs = Runs(path=path)
        found = runs.all()
        assert {(run.kind, run.subject, run.subject_id) for run in found} == {
            (kind, f"{kind.value} subject", f"{kind.value} id") for kind in RunKind
        }
        assert {run.state for run in found} == {RunState.CANCELLED}
        assert {run.ended_at for run in found} == {None}  # nobody saw when
        assert all("killed" in run.headline for run in found)
        runs.close()


def test_what_is_under_way_when_the_program_is_left_is_remembered_as_ended_by_that(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    runs = Runs(path=path)
    done = runs.begin(RunKind.CHECK, "done", "id-0")
    runs.end(done, RunState.OK, "fit for training")
    for kind in RunKind:
        runs.begin(kind, kind.value, "id")
    runs.leave()
    runs.close()
    kept = {run.subject: run for run in Runs(path=path).all()}
    assert kept.pop("done").state is RunState.OK
    assert set(kept) == {kind.value for kind in RunKind}
    assert {(run.state, run.headline) for run in kept.values()} == {(RunState.CANCELLED, LEFT)}
    assert all(run.ended_at is not None for run in kept.values())


def test_one_that_was_cut_short_takes_nothing_from_what_was_known_before(tmp_path: Path) -> None:
    runs = Runs(path=tmp_path / "r.db")
    runs.end(runs.begin(RunKind.CHECK, "train", "id"), RunState.OK, "fit")
    runs.end(runs.begin(RunKind.CHECK, "train", "id"), RunState.CANCELLED, "Cancelled before its turn.")
    runs.begin(RunKind.CHECK, "train", "id")
    runs.close()
    for found in (runs.last("id", RunKind.CHECK), Runs(path=tmp_path / "r.db").last("id", RunKind.CHECK)):
        assert found is not None
        assert found.headline == "fit"


def test_without_a_place_to_write_runs_live_as_long_as_the_program(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    runs = Runs(path=tmp_path / "file" / "r.db")
    assert runs.problem is not None
    runs.end(runs.begin(RunKind.CHECK, "train", "id"), RunState.OK, "fit")
    assert runs.all()[0].headline == "fit"


def test_only_so_many_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpuconsole.services.runs.KEPT", 3)
    runs = Runs(path=tmp_path / "r.db")
    for number in range(6):
        runs.end(runs.begin(RunKind.CHECK, f"c{number}", "id"), RunState.OK, "fit")
    runs.close()
    assert [run.subject for run in Runs(path=tmp_path / "r.db").all()] == ["c5", "c4", "c3"]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_the_last_verdict_is_that_of_the_check_that_began_last_whatever_ended_last(
    tmp_path: Path, order: tuple[int, ...]
) -> None:
    runs = Runs(path=tmp_path / "r.db")
    begun = []
    for number in range(3):
        begun.append(runs.begin(RunKind.CHECK, "train", "id", f"check {number}"))
        time.sleep(0.002)  # they begin one after another by the clock
    for number in order:
        runs.end(begun[number], RunState.OK, f"verdict {number}")
    found = runs.last("id", RunKind.CHECK)
    assert found is not None
    assert found.headline == "verdict 2"
    runs.close()
    again = Runs(path=tmp_path / "r.db").last("id", RunKind.CHECK)
    assert again is not None
    assert again.headline == "verdict 2"


def test_a_launch_is_remembered_by_the_container_it_made(tmp_path: Path) -> None:
    runs = Runs(path=tmp_path / "r.db")
    run = runs.begin(RunKind.LAUNCH, "pytorch:2", "")
    runs.end(run, RunState.OK, "pytorch-a1b2 runs", subject="pytorch-a1b2", subject_id="id-1")
    assert runs.all()[0].subject == "pytorch-a1b2"
    runs.close()
    found = Runs(path=tmp_path / "r.db").last("id-1", RunKind.LAUNCH)
    assert found is not None
    assert found.id == run


def test_one_that_ends_as_another_program_looks_for_abandoned_ones_keeps_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = Runs(path=tmp_path / "x.db")
    run_id = ours.begin(RunKind.CHECK, "train", "c1")
    look = OpenRuns.abandoned

    def ends_just_now(self: OpenRuns) -> list[sqlite3.Row]:
        """What was open a moment ago, of a program that has ended since."""
        rows = self._store.rows("SELECT * FROM open_runs")
        ours.end(run_id, RunState.OK, "healthy")
        ours.close()
        assert look(self) == []
        return rows

    monkeypatch.setattr(OpenRuns, "abandoned", ends_just_now)
    for _ in range(2):
        theirs = Runs(path=tmp_path / "x.db")
        assert [(run.state, run.headline) for run in theirs.all()] == [(RunState.OK, "healthy")]
        theirs.close()
