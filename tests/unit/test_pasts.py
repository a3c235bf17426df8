"""The remembered past: full for half an hour, thinned for a day, no peak lost, gaps kept, never more than so much."""

from __future__ import annotations

import itertools
import random
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuconsole.engine.model import Container, ContainerState, Usage
from gpuconsole.gpu.model import Gpu, GpuSnapshot, GpuStatus
from gpuconsole.host.model import GpuView, Holder, HostView
from gpuconsole.services import track as tracks
from gpuconsole.services.containers import ContainerGpu, ContainerView
from gpuconsole.services.pastevents import EventKind, PastEvent
from gpuconsole.services.pasts import CPU, GPU_MEMORY, MEMORY, PROCESS, RAM, USE, Pasts
from gpuconsole.services.ringing import process_key
from gpuconsole.services.runs import Run, RunKind, RunState
from gpuconsole.services.series import Point, Tier
from gpuconsole.services.track import Column, Track

GIB = 2**30
BEGAN = 1_800_000_000.0
HOUR, DAY = 3600.0, 86_400.0
UUID = "GPU-00000001-0000-4000-8000-000000000001"


def holder(pid: int, memory: int | None, *, started_at: float = BEGAN) -> Holder:
    return Holder(pid=pid, gpu_index=0, gpu_uuid=UUID, memory_bytes=memory, started_at=started_at)


def host(at: float, used: int | None = 0, use: int | None = 0, *holders: Holder, **changes: Any) -> HostView:
    given: dict[str, Any] = {"memory_total_bytes": 140 * GIB, "throttle_reasons": ()}
    gpu = Gpu(0, UUID, "H200", memory_used_bytes=used, utilization_pct=use, **(given | changes))
    return HostView(GpuSnapshot(at, (gpu,)), (GpuView(gpu, holders),))


def container(name: str = "train", *, running: bool = True, **changes: Any) -> ContainerView:
    state = ContainerState.RUNNING if running else ContainerState.EXITED
    one = Container(name, name, "image", "sha256:1", state, **({"started_at": BEGAN} | changes))
    usage = Usage(250.0, 8 * GIB) if running else None
    return ContainerView(one, (ContainerGpu(0, UUID),), 3 * GIB if running else None, usage)


def kinds(events: Iterable[PastEvent]) -> list[EventKind]:
    return [event.kind for event in events]


def highest(points: Iterable[Point]) -> float:
    return max(point.high for point in points)


def test_half_an_hour_is_kept_as_it_was_and_a_day_without_losing_a_peak() -> None:
    pasts = Pasts()
    peak_at = BEGAN + 3 * HOUR + 17
    end = BEGAN + 23 * HOUR
    at = BEGAN
    while at <= end:
        pasts.host_looked(host(at, 100 * GIB if at == peak_at else int(at % 50) * GIB, 50))
        at += 1.0
    recent = pasts.points(MEMORY, UUID, end - 1799, end + 1)
    assert [point.last for point in recent] == [int(point.since % 50) * GIB for point in recent]
    assert len(recent) >= 1799
    whole = pasts.points(MEMORY, UUID, end - DAY, end + 1)
    assert min(point.since for point in whole) <= BEGAN
    assert highest(whole) == 100 * GIB
    (at_peak,) = (point for point in whole if point.high == 100 * GIB)
    assert at_peak.since <= peak_at < at_peak.until
    assert at_peak.low == 0, "the lowest of the same time is kept beside it"
    found = pasts.peak(MEMORY, UUID)
    assert found is not None
    assert (found.value, found.at) == (100 * GIB, peak_at)
    use = pasts.points(USE, UUID, end - DAY, end + 1)
    assert {point.mean for point in use} == {50.0}


@pytest.mark.parametrize("pace_s", [0.5, 1.0, 10.0])
def test_what_is_told_has_no_holes_where_none_were(pace_s: float) -> None:
    track = Track((Tier(15, 480), Tier(120, 720)), most=1, gone_s=DAY)
    looks = int(6 * HOUR / pace_s)
    for number in range(looks):
        track.look(BEGAN + number * pace_s, {"a": 1.0})
    points = track.points("a", BEGAN, BEGAN + looks * pace_s)
    assert points == sorted(points), "oldest first"
    for before, after in itertools.pairwise(points):
        assert after.since <= before.until
    assert points[0].since <= BEGAN
    assert points[-1].until >= BEGAN + (looks - 1) * pace_s


