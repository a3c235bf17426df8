"""A recording that one goes to and fro in: what is known at a moment is the same however one came there."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpuconsole.engine.model import Container, ContainerState
from gpuconsole.gpu.model import Gpu, GpuSnapshot
from gpuconsole.host.model import GpuView, HostView
from gpuconsole.services import replaypast
from gpuconsole.services.containers import ContainerView
from gpuconsole.services.replay import Clock, Player, Sight, State
from gpuconsole.services.replayclock import SPEEDS
from gpuconsole.services.replayclock import Clock as AnyClock
from gpuconsole.services.replayevents import moments_of
from gpuconsole.services.replayfile import Event, Recording, load
from gpuconsole.services.replaypast import Copies, Past, Remembered

FIXTURES = Path(__file__).parents[1] / "fixtures"
RECORDINGS = [FIXTURES / "console-h200.jsonl.gz", FIXTURES / "two-tenants-h200.jsonl.gz",
              Path(__file__).parents[1] / "forecast/recordings/optspike-oom.jsonl.gz"]  # fmt: skip


class Listener:
    """Takes down what it is told, and remembers as a console does."""

    def __init__(self, player: Player) -> None:
        self.player = player
        self.remembered = Remembered()
        self.known: dict[str, Any] = {}
        self.at = 0.0
        self.sights = 0

    def played(self, at: float) -> None:
        self.at = at

    def sought(self, sight: Sight) -> None:
        self.remembered = sight.remembered
        self.known = {kind: getattr(sight.state, kind) for kind in sight.state.told - {"facts"}}
        self.sights += 1

    def broke(self, error: Exception) -> None:
        raise error

    def host_looked(self, view: HostView) -> None:
        self.known["host"] = view
        self.remembered.host_looked(view)
        self.remembered.explain(self.player, self.at)

    def containers_listed(self, views: tuple[ContainerView, ...]) -> None:
        self.known["containers"] = views
        self.remembered.containers_listed(views, self.at)
        self.remembered.explain(self.player, self.at)

    def runs_changed(self, runs: Any) -> None:
        self.known["runs"] = runs
        self.remembered.runs_changed(runs, self.at)

    def images_listed(self, views: Any) -> None:
        self.known["images"] = views

    def engine_known(self, info: Any) -> None:
        self.known["engine"] = info

    def engine_linked(self, link: Any) -> None:
        self.known["link"] = link

    def images_judged(self, shelf: Any) -> None:
        """Nobody looks at them."""


def memory_of(recording: Recording, remembered: Remembered, at: float) -> Any:
    """All that a console could show of what is remembered."""
    pasts = remembered.pasts
    keys = {view.gpu.uuid or f"index-{view.gpu.index}" for look in remembered.looks for view in look.gpus}
    now = recording.began_at + at
    return {
        key: [[*map(tuple, pasts.points(measure, key, 0, now))] for measure in ("use", "memory")]
        + [pasts.events(key, 0), pasts.full_since(key), pasts.peak("memory", key)]
        for key in sorted(keys)
    } | {
        "looks": list(remembered.looks),
        "alarms": sorted((row.standing.value, row.alarm.key) for row in remembered.alarms.listed()),
        "stored": pasts.stored,
    }


def all_of(recording: Recording, past: Past, at: float) -> Any:
    state = past.state
    return (
        {name: getattr(state, name) for name in State.__dataclass_fields__},
        memory_of(recording, past.remembered, at),
    )


def played_to(recording: Recording, at: float) -> Past:
    past = Past(recording.began_at)
    for event in recording.events:
        if event.at <= at:
            past.take(event)
    return past


@pytest.fixture(scope="module", params=RECORDINGS, ids=lambda path: path.name.partition(".")[0])
def recording(request: pytest.FixtureRequest) -> Recording:
    return load(request.param)


class Going:
    """A player that somebody goes to and fro in."""

    def __init__(self, recording: Recording) -> None:
        self.clock = Clock(recording, speed=0.0)
        self.player = Player(recording, self.clock)
        self.listener = Listener(self.player)
        self.player.start(self.listener)

    def to(self, at: float) -> None:
        before = self.listener.sights
        self.player.seek(at)
        wait(lambda: self.player.wanted_s is None and self.listener.sights > before)


def wait(true: Callable[[], object]) -> None:
    end = time.monotonic() + 10
    while not true():
        assert time.monotonic() < end
        time.sleep(0.002)


@pytest.mark.parametrize("apart", [7, 256])
def test_what_is_known_at_a_moment_is_the_same_however_one_came_there(
    recording: Recording, apart: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replaypast, "_APART", apart)
    drawn = random.Random(recording.name)
    going = Going(recording)
    length = recording.length_s
    ways = [length, 0.0, length / 2, length / 2 - 1, *(drawn.uniform(0, length) for _ in range(6)), length, length / 3]
    for at in ways:
        going.to(at)
        here = going.clock.position_s
        assert here == max(going.player.first_s, at)
        whole = played_to(recording, here)
        assert all_of(recording, going.player._past, here) == all_of(recording, whole, here)
        assert memory_of(recording, going.listener.remembered, here) == memory_of(recording, whole.remembered, here)
        for kind in whole.state.told - {"facts"}:
            assert going.listener.known[kind] == getattr(whole.state, kind), kind
    going.player.close()


def test_who_plays_on_from_there_sees_what_comes_as_if_he_had_played_all_the_time(recording: Recording) -> None:
    going = Going(recording)
    length = recording.length_s
    for start, end in ((length * 0.8, length), (length * 0.2, length * 0.9), (0.0, length * 0.5)):
        going.to(start)
        going.clock.go_to(end)
        going.player.advance(going.listener)
        whole = played_to(recording, end)
        assert memory_of(recording, going.listener.remembered, end) == memory_of(recording, whole.remembered, end)
        assert all_of(recording, going.player._past, end) == all_of(recording, whole, end)
    going.player.close()


def test_going_elsewhere_before_one_has_arrived_ends_where_one_wanted_last(recording: Recording) -> None:
    going = Going(recording)
    drawn = random.Random(3)
    for _ in range(40):
        going.player.seek(drawn.uniform(0, recording.length_s))
    going.to(recording.length_s / 2)
    here = going.clock.position_s
    assert all_of(recording, going.player._past, here) == all_of(recording, played_to(recording, here), here)
    going.player.close()


def test_copies_are_bounded_however_long_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replaypast, "_APART", 2)
    monkeypatch.setattr(replaypast, "_MOST_COPIES", 8)
    copies, past = Copies(), Past(0.0)
    for number in range(1000):
        past.take(Event(float(number), "host", look(float(number))))
        copies.keep(past)
        assert len(copies._copies) <= 8
    for taken in (0, 1, 100, 517, 1000):
        near = copies.nearest(taken)
        assert near is None or near.taken <= taken
    near = copies.nearest(1000)
    assert near is not None
    assert near.taken >= 1000 - copies._apart


def look(at: float) -> HostView:
    gpu = Gpu(index=0, uuid="GPU-1", name="H200", memory_total_bytes=100, memory_used_bytes=int(at) % 100)
    return HostView(GpuSnapshot(at, (gpu,)), (GpuView(gpu),))


class Ticks:
    """Seconds that go on when they are told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_clock_goes_stands_and_stops_at_the_end() -> None:
    ticks = Ticks()
    clock = AnyClock(100.0, 1000.0, ticks=ticks)
    ticks.now = 10.0
    assert (clock.position_s, clock.now()) == (10.0, 1010.0)
    clock.pause()
    ticks.now = 20.0
    assert clock.position_s == 10.0
    clock.change_speed(1)
    ticks.now = 30.0
    assert clock.position_s == 10.0, "a speed that is chosen does not make it go"
    clock.pause(paused=False)
    ticks.now = 40.0
    assert clock.position_s == 30.0
    clock.hold()
    ticks.now = 50.0
    assert clock.position_s == 30.0
    clock.hold(held=False)
    for _ in range(20):
        clock.change_speed(1)
    assert clock.speed == SPEEDS[-1]
    ticks.now = 51.0
    assert clock.position_s == 46.0
    assert not clock.ended
    ticks.now = 1e6
    assert (clock.position_s, clock.ended) == (100.0, True)
    for _ in range(20):
        clock.change_speed(-1)
    assert clock.speed == SPEEDS[0]
    clock.go_to(-5)
    assert clock.position_s == 0.0
    clock.go_to(1e9)
    assert clock.position_s == 100.0


def test_what_happened_is_what_one_can_go_to() -> None:
    def listed(at: float, *containers: Container) -> Event:
        return Event(at, "containers", tuple(ContainerView(each) for each in containers))

    one = Container(id="1", name="train", image="a", image_id="i", state=ContainerState.RUNNING, started_at=1.0)
    two = replace(one, id="2", name="eval")
    over = replace(one, state=ContainerState.EXITED, exit_code=137, oom_killed=True)
    events = (
        listed(0.0, one), listed(1.0, one), listed(2.0, one, two), listed(3.0, replace(one, oom_killed=True), two),
        listed(4.0, over, replace(two, state=ContainerState.EXITED, exit_code=3)), listed(5.0, over),
        listed(6.0, replace(one, started_at=6.0)), listed(7.0),
    )  # fmt: skip
    assert [(each.at, each.words) for each in moments_of(Recording("a", 0.0, "h", "u", events))] == [
        (2.0, "eval has started"),
        (3.0, "a process of train was killed: its memory limit"),
        (4.0, "train has ended: out of memory; eval has ended (exit 3)"),
        (6.0, "train has started"),
        (7.0, "train has ended and was removed"),
    ]
