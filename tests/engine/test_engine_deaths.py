"""Why launches ended that their engine went away from: on a real engine, stopped in order and crashed."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpuconsole.services import enginedeaths
from gpuconsole.services.launchends import settle
from gpuconsole.services.launching import launch
from gpuconsole.services.launchrecords import LaunchRecord, LaunchRecords
from gpuconsole.services.session import Session
from tests.engine.launching import ignore, spec
from tests.rig.engines import Engine

pytestmark = pytest.mark.engine("26.1")
Begin = Callable[..., str]


@pytest.fixture
def begin(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Begin]:
    """Launches a container that is remembered."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    session = Session(host=engine.host)

    def begun(name: str, *command: str) -> str:
        return launch(session, spec(engine.load("small"), *command, name=name), ignore).id

    yield begun
    session.close()


def settled(engine: Engine) -> dict[str, LaunchRecord]:
    records, session = LaunchRecords(), Session(host=engine.host)
    try:
        settle(session.engine, records)
        return {record.name: record for record in records.all()}
    finally:
        records.close()
        session.close()


def causes(engine: Engine) -> dict[str, str | None]:
    return {name: record.cause for name, record in settled(engine).items() if record.ended}


def test_one_that_a_stopping_engine_ended_and_those_that_ended_before(
    engine: Engine, begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin("with-it", "sleep", "999")
    begin("by-hand", "sleep", "999")
    begin("failed", "sh", "-c", "exit 1")
    begin("well", "sh", "-c", "exit 0")
    engine.docker("stop", "-t", "0", "by-hand")
    engine.stop()
    time.sleep(enginedeaths._TOLERANCE_S + 0.5)  # so far apart that clocks tell which came first
    engine.start()
    found = causes(engine)
    assert found == {"with-it": "engine-restarted", "by-hand": "stopped", "failed": None, "well": None}
    # The same with an absence that is too long to say for certain: then both are said.
    monkeypatch.setattr(enginedeaths, "_CLOSE_S", 0.5)
    (reason,) = [again(engine, "with-it").reason]
    assert reason is not None
    assert "by hand" in reason
    assert "The engine began anew" in reason
    assert again(engine, "by-hand").cause == "stopped"
    assert again(engine, "failed").cause is None


def again(engine: Engine, name: str) -> LaunchRecord:
    """The record of this launch, found out once more."""
    records = LaunchRecords()
    records.resume(records.one(name).number)
    records.close()
    return settled(engine)[name]


def test_one_that_a_crashed_engine_left_and_one_that_ended_without_it(engine: Engine, begin: Begin) -> None:
    begin("left", "sleep", "999")
    begin("alone", "sleep", "999")
    pid = int(engine.docker("inspect", "-f", "{{.State.Pid}}", "alone").stdout)
    engine.kill()
    os.kill(pid, signal.SIGKILL)
    time.sleep(1)
    engine.start()
    assert causes(engine) == {"left": "engine-restarted", "alone": "engine-restarted"}
    begin("after", "sh", "-c", "sleep 1.5; exit 1")
    begin("killed-after", "sleep", "999")
    engine.docker("wait", "after")
    engine.docker("kill", "killed-after")
    found = causes(engine)
    assert (found["after"], found["killed-after"]) == (None, "stopped")