def test_parts_of_a_time_stand_for_moments_not_for_looks() -> None:
    track = Track((Tier(15, 480),), most=1, gone_s=DAY)
    for at, value in ((1.5, 10.0), (1.7, 30.0), (9.5, 7.0)):
        track.look(BEGAN + at, {"a": value})
    found = track.columns("a", BEGAN, 1.0, 12)
    known = {number: column for number, column in enumerate(found) if column is not None}
    assert known[1] == Column(10, 30, 20)
    assert all(known[number] == Column(30, 30, 30) for number in range(2, 9)), "it stands until the next look"
    assert known[9] == known[11] == Column(7, 7, 7)
    assert 0 not in known
    assert track.columns("a", BEGAN + 1, 1.0, 11) == found[1:], "the picture moves by whole parts"
    assert track.columns("a", BEGAN + 40, 1.0, 5) == [None] * 5, "but not for ever"
    assert track.columns("b", BEGAN, 1.0, 5) == [None] * 5


@pytest.mark.parametrize("each_s", [3.0, 60.0, 500.0])
def test_parts_of_a_time_hold_every_peak_and_every_gap(each_s: float) -> None:
    chance = random.Random(7)
    track = Track((Tier(15, 480), Tier(120, 720)), most=1, gone_s=DAY)
    fed: list[tuple[float, float]] = []
    for second in range(20_000):
        if 4000 < second < 6000:
            continue
        fed.append((BEGAN + second, float(chance.randrange(1000))))
        track.look(BEGAN + second, {"a": fed[-1][1]})
    end, count = BEGAN + 20_000, int(20_000 / each_s)
    found = track.columns("a", end - count * each_s, each_s, count)
    moments, values = [at for at, _ in fed], [value for _, value in fed]
    tops = set()
    for number, column in enumerate(found):
        since = end - count * each_s + number * each_s
        mine = values[bisect_left(moments, since) : bisect_left(moments, since + each_s)]
        near = values[bisect_left(moments, since - 121) : bisect_left(moments, since + each_s + 121)]
        assert column is None or (min(near) <= column.low <= column.mean <= column.high <= max(near))
        assert column is not None or not mine
        assert column is None or near
        tops.add(column.high if column is not None else 0.0)
    assert max(tops) == max(values)
    assert None in found
    top = track.highest("a", BEGAN, end)
    assert top is not None
    assert top.value == max(value for _, value in fed)
    recent = track.highest("a", end - 600, end)
    assert recent is not None
    assert (recent.at, recent.value) == max(fed[-600:], key=lambda each: (each[1], -each[0]))


def test_gaps_stay_gaps() -> None:
    pasts = Pasts()
    for second in range(600):
        pasts.host_looked(host(BEGAN + second, GIB, 10))
    lost = [host(BEGAN + second, None, None, status=GpuStatus.LOST, problem="lost") for second in range(600, 900)]
    for view in lost:
        pasts.host_looked(view)
    suspended = 2 * HOUR
    for second in range(900, 960):
        pasts.host_looked(host(BEGAN + suspended + second, GIB, 10))
    end = BEGAN + suspended + 960
    for span in (3 * HOUR, DAY):
        points = pasts.points(MEMORY, UUID, end - span, end)
        unknown = [BEGAN + 600 + 120, BEGAN + 800, BEGAN + HOUR, BEGAN + suspended + 700]
        assert not [point for point in points for at in unknown if point.since <= at < point.until]
    # The clock goes on where looks fail, and nothing is made up meanwhile.
    before = pasts.stored
    failed = replace(lost[0].snapshot, taken_at=end + 5, problem="The driver does not answer.")
    pasts.host_looked(replace(lost[0], snapshot=failed))
    assert pasts.stored == before


