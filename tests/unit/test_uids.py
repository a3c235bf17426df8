"""Whose a container's process is: looked up seldom, and yet never long after it has become another's."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from gpuconsole.core import users
from gpuconsole.engine.model import Container, ContainerState
from gpuconsole.services.uids import Uids


class World:
    """A process whose user changes, and a clock that the test moves on."""

    def __init__(self) -> None:
        self.now = 500.0
        self.uid: int | None = 0
        self.looks = 0

    def look(self, container: Container) -> int | None:
        """Whose it is now."""
        self.looks += 1
        return self.uid


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """The world the looks are at."""
    world = World()
    monkeypatch.setattr("gpuconsole.services.uids.time", SimpleNamespace(monotonic=lambda: world.now))
    monkeypatch.setattr("gpuconsole.services.ownership.main_process_uid", world.look)
    return world


def container(pid: int | None) -> Container:
    state = ContainerState.RUNNING if pid else ContainerState.EXITED
    return Container(id="ab" * 32, name="train", image="small", image_id="sha256:1", state=state, pid=pid)


@pytest.mark.parametrize("after_s", [0, 1, 3, 10, 100, 1000])
def test_another_user_is_seen_the_sooner_the_younger_the_process_is(world: World, after_s: int) -> None:
    uids = Uids()
    for _ in range(after_s):
        uids.of(container(42))
        world.now += 1
    uids.of(container(42))
    world.uid, since = 1000, world.now
    while uids.of(container(42)) != 1000:
        world.now += 1
    assert world.now - since <= min(60, max(2, after_s + 2))


def test_in_a_day_it_is_seldom_looked_up(world: World) -> None:
    uids = Uids()
    for _ in range(86_400):
        uids.of(container(42))
        world.now += 1
    assert world.looks < 86_400 / 50


def test_a_restart_and_a_stop_are_seen_at_once(world: World) -> None:
    uids = Uids()
    for _ in range(500):
        uids.of(container(42))
        world.now += 1
    world.uid = 1000
    assert uids.of(container(43)) == 1000
    world.uid = None
    assert uids.of(container(None)) is None
    world.uid = 0
    assert uids.of(container(43)) == 0


def test_a_user_that_has_no_name_yet_gets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    names: dict[int, str] = {}
    monkeypatch.setattr("pwd.getpwuid", lambda uid: SimpleNamespace(pw_name=names[uid]))
    monkeypatch.setattr(users, "_names", {})
    assert users.user_name(4242) == "4242"
    names[4242] = "ada"
    assert users.user_name(4242) == "ada"
