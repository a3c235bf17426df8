"""The check of an image from the list is of the image under the cursor, whatever its name means elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpuconsole.images.pins import Pin
from gpuconsole.launch.spec import LaunchSpec
from gpuconsole.services.desk import Desk
from gpuconsole.services.lockfile import lock_file
from gpuconsole.services.runs import Runs
from gpuconsole.services.session import Session
from gpuconsole.services.startingimage import starting_image
from tests.rig.engines import Engine
from tests.tui.in_tmux import wait


def test_a_pin_of_its_name_to_another_image_changes_nothing(
    engine_modern: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, other = engine_modern.load("small"), engine_modern.load("pytorch")
    session = Session(host=engine_modern.host)
    chosen, pinned = session.engine.image(name), session.engine.image(other)
    assert chosen.id != pinned.id
    monkeypatch.chdir(tmp_path)
    lock_file().change(lambda pins: {name: Pin(name, image_id=pinned.id)})
    assert starting_image(session.engine, name).start != chosen.id
    given: list[Any] = []

    def take(session: Session, spec: LaunchSpec, *_: object, **named: object) -> None:
        given.append((spec, named))

    monkeypatch.setattr("gpuconsole.services.checking.check_image", take)
    desk = Desk(session, runs=Runs(kept=False))
    desk.check_image(name, chosen.id)
    wait(lambda: given, what="the check")
    spec, named = given[0]
    found = starting_image(session.engine, spec.image)
    assert found.image is not None
    assert found.image.id == chosen.id
    assert named["called"] == name
    (tmp_path / "gpuconsole.lock").write_text("[[malformed")
    assert starting_image(session.engine, spec.image).image == found.image
    desk.close()
