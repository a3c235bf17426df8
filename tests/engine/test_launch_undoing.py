"""What a failed launch takes back on real engines: what it made, and nothing that others made meanwhile."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gpuconsole.core.errors import ConsoleError, NotFound
from gpuconsole.launch import labels
from gpuconsole.services.launching import LaunchStep, Phase, launch
from gpuconsole.services.session import Session
from tests.engine.launching import ignore, launched, names, spec, volumes
from tests.rig.client import EngineClient
from tests.rig.kinds import RUNTIMES

pytestmark = pytest.mark.engine(*RUNTIMES)
BROKEN = "/no/such/program"


@pytest.fixture
def session(engine: EngineClient) -> Iterator[Session]:
    opened = Session(host=engine.host)
    yield opened
    opened.close()


def test_volumes_that_others_made_meanwhile_stay(engine: EngineClient, session: Session) -> None:
    image = engine.load("small")
    engine.docker("volume", "create", "before")

    def others(step: LaunchStep) -> None:
        if step.phase is Phase.CREATE:
            engine.docker("volume", "create", "meanwhile")

    for init in (True, False):
        with pytest.raises(NotFound):
            launch(session, spec(image, BROKEN, init=init, volumes=("before:/a", "meanwhile:/b", "ours:/c")), others)
        assert volumes(engine) == ["before", "meanwhile"]
    assert names(engine) == []


def test_a_volume_that_another_container_has_taken_into_use_stays(engine: EngineClient, session: Session) -> None:
    image = engine.load("small")

    def others(step: LaunchStep) -> None:
        if step.phase is Phase.START:
            engine.docker("create", "--name", "other", "-v", "ours:/x", image)

    with pytest.raises(NotFound):
        launch(session, spec(image, BROKEN, init=False, volumes=("ours:/c",)), others)
    assert names(engine) == ["other"]
    assert volumes(engine) == ["ours"]


def test_a_name_that_has_passed_to_another_container_leads_to_nothing(engine: EngineClient, session: Session) -> None:
    image = engine.load("small")

    def others(step: LaunchStep) -> None:
        if step.phase is Phase.START:
            engine.docker("rename", "ours", "renamed")
            engine.docker("create", "--name", "ours", image)

    for init in (True, False):
        with pytest.raises(NotFound):
            launch(session, spec(image, BROKEN, name="ours", init=init), others)
        assert names(engine) == ["ours"]
        assert labels.VERSION not in (engine.get("/containers/ours/json")["Config"]["Labels"] or {})
        engine.docker("rm", "--force", "ours")


def test_what_is_left_behind_is_named_by_its_id(
    engine: EngineClient, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = engine.load("small")

    def hang(*_: object, **__: object) -> None:
        raise ConsoleError("The engine does not answer.", hint="Look at it.")

    monkeypatch.setattr(session.engine, "remove", hang)
    with pytest.raises(NotFound) as caught:
        launch(session, spec(image, BROKEN, name="stuck"), ignore)
    identity = engine.docker("ps", "-aq", "--filter", "name=stuck").stdout.strip()
    assert f"program {BROKEN}" in caught.value.message
    assert f"The container stuck ({identity}) is left behind: The engine does not answer." in caught.value.message
    assert f"gpuconsole rm --force {identity}" in caught.value.hint


def test_a_launch_that_goes_well_marks_only_the_volumes_it_made(engine: EngineClient, session: Session) -> None:
    engine.docker("volume", "create", "before")
    result, _ = launched(session, spec(engine.load("small"), "sleep", "1000", volumes=("before:/a", "fresh:/b")))
    word = result.plan.request.labels[labels.LAUNCH]
    assert session.engine.volumes(label=f"{labels.LAUNCH}={word}") == {"fresh"}
    assert session.engine.volumes() >= {"before", "fresh"}
    again, _ = launched(session, spec(engine.load("small"), "sleep", "1000"))
    assert again.plan.request.labels[labels.LAUNCH] != word
