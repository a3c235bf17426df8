"""Launches whose container cannot be started, on real engines: nothing of them is left, and why is remembered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpuconsole.core.errors import ConsoleError
from gpuconsole.services.cancelling import Cancellation, Cancelled
from gpuconsole.services.launching import LaunchStep, Phase, launch
from gpuconsole.services.launchrecords import LaunchRecord, LaunchRecords
from gpuconsole.services.session import Session
from tests.engine.launching import ignore, names, spec, volumes
from tests.rig.client import EngineClient
from tests.rig.kinds import RUNTIMES

pytestmark = pytest.mark.engine(*RUNTIMES)


@pytest.fixture
def session(engine: EngineClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    opened = Session(host=engine.host)
    yield opened
    opened.close()


def traces(engine: EngineClient, state: Path) -> tuple[list[str], ...]:
    """What a launch could leave: containers, volumes, networks, tokens."""
    networks = sorted(one["Name"] for one in engine.get("/networks"))
    return names(engine), volumes(engine), networks, sorted(str(path) for path in state.rglob("jupyter*/*"))


def failed(session: Session, image: str, *command: str, follow: bool = False, **options: Any) -> LaunchRecord | None:
    """The record of a launch that fails; None when nothing is remembered of it."""
    wanted = spec(image, *command, volumes=("fresh:/fresh",), **options)
    sink = (lambda _, data: None) if follow else None
    with pytest.raises(ConsoleError):
        launch(session, wanted, ignore, on_output=sink)
    return next(iter(newest()), None)


def newest() -> tuple[LaunchRecord, ...]:
    records = LaunchRecords()
    try:
        return records.all(limit=1)
    finally:
        records.close()


def test_a_program_that_is_not_there_or_closed_is_remembered_by_its_code(
    engine: EngineClient, session: Session, tmp_path: Path
) -> None:
    image, before = engine.load("small"), traces(engine, tmp_path)
    ways: tuple[dict[str, Any], ...] = (
        {"init": True}, {"init": False, "follow": True}, {"init": True, "auto_remove": True, "follow": True},
        {"init": False, "auto_remove": True},
    )  # fmt: skip
    for program, code, said in (("nosuch", 127, "no program nosuch"), ("/etc", 126, "may not be run")):
        for number, options in enumerate(ways):
            record = failed(session, image, program, name=f"at-{code}-{number}", **options)
            assert record is not None
            assert record.name == f"at-{code}-{number}", options
            assert (record.exit_code, record.cause, record.ended) == (code, "not-started", True), options
            assert said in (record.reason or ""), record.reason
            assert traces(engine, tmp_path) == before, options


def test_no_kind_of_failing_start_leaves_anything(engine: EngineClient, session: Session, tmp_path: Path) -> None:
    image, before = engine.load("small"), traces(engine, tmp_path)
    kinds: tuple[dict[str, Any], ...] = (
        {"kind": "jupyter"},  # the image has none
        {"working_dir": "/etc/passwd"},
        {"user": "nobody-of-this-name"},
        {"group_add": ("nogroup-of-this-name",)},
        {"network": "no-such-network"},
        {"network": "container:no-such-container"},
        {"ipc": "container:no-such-container"},
    )
    for options in kinds:
        command = () if "kind" in options else ("true",)
        record = failed(session, image, *command, **options)
        assert traces(engine, tmp_path) == before, options
        if record is not None and record.cause == "not-started":
            assert record.reason, options


def test_what_is_interrupted_is_neither_left_nor_remembered(
    engine: EngineClient, session: Session, tmp_path: Path
) -> None:
    image, before = engine.load("small"), traces(engine, tmp_path)
    for phase in (Phase.CREATE, Phase.START, Phase.WATCH):
        cancel = Cancellation()

        def stop(step: LaunchStep, *, phase: Phase = phase, cancel: Cancellation = cancel) -> None:
            if step.phase is phase:
                cancel.request()

        wanted = replace(spec(image, "sleep", "99", kind=None, volumes=("fresh:/fresh",)))
        with pytest.raises(Cancelled):
            launch(session, wanted, stop, cancel=cancel)
        assert newest() == ()
        assert traces(engine, tmp_path) == before