def test_a_clock_that_is_put_back_leaves_the_past_before_the_present() -> None:
    pasts = Pasts()
    for second in range(300):
        pasts.host_looked(host(BEGAN + second, second * GIB // 10))
        pasts.containers_listed([container()], at=BEGAN + second + 0.1)
    now = BEGAN - 5000
    for second in range(60):
        pasts.host_looked(host(now + second, 100 * GIB))
        pasts.containers_listed([container()], at=now + second + 0.1)
    points = pasts.points(MEMORY, UUID, now - 400, now + 61)
    assert len(points) >= 350, "what was before the clock was set is told by the new clock"
    assert points[0].since == pytest.approx(now - 300, abs=3)
    assert points == sorted(points)
    assert len(pasts.points(GPU_MEMORY, "train", now - 400, now + 61)) >= 350
    peak = pasts.peak(MEMORY, UUID)
    assert peak is not None
    assert now - 1 <= peak.at <= now + 60


def test_late_news_of_one_source_are_not_taken_for_a_clock_that_was_set() -> None:
    pasts = Pasts()
    for second in range(0, 300, 10):
        pasts.containers_listed([container()], at=BEGAN + second + 9)
        pasts.host_looked(host(BEGAN + second, GIB))
    points = pasts.points(MEMORY, UUID, BEGAN, BEGAN + 300)
    assert [point.since for point in points] == [BEGAN + second for second in range(0, 300, 10)]


steps = st.one_of(st.floats(0.01, 30), st.floats(-5, 5), st.sampled_from([3600.0, 90_000.0, -3600.0, -1e6, 1e7, 0.0]))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(steps, st.integers(0, 400)), max_size=40), st.randoms(use_true_random=False))
def test_whatever_is_fed_is_bounded_and_told_in_order(fed: list[tuple[float, int]], chance: random.Random) -> None:
    track = Track((Tier(5, 8), Tier(60, 6)), most=4, gone_s=100)
    clock = BEGAN
    for step, many in fed:
        clock += step
        for _ in range(many % 40):
            clock += chance.random() * 2
            track.look(clock, {f"{chance.randrange(9)}": chance.choice([None, 1.0, 1e30, float("nan")])})
        assert track.stored <= track.stored_at_most
        assert len(track) <= 4
        for key in map(str, range(9)):
            for point in track.points(key, clock - 1000, clock + 1):
                assert point.low <= point.mean * 1.001
                assert point.mean <= point.high * 1.001
                assert point.since < point.until


@pytest.mark.parametrize("pace_s", [0.02, 1.0])
def test_the_room_of_many_short_processes_is_bounded(monkeypatch: pytest.MonkeyPatch, pace_s: float) -> None:
    monkeypatch.setattr(tracks, "MOST_FULL", 300)
    pasts = Pasts()
    for number in range(2000):
        at = BEGAN + number * pace_s
        holders = [holder(pid, GIB) for pid in range(3 * number, 3 * number + 12)]
        pasts.host_looked(host(at, number % 140 * GIB, number % 100, *holders))
        assert pasts.stored <= pasts.stored_at_most


def test_once_it_is_full_it_grows_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracks, "MOST_FULL", 300)
    track = Track((Tier(5, 40), Tier(60, 30)), most=4, gone_s=100)
    stored = []
    for number in range(20_000):
        track.look(BEGAN + number, {f"{number // 30}": 1.0, "always": 2.0})
        stored.append(track.stored)
    assert max(stored) <= track.stored_at_most
    assert max(stored[10_000:]) <= max(stored[:10_000])


def test_more_processes_than_are_remembered_do_not_push_each_other_out() -> None:
    pasts = Pasts()
    holders = [holder(pid, GIB) for pid in range(600)]
    for second in range(5):
        pasts.host_looked(host(BEGAN + second, GIB, 0, *holders))
    known = [one for one in holders if pasts.points(PROCESS, process_key(one), BEGAN, BEGAN + 10)]
    assert len(known) == 512
    assert all(len(pasts.points(PROCESS, process_key(one), BEGAN, BEGAN + 10)) == 5 for one in known)
    # Those that are gone make room for those that come.
    pasts.host_looked(host(BEGAN + 5, GIB, 0, holder(9999, 2 * GIB)))
    pasts.host_looked(host(BEGAN + 6, GIB, 0, holder(9999, 2 * GIB)))
    assert highest(pasts.points(PROCESS, process_key(holder(9999, 0)), BEGAN, BEGAN + 10)) == 2 * GIB


