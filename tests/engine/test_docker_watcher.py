"""The watcher on a real engine: events, engines that stop, freeze and come back, and its own end."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuconsole.core.errors import EngineUnavailable, TimedOut
from gpuconsole.engine.docker.engine import DockerEngine
from gpuconsole.engine.endpoint import Endpoint
from gpuconsole.engine.model import Container, ContainerState, EngineEvent
from gpuconsole.engine.protocol import Engine as AnyEngine
from gpuconsole.engine.request import CreateRequest
from gpuconsole.services.watcher import ContainerWatcher, Pace, WatchState
from tests.engine.contract import until
from tests.rig.engines import Engine

pytestmark = pytest.mark.engine
QUICK = Pace(settle_s=0.05, longest_wait_s=0.3, liveness_s=0.5, first_retry_s=0.1, longest_retry_s=0.5)


class Witness:
    """A watcher and all that it told."""

    def __init__(self, real: Engine, *, pace: Pace = QUICK) -> None:
        self.lists: list[tuple[Container, ...]] = []
        self.states: list[WatchState] = []
        self.events: list[EngineEvent] = []
        self.opened: list[DockerEngine] = []
        self.tries = 0
        self.hears = threading.Event()
        """Cleared, it is too busy to hear of a list."""
        self.hears.set()
        self._host = real.host
        self.watcher = ContainerWatcher(
            self._open,
            on_containers=self._take,
            on_state=self.states.append,
            on_event=self.events.append,
            pace=pace,
        )

    def _take(self, listed: tuple[Container, ...]) -> None:
        self.hears.wait(60)
        self.lists.append(listed)

    def _open(self) -> AnyEngine:
        self.tries += 1
        if not self.opened:
            self.opened.append(DockerEngine.connect(Endpoint(self._host, "--host"), timeout_s=1))
        return self.opened[0]

    def shows(self, identity: str) -> ContainerState | None:
        """The state of a container in the newest list."""
        newest = self.lists[-1] if self.lists else ()
        return next((one.state for one in newest if one.id == identity), None)

    @property
    def connected(self) -> bool:
        return bool(self.states) and self.states[-1].connected


@pytest.fixture
def real(engine_modern: Engine) -> Iterator[Engine]:
    yield engine_modern
    engine_modern.thaw()
    if not engine_modern.running:
        engine_modern.start()


@pytest.fixture
def witness(real: Engine) -> Iterator[Witness]:
    made = Witness(real)
    made.watcher.start()
    until(lambda: bool(made.lists), what="the first list")
    yield made
    made.watcher.stop()
    for engine in made.opened:
        engine.close()


@pytest.fixture
def ours(real: Engine) -> Iterator[DockerEngine]:
    engine = DockerEngine.connect(Endpoint(real.host, "--host"))
    yield engine
    engine.close()


def test_what_happens_to_containers_is_shown(real: Engine, witness: Witness, ours: DockerEngine) -> None:
    image = real.load("small")
    identity = ours.create(CreateRequest(image=image, command=("sleep", "1000")))
    until(lambda: witness.shows(identity) is ContainerState.CREATED, what="the new one")
    ours.start(identity)
    until(lambda: witness.shows(identity) is ContainerState.RUNNING, what="its start")
    ours.pause(identity)
    until(lambda: witness.shows(identity) is ContainerState.PAUSED, what="its pause")
    ours.unpause(identity)
    ours.stop(identity, grace_s=0)
    until(lambda: witness.shows(identity) is ContainerState.EXITED, what="its end")
    ours.remove(identity)
    until(lambda: witness.shows(identity) is None, what="its removal")
    actions = {"create", "start", "pause", "die", "destroy"}  # the list may know sooner than the events tell
    until(lambda: actions <= {event.action for event in witness.events}, what="the events of all that")
    assert [state.connected for state in witness.states] == [True]


def test_a_process_inside_is_no_reason_to_ask(real: Engine, ours: DockerEngine) -> None:
    identity = ours.create(CreateRequest(image=real.load("small"), command=("sleep", "1000")))
    ours.start(identity)
    calm = Witness(real, pace=Pace(settle_s=0.05, liveness_s=60))
    calm.watcher.start()
    until(lambda: bool(calm.lists), what="the first list")
    process = ours.execute(identity, ["true"])
    list(process.output)
    until(lambda: "exec_die" in [event.action for event in calm.events], what="the event of its end")
    assert len(calm.lists) == 1
    calm.watcher.refresh()
    until(lambda: len(calm.lists) == 2, what="the list asked for")
    assert calm.watcher.stop()


def test_a_burst_of_events_asks_a_few_times_only(real: Engine, witness: Witness, ours: DockerEngine) -> None:
    image, before = real.load("small"), len(witness.lists)
    witness.hears.clear()
    made = [ours.create(CreateRequest(image=image)) for _ in range(30)]
    witness.hears.set()
    until(lambda: witness.shows(made[-1]) is not None, what="the last one")
    assert len(witness.lists) - before < 10


def test_an_engine_that_stops_and_comes_back(real: Engine, witness: Witness, ours: DockerEngine) -> None:
    image = real.load("small")
    identity = ours.create(CreateRequest(image=image, command=("sleep", "1000")))
    ours.start(identity)
    until(lambda: witness.shows(identity) is ContainerState.RUNNING, what="the running one")
    real.stop()
    until(lambda: not witness.connected, what="the loss")
    told = witness.states[-1].error
    assert isinstance(told, EngineUnavailable)
    assert told.hint
    losses, tries = len(witness.states), witness.tries
    until(lambda: witness.tries >= tries + 3, what="more tries")
    assert len(witness.states) - losses <= 1, "a loss is told once, not at each try"
    real.start()
    until(lambda: witness.connected, what="the return")
    until(lambda: witness.shows(identity) is ContainerState.EXITED, what="what became of it meanwhile")
    ours.remove(identity)
    until(lambda: witness.shows(identity) is None, what="events after the return")


def test_an_engine_that_freezes_is_noticed_in_its_silence(real: Engine, witness: Witness) -> None:
    real.freeze()
    until(lambda: not witness.connected, what="the silence to be noticed")
    assert isinstance(witness.states[-1].error, TimedOut)
    real.thaw()
    until(lambda: witness.connected, what="the return")


def test_it_ends_at_once_in_peace_and_soon_on_a_frozen_engine(real: Engine) -> None:
    calm = Witness(real, pace=Pace(liveness_s=60))
    calm.watcher.start()
    until(lambda: bool(calm.lists), what="the first list")
    assert calm.watcher.stop(5)
    told = len(calm.lists) + len(calm.states)
    frozen = Witness(real, pace=Pace(liveness_s=60))
    frozen.watcher.start()
    until(lambda: bool(frozen.lists), what="the first list")
    real.freeze()
    assert frozen.watcher.stop(5), "it waits on the stream of events, which can be closed"
    real.thaw()
    assert told == len(calm.lists) + len(calm.states)
    assert frozen.states[-1].connected, "after the end nothing is told"


def test_an_engine_that_is_not_there_at_first(real: Engine, tmp_path: Path) -> None:
    link = tmp_path / "later.sock"
    states: list[WatchState] = []
    lists: list[tuple[Container, ...]] = []

    def open_engine() -> AnyEngine:
        return DockerEngine.connect(Endpoint(f"unix://{link}", "--host"))

    watcher = ContainerWatcher(open_engine, on_containers=lists.append, on_state=states.append, pace=QUICK)
    watcher.start()
    until(lambda: bool(states), what="the first state")
    assert not states[0].connected
    link.symlink_to(real.socket)
    until(lambda: bool(lists), what="the first list")
    assert [state.connected for state in states] == [False, True]
    assert watcher.stop(5)


def test_a_fault_of_the_one_who_is_told_does_not_end_it_in_silence(real: Engine) -> None:
    states: list[WatchState] = []
    seen = threading.Event()

    def broken(_: tuple[Container, ...]) -> None:
        if not seen.is_set():
            seen.set()
            raise RuntimeError("oh")

    watcher = ContainerWatcher(
        lambda: DockerEngine.connect(Endpoint(real.host, "--host")),
        on_containers=broken,
        on_state=states.append,
        pace=QUICK,
    )
    watcher.start()
    until(lambda: [state.connected for state in states] == [True, False, True], what="the return")
    assert states[1].error is not None
    assert "RuntimeError: oh" in states[1].error.message
    assert watcher.stop(5)
