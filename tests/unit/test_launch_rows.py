"""Launches as runs: what the records know of each is what is told, and no launch is told twice."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from gpuconsole.services.launchrecords import LaunchRecord
from gpuconsole.services.launchrows import SHOWN, with_launches
from gpuconsole.services.runs import Run, RunKind, RunState
from gpuconsole.tui.present.run import word

OWN = Run("1", RunKind.LAUNCH, "box", "c1", 100.0, RunState.OK, 102.0, "box was started")
RECORD = LaunchRecord(
    number=1, word="w1", engine="unix:///x", name="box", container_id="c1", image="busybox:1", digest=None, gpus=(),
    folder="/w", options={"image": "busybox:1"}, command="docker run busybox:1", started_at=101.0,
)  # fmt: skip
ENDED = replace(RECORD, ended_at=150.0, exit_code=1, cause="cuda-out-of-memory", reason="GPU memory was over.",
                advice=("Take less.", "Take another GPU."))  # fmt: skip


@pytest.mark.parametrize(
    ("record", "up", "state", "words"),
    [
        (RECORD, {"c1"}, RunState.OK, "It runs."),
        (replace(RECORD, profile="train"), {"c1"}, RunState.OK, "It runs, from the profile train."),
        (RECORD, (), RunState.OK, "how it is now is not known"),
        (ENDED, (), RunState.FAILED, "GPU memory was over."),
        (replace(ENDED, exit_code=0, cause=None), (), RunState.OK, "over"),
        (replace(ENDED, exit_code=137, cause="stopped"), (), RunState.CANCELLED, "over"),
        (replace(ENDED, exit_code=None, cause="removed"), (), RunState.CANCELLED, "over"),
        (replace(ENDED, exit_code=None, cause="gone"), (), RunState.WARN, "over"),
        (replace(ENDED, exit_code=3, cause="gone"), (), RunState.FAILED, "over"),
    ],
)
def test_a_launch_is_as_its_record_has_it(record: LaunchRecord, up: set[str], state: RunState, words: str) -> None:
    (run,) = with_launches([OWN], [record], up=up)
    assert (run.id, run.state, run.up) == ("1", state, bool(up))
    assert words in run.headline
    assert word(run) == ("up" if up else "stopped" if state is RunState.CANCELLED else state.value)
    assert run.took_s(200.0) == (100.0 if up else 50.0 if record.ended else 2.0)
    if state is RunState.FAILED:
        assert json.loads(run.document or "") == {"message": record.reason, "hint": "Take less. Take another GPU."}


def test_launches_of_others_stand_there_too_and_none_twice() -> None:
    check = Run("c", RunKind.CHECK, "box", "c1", 300.0, RunState.OK, 301.0)
    elsewhere = [
        replace(ENDED, number=n, word=f"w{n}", name=f"n{n}", container_id=f"c{n}", started_at=1000.0 - n)
        for n in range(2, 60)
    ]
    found = with_launches([check, OWN], [*elsewhere, ENDED], up=())
    assert [run.subject for run in found] == [*(f"n{n}" for n in range(2, 2 + SHOWN)), "box", "box"]
    assert found[-1].headline == "GPU memory was over.", "one's own launch is told however long ago it was"

    begun = replace(OWN, subject="busybox:1", subject_id="", state=RunState.RUNNING, ended_at=None)
    assert with_launches([begun], [RECORD], up={"c1"}) == (begun,)
    failed = replace(begun, state=RunState.FAILED, ended_at=104.0)
    assert with_launches([failed], [ENDED], up=()) == (failed,)
    assert len(with_launches([failed], [replace(ENDED, started_at=110.0)], up=())) == 2
    assert with_launches([], [RECORD], up=()) == (), "of one elsewhere nothing is known"