def test_a_process_is_not_its_pid() -> None:
    pasts = Pasts()
    pasts.host_looked(host(BEGAN, GIB, 0, holder(7, 9 * GIB)))
    later = holder(7, GIB, started_at=BEGAN + 50)
    pasts.host_looked(host(BEGAN + 60, GIB, 0, later))
    assert highest(pasts.points(PROCESS, process_key(later), BEGAN, BEGAN + 61)) == GIB


def test_containers_have_a_past_of_their_own_which_goes_with_them() -> None:
    pasts = Pasts()
    for second in range(100):
        pasts.containers_listed([container()], at=BEGAN + second)
    for measure, value in ((GPU_MEMORY, 3 * GIB), (RAM, 8 * GIB), (CPU, 250.0)):
        assert len(pasts.points(measure, "train", BEGAN, BEGAN + 100)) == 100
        peak = pasts.peak(measure, "train")
        assert peak is not None
        assert peak.value == value
    for second in range(100, 6000, 10):
        pasts.containers_listed([container("other")], at=BEGAN + second)
    assert pasts.points(GPU_MEMORY, "train", BEGAN, BEGAN + 6000) == []


# --- events ---


def test_clocks_held_down_are_one_event_however_they_flicker() -> None:
    pasts = Pasts()
    for second in range(600):
        reasons = ("sw-power-cap",) if second < 300 and second % 3 else ()
        pasts.host_looked(host(BEGAN + second, GIB, 90, throttle_reasons=reasons))
    (event,) = (one for one in pasts.events(UUID, BEGAN) if one.kind is EventKind.SLOWED)
    assert event.about == "sw-power-cap"
    assert event.at == BEGAN + 1
    assert event.until is not None
    assert BEGAN + 299 <= event.until <= BEGAN + 301
    assert pasts.events(UUID, BEGAN + 200) == [event], "it lasted into that time"
    assert pasts.events(UUID, BEGAN + 400) == []


def test_what_nobody_looked_at_did_not_go_on_meanwhile() -> None:
    pasts = Pasts()
    for begins in (BEGAN, BEGAN + HOUR):
        for second in range(10):
            pasts.host_looked(host(begins + second, GIB, 90, throttle_reasons=("hw-thermal",)))
    before, after = pasts.events(UUID, BEGAN)
    assert (before.until, after.at, after.until) == (BEGAN + 9, BEGAN + HOUR, None)


def test_a_gpu_lost_and_back_is_one_event_and_so_is_one_that_is_not_there() -> None:
    pasts = Pasts()
    pasts.host_looked(host(BEGAN, GIB))
    for second in range(1, 200):
        pasts.host_looked(host(BEGAN + second, None, None, status=GpuStatus.LOST, problem="The GPU is lost."))
    for second in range(200, 300):
        pasts.host_looked(host(BEGAN + second, GIB))
    for second in range(300, 400):
        pasts.host_looked(HostView(GpuSnapshot(BEGAN + second), ()))
    for second in range(400, 500):
        pasts.host_looked(host(BEGAN + second, GIB))
    lost = [event for event in pasts.events(UUID, BEGAN) if event.kind is EventKind.LOST]
    assert [(event.at - BEGAN, (event.until or 0) - BEGAN) for event in lost] == [(1, 200), (300, 400)]
    assert lost[0].about == "The GPU is lost."


def test_a_peak_is_told_once_it_stood_and_each_job_has_its_own() -> None:
    pasts = Pasts()
    clock = BEGAN

    def use(gib: int, seconds: int) -> None:
        nonlocal clock
        for _ in range(seconds):
            held = (holder(7, gib * GIB),) if gib else ()
            pasts.host_looked(host(clock, gib * GIB, 50, *held))
            clock += 1

    use(0, 10)
    for gib in range(1, 101):
        use(gib, 2)
    use(60, 200)
    peaks = [event.value for event in pasts.events(UUID, BEGAN) if event.kind is EventKind.PEAK]
    assert peaks == [100 * GIB], "while it rises, it is none"
    use(0, 10)
    use(80, 100)
    peaks = [event.value for event in pasts.events(UUID, BEGAN) if event.kind is EventKind.PEAK]
    assert peaks == [100 * GIB, 80 * GIB]


