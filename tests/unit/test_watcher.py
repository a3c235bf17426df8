"""The pause of a watcher that lost its engine: only somebody who wants the list now cuts it short."""

from __future__ import annotations

import queue

import pytest

from gpuconsole.core.errors import EngineUnavailable
from gpuconsole.engine.model import EngineEvent
from gpuconsole.engine.protocol import Engine
from gpuconsole.services import watcher
from gpuconsole.services.watcher import ContainerWatcher, WatchState

DEAD = EngineUnavailable("Nothing answers.", hint="Start it.")
LEFT_OVER = (EngineEvent("container", "start", "a"), DEAD, EngineEvent("image", "pull", "b"), watcher._ENDED)


@pytest.fixture
def idle() -> ContainerWatcher:
    def no_engine() -> Engine:
        raise DEAD

    states: list[WatchState] = []
    return ContainerWatcher(no_engine, on_containers=lambda _: None, on_state=states.append)


def test_what_a_lost_connection_had_still_to_say_does_not_end_the_pause(idle: ContainerWatcher) -> None:
    for item in LEFT_OVER:
        idle._inbox.put(item)
    idle._pause(0.01)
    with pytest.raises(queue.Empty):
        idle._inbox.get_nowait()


def test_who_asks_for_the_list_now_ends_the_pause(idle: ContainerWatcher) -> None:
    for item in LEFT_OVER:
        idle._inbox.put(item)
    idle.refresh()
    idle._inbox.put(LEFT_OVER[0])
    idle._pause(1e6)
    assert idle._inbox.get_nowait() is LEFT_OVER[0]


def test_a_stop_ends_the_pause(idle: ContainerWatcher) -> None:
    idle._inbox.put(DEAD)
    idle.stop()
    idle._pause(1e6)
    assert idle._inbox.empty()
