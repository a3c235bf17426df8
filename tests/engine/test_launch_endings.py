"""Launched containers that end at once, on real engines: commands that cannot be run, and restarts without end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpuconsole.core.errors import ConsoleError, NotFound, Refused
from gpuconsole.engine.model import ContainerState
from gpuconsole.services.launching import launch
from gpuconsole.services.session import Session
from tests.engine.launching import ignore, launched, names, spec, volumes
from tests.rig.client import EngineClient
from tests.rig.kinds import RUNTIMES

pytestmark = pytest.mark.engine(*RUNTIMES)


@pytest.fixture
def session(engine: EngineClient) -> Iterator[Session]:
    opened = Session(host=engine.host)
    yield opened
    opened.close()


def refused(session: Session, image: str, *command: str, follow: bool, **options: Any) -> ConsoleError:
    with pytest.raises(ConsoleError) as caught:
        launched(session, spec(image, *command, **options), follow=follow)
    return caught.value


def test_a_command_that_cannot_be_run_is_one_failure_with_and_without_an_init(
    engine: EngineClient, session: Session, tmp_path: Path
) -> None:
    tmp_path.chmod(0o755)
    for name, mode, text in (("interpreter", 0o755, "#!/no/such\n"), ("closed", 0o644, "#!/bin/sh\n")):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(mode)
    image, mounts = engine.load("small"), (f"{tmp_path}:/scripts", "fresh:/fresh")
    ways: tuple[dict[str, Any], ...] = ({"init": True}, {"init": False})
    more: tuple[dict[str, Any], ...] = ({"follow": True}, {"init": False, "follow": True}, {"restart": "always"})
    for program, kind, each in (
        ("nosuch", NotFound, (*ways, *more, {"entrypoint": "nosuch"})),
        ("/etc/passwd/x", NotFound, ways),
        ("/scripts/interpreter", NotFound, ways),
        ("/no/such with: a (colon) failed", NotFound, ways),
        ("/scripts/closed", Refused, (*ways, *more)),
    ):
        told = [
            refused(session, image, program, "-x", volumes=mounts, **({"follow": False} | options)) for options in each
        ]
        assert {type(error) for error in told} == {kind}, program
        assert {(error.message, error.hint) for error in told} == {(told[0].message, told[0].hint)}
        assert f"program {program} in the container" in told[0].message
    assert names(engine) == []
    assert volumes(engine) == []


def test_without_a_trace_of_its_output_the_exit_code_tells(engine: EngineClient, session: Session) -> None:
    image = engine.load("small")
    for init in (True, False):
        assert isinstance(refused(session, image, "nosuch", follow=False, init=init, auto_remove=True), NotFound)
        assert isinstance(refused(session, image, "/etc", follow=False, init=init, auto_remove=True), Refused)
        assert isinstance(refused(session, image, "nosuch", follow=True, init=init, auto_remove=True), NotFound)
    assert names(engine) == []


def test_codes_of_a_commands_own_are_left_alone(engine: EngineClient, session: Session) -> None:
    """A shell that does not find a program ends with the same codes, after its command has run."""
    image = engine.load("small")
    for script, code in (("exit 127", 127), ("nosuch", 127), ("exit 126", 126), ("echo x: not found; exit 1", 1)):
        for follow in (False, True) if code == 127 else (False,):
            result, _ = launched(session, spec(image, "sh", "-c", script), follow=follow)
            assert result.ending is not None
            assert result.ending.exit_code == code
            assert result.name in names(engine)
    for code in (126, 127):
        result, _ = launched(session, spec(image, "sh", "-c", f"exit {code}", auto_remove=True), follow=True)
        assert result.ending is not None
        assert result.ending.exit_code == code


def test_one_that_is_started_again_and_again_is_not_said_to_have_ended(engine: EngineClient, session: Session) -> None:
    image = engine.load("small")
    for policy, follow in (("always", False), ("unless-stopped", True), ("on-failure", False)):
        wanted = spec(image, "sh", "-c", "echo begun; exit 3", restart=policy)
        result, output = launched(session, wanted, follow=follow)
        ending = result.ending
        assert ending is not None
        assert result.container is not None
        assert result.container.state in (ContainerState.RESTARTING, ContainerState.RUNNING)
        assert ending.exit_code == 3
        assert ending.restarts
        assert set(ending.last_lines) == {"begun"}
        assert "is started again each time" in ending.words
        assert f"--restart {policy}" in ending.words
        assert "exit code 3" in ending.words
        assert str(ending.restarts) in ending.words or "once" in ending.words
        if follow:
            assert output.startswith("begun\n")
        session.engine.remove(result.id, force=True)


def test_one_that_was_restarted_before_anybody_looked_is_told_too(
    engine: EngineClient, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    image, start = engine.load("small"), session.engine.start

    def start_and_dawdle(container_id: str) -> None:
        start(container_id)
        engine.docker("exec", container_id, "true", check=False)
        while session.engine.container(container_id).restart_count == 0:
            pass
        while not session.engine.container(container_id).running:
            pass

    monkeypatch.setattr(session.engine, "start", start_and_dawdle)
    once = "[ -e /seen ] && exec sleep 1000; touch /seen; exit 5"
    result = launch(session, spec(image, "sh", "-c", once, restart="always"), ignore)
    assert result.ending is not None
    assert (result.ending.exit_code, result.ending.restarts) == (5, 1)
    assert "has ended once already" in result.ending.words


def test_restarts_that_have_an_end_are_an_end(engine: EngineClient, session: Session) -> None:
    image = engine.load("small")
    for command, policy, code in (("exit 3", "on-failure:1", 3), ("true", "on-failure", 0)):
        result, _ = launched(session, spec(image, "sh", "-c", command, restart=policy))
        ending = result.ending
        assert ending is not None
        if ending.restarts is None:  # on a slow machine the second of watching may be over before the last end
            assert ending.words.startswith(f"has ended already, exit code {code}")
        assert ending.exit_code == code
    result, _ = launched(session, spec(image, "sleep", "1000", restart="always"))
    assert result.ending is None