def test_beginnings_and_ends_of_containers_are_told_also_of_the_time_before() -> None:
    pasts = Pasts()
    now = BEGAN + HOUR
    ended = container("prep", running=False, finished_at=now - 600, exit_code=137, oom_killed=True)
    old = container("old", running=False, started_at=now - 3 * DAY, finished_at=now - 2 * DAY, exit_code=0)
    pasts.containers_listed([container(), ended, old], at=now)
    told = [(event.kind, event.about, event.words, event.at) for event in pasts.events(UUID, 0)]
    assert told == [
        (EventKind.STARTED, "train", "", BEGAN),
        (EventKind.STARTED, "prep", "", BEGAN),
        (EventKind.ENDED, "prep", "OOM", now - 600),
    ]
    pasts.containers_listed([container(), ended, old], at=now + 1)
    assert len(pasts.events(UUID, 0)) == 3, "nothing is new"
    pasts.containers_listed([container(started_at=now + 5), ended], at=now + 10)
    pasts.containers_listed([ended], at=now + 20)
    assert kinds(pasts.events(UUID, now)) == [EventKind.STARTED, EventKind.ENDED]
    assert pasts.events("GPU-other", 0) == []


def test_a_beginning_is_told_once_the_gpus_are_known_and_an_end_of_what_was_on_one() -> None:
    pasts = Pasts()
    pasts.containers_listed([replace(container(), gpus=None)], at=BEGAN + 10)
    pasts.containers_listed([replace(container(), gpus=())], at=BEGAN + 20)
    assert pasts.events(UUID, 0) == []
    pasts.containers_listed([container()], at=BEGAN + 30)
    assert [(event.kind, event.at) for event in pasts.events(UUID, 0)] == [(EventKind.STARTED, BEGAN)]
    over = container(running=False, finished_at=BEGAN + 40, exit_code=1)
    pasts.containers_listed([replace(over, gpus=())], at=BEGAN + 50)
    assert [(event.kind, event.words) for event in pasts.events(UUID, BEGAN + 1)] == [(EventKind.ENDED, "exit 1")]
    again = container(started_at=BEGAN + 60)
    pasts.containers_listed([replace(again, gpus=())], at=BEGAN + 61)
    assert kinds(pasts.events(UUID, 0)) == [EventKind.STARTED, EventKind.ENDED, EventKind.STARTED]


def test_checks_and_benchmarks_are_told_on_the_gpus_they_ran_on() -> None:
    pasts = Pasts()
    other = UUID[:-1] + "2"
    check = Run("1", RunKind.CHECK, "train", "train", BEGAN, RunState.WARN, BEGAN + 5)
    bench = Run("2", RunKind.BENCH, "local", "", BEGAN, RunState.OK, BEGAN + 60, document=f'{{"uuid": "{other}"}}')
    going = Run("3", RunKind.CHECK, "train", "train", BEGAN)
    pull = Run("4", RunKind.PULL, "image", "", BEGAN, RunState.OK, BEGAN + 5)
    pasts.runs_changed((check, bench, going, pull), at=BEGAN + 70)
    assert kinds(pasts.events(other, 0)) == [EventKind.MEASURED]
    assert pasts.events(UUID, 0) == [], "what container it was of is not known yet"
    pasts.containers_listed([container()], at=BEGAN + 80)
    assert kinds(pasts.events(UUID, 0)) == [EventKind.STARTED, EventKind.CHECKED]
    pasts.runs_changed((check, bench), at=BEGAN + 90)
    assert len(pasts.events(UUID, 0)) == 2
    assert len(pasts.events(other, 0)) == 1


def test_events_are_bounded() -> None:
    pasts = Pasts()
    for number in range(500):
        pasts.containers_listed([container(started_at=BEGAN + number)], at=BEGAN + number)
    assert len(pasts.events(UUID, 0)) == 100
