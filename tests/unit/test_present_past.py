"""Charts of the past: what stands where, for every size, span and past; and nothing that is not known."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from gpuconsole.engine.model import Container, ContainerState, Usage
from gpuconsole.gpu.forecast_model import Assessment, Subject
from gpuconsole.gpu.model import Gpu, GpuSnapshot, GpuStatus
from gpuconsole.gpu.state import MemoryState
from gpuconsole.host.model import GpuView, Holder, HostView
from gpuconsole.services.containers import ContainerGpu, ContainerView
from gpuconsole.services.pastevents import EventKind, PastEvent
from gpuconsole.services.pasts import Pasts
from gpuconsole.tui.present import chart, chartaxis, gpupast, pastevents
from gpuconsole.tui.present.chart import Line, Times
from gpuconsole.tui.present.gpupast import SPANS_S, Look
from gpuconsole.tui.theme import ASCII, UNICODE

NOW = 1_800_000_000.0
GIB = 2**30


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def text(lines: list[Line]) -> list[str]:
    return ["".join(cell.text for cell in line) for line in lines]


def seen(gib: float = 50.0, *, eta_s: float | None = None, holders: tuple[Holder, ...] = (), **changes: Any) -> GpuView:
    given: dict[str, Any] = {"memory_total_bytes": 100 * GIB, "utilization_pct": 80, "throttle_reasons": ()}
    gpu = Gpu(0, "GPU-1", "H200", **({"memory_used_bytes": int(gib * GIB)} | given | changes))
    told = None
    if eta_s is not None:
        told = Assessment(Subject.GPU, "0", 0, None, MemoryState.RISK, eta_s, "it grows", 1e6)
    return GpuView(gpu, holders, outlook=told)


def past_of(*views: tuple[float, GpuView]) -> Pasts:
    pasts = Pasts()
    for at, view in views:
        pasts.host_looked(HostView(GpuSnapshot(at), (view,)))
    return pasts


def steady(seconds: int, view: GpuView | None = None) -> Pasts:
    return past_of(*((NOW - back, view or seen()) for back in range(seconds, -1, -1)))


@given(st.lists(st.one_of(st.none(), st.floats(0, 200)), min_size=1, max_size=50), st.integers(1, 9))
def test_an_area_is_as_large_as_asked(values: list[float | None], height: int) -> None:
    for glyphs in (UNICODE, ASCII):
        rows = chart.area(values, height, glyphs, top=100)
        assert len(rows) == height
        assert {len(row) for row in rows} == {len(values)}
        for place, value in enumerate(values):
            assert (rows[-1][place] == " ") is (value is None)


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from(SPANS_S), st.integers(20, 210), st.integers(10, 60), st.one_of(st.none(), st.floats(0, 1e6)),
    st.sampled_from([UNICODE, ASCII]), st.sampled_from(["", "train", "数据集" * 30, "x" * 300]), st.booleans(),
)  # fmt: skip
def test_charts_fit_their_width_whatever_they_show(
    span_s: float, width: int, height: int, eta_s: float | None, glyphs: Any, name: str, known: bool
) -> None:
    view = seen(eta_s=eta_s) if known else seen(memory_used_bytes=None, utilization_pct=None)
    pasts = steady(130, view)
    one = Container("1", name, "i", "sha256:1", ContainerState.RUNNING, started_at=NOW - 20)
    pasts.containers_listed([ContainerView(one, (ContainerGpu(0, "GPU-1"),))], at=NOW)
    lines = gpupast.charts(view, pasts, Look(NOW, span_s, width, height, glyphs, key="z"))
    assert all(sum(cell_len(cell.text) for cell in line) <= max(width, 33) for line in lines)
    assert len(lines) < height or height < 20


def test_what_is_not_known_has_a_reason_and_no_picture() -> None:
    view = seen(memory_used_bytes=None, unknown={"memory_used_bytes": "the driver does not tell it"})
    shown = text(gpupast.charts(view, steady(60, view), Look(NOW, 60, 110, 24, UNICODE)))
    assert "– the driver does not tell it" in shown[0]
    assert not any("█" in line[56:] for line in shown)
    lost = seen(status=GpuStatus.LOST, problem="The GPU is lost.", memory_used_bytes=None, utilization_pct=None)
    pasts = past_of((NOW - 30, seen()), *((NOW - back, lost) for back in range(17, 0, -1)))
    shown = text(gpupast.charts(lost, pasts, Look(NOW, 60, 100, 24, UNICODE)))
    assert "The GPU is lost, still" in shown[-1]


def test_the_highest_is_marked_with_its_time_also_when_it_is_long_over() -> None:
    views = [(NOW - back, seen(75 if back == 300 else 20)) for back in range(600, -1, -1)]
    lines = gpupast.charts(seen(20), past_of(*views), Look(NOW, 1800, 120, 24, UNICODE))
    assert "most 75.0 at 07:55:00" in text(lines)[0]
    assert any(" 75.0 " in line for line in text(lines))
    short = gpupast.charts(seen(20), past_of(*views), Look(NOW, 60, 120, 24, UNICODE))
    assert "most 20.0" in text(short)[0], "of this time"


def test_a_forecast_is_drawn_only_with_one_and_ends_where_it_is_full() -> None:
    look = Look(NOW, 60, 140, 24, UNICODE)
    without = text(gpupast.charts(seen(), steady(60), look))
    assert not any("│" in line for line in without)
    times = Times(NOW, 60, 30, 10)
    ahead = gpupast._ahead(seen(eta_s=10), times)
    assert ahead is not None
    known = [value for value in ahead.values if value is not None]
    assert known == sorted(known)
    assert known[0] == pytest.approx(50 + 50 * times.each_s / 10)
    assert known[-1] == 100
    assert len(known) == 5, "two seconds a column, full in ten"
    lines = gpupast.charts(seen(eta_s=10), steady(60), look)
    assert "full in about 10 s" in text(lines)[0]
    drawn = [cell for line in lines for cell in line if cell.tone == "risk" and set(cell.text) & set("⣀⠤⠒⠉")]
    assert drawn, "in a tone of its own"
    unclear = seen(eta_s=10, memory_total_bytes=None)
    assert gpupast._ahead(unclear, times) is None


@given(st.sampled_from(SPANS_S), st.integers(8, 200), st.integers(0, 60), st.floats(NOW, NOW + 1e6))
def test_the_times_below_stand_where_they_are(span_s: float, past: int, ahead: int, now: float) -> None:
    times = Times(now, span_s, past, ahead)
    shown = "".join(cell.text for cell in chartaxis.axis(times))[chart.LEFT :]
    assert len(shown) == times.width
    assert shown.rstrip()
    assert shown[max(0, past - 3) : past] == "now"
    for place, sign in enumerate(shown):
        if sign != "└":
            continue
        written = shown[place + 1 :].split(" ")[0].split("└")[0]
        column = place if place < past else place - 1
        begins = times.begins + column * times.each_s
        hours, minutes, seconds = [*map(int, written.split(":")), 0][:3]
        assert (hours * 3600 + minutes * 60 + seconds - begins + 0.001) % 86_400 < times.each_s + 0.002


def test_what_lasts_is_a_line_and_what_happened_a_sign_of_its_own() -> None:
    times = Times(NOW, 10, 10)
    line = chartaxis.marks([("1", NOW - 8.5, NOW - 4.5), ("2", NOW - 2.5, None), ("3", NOW - 2.4, None)], times)
    assert line[1].text == "1──── 23  "
    crowded = chartaxis.marks([(str(number), NOW, None) for number in range(1, 4)], times)
    assert crowded[1].text == "       321", "at the edge they stand before it"
    before = chartaxis.marks([("1", NOW - 500, NOW)], times)
    assert before[1].text == "1─────────"


@pytest.mark.parametrize("width", [50, 100])
def test_what_happens_moves_no_chart_and_no_axis(width: int) -> None:
    calm, slowed = seen(), seen(throttle_reasons=("sw-power-cap",))
    places = []
    for late in (calm, slowed):
        pasts = past_of(*((NOW - back, late if back < 9 else calm) for back in range(30, -1, -1)))
        lines = text(gpupast.charts(late, pasts, Look(NOW, 60.0, width, 24, UNICODE)))
        assert any("slowed by" in line for line in lines) is (late is slowed)
        places.append([at for at, line in enumerate(lines) if "USE" in line or "GiB ·" in line or " now" in line])
    assert places[0] == places[1]


def event(kind: EventKind, ago: float, about: str = "train", **given: Any) -> PastEvent:
    return PastEvent(NOW - ago, kind, about, **given)


@pytest.mark.parametrize(
    ("happened", "said", "tone"),
    [
        (event(EventKind.STARTED, 5), "train started", ""),
        (event(EventKind.ENDED, 5, words="OOM"), "train ended (OOM)", "risk"),
        (event(EventKind.ENDED, 5, words="ended"), "train ended", ""),
        (event(EventKind.ENDED, 5, words="removed"), "train was removed", ""),
        (event(EventKind.CHECKED, 5, words="failed"), "check of train: failed", "risk"),
        (event(EventKind.MEASURED, 5, words="ok"), "benchmark of train: ok", ""),
        (event(EventKind.PEAK, 5, "", value=1.5 * GIB), "peak 1.5 GiB", ""),
        (event(EventKind.SLOWED, 65, "sw-power-cap, new", until=NOW - 5), "slowed by power cap, new for 60 s", ""),
        (event(EventKind.SLOWED, 65, "hw-thermal"), "slowed by hot (hardware slows it), still", "risk"),
        (event(EventKind.LOST, 65, "The GPU is lost.", until=NOW - 5), "The GPU is lost for 60 s", "critical"),
    ],
)
def test_every_event_has_words(happened: PastEvent, said: str, tone: str) -> None:
    found = pastevents.words(happened)
    assert (found.text, found.tone) == (said, tone)


def test_of_many_events_the_important_and_the_newest_are_told() -> None:
    slowed = [event(EventKind.SLOWED, 1000 - each, "sw-power-cap", until=NOW) for each in range(20)]
    lost = event(EventKind.LOST, 2000, "The GPU is lost.")
    started = [event(EventKind.STARTED, 900 - each, f"job-{each:02}") for each in range(20)]
    events = sorted([*slowed, lost, *started], key=lambda each: each.at)
    told = pastevents.told(events, 78, rows=2, seconds=False)
    assert len(told.legend) <= 2
    assert told.numbered[0] is lost
    assert [each.about for each in told.numbered[1:]] == sorted(each.about for each in told.numbered[1:])
    assert told.numbered[-1].about == "job-19"
    signs = [sign for sign, _, _ in told.spans(NOW, UNICODE)]
    assert signs.count(UNICODE.idle) == len(events) - len(told.numbered)


def test_a_span_is_chosen_that_fits() -> None:
    assert gpupast.fitting_span(0, None) == 60
    assert gpupast.fitting_span(61, None) == 300
    assert gpupast.fitting_span(80_000, None) == 1800
    assert gpupast.fitting_span(61, 4000) == 7200
    assert gpupast.fitting_span(61, 1e9) == 86_400


def test_a_process_and_a_container_show_their_half_hour_where_there_is_room() -> None:
    one = Holder(pid=7, gpu_index=0, gpu_uuid="GPU-1", memory_bytes=GIB, started_at=NOW - 5000)
    container = Container("1", "train", "i", "sha256:1", ContainerState.RUNNING, started_at=NOW - 5000)
    view = ContainerView(container, (ContainerGpu(0, "GPU-1"),), 3 * GIB, Usage(150.0, 8 * GIB))
    pasts = Pasts()
    for back in range(3000, -1, -2):
        grown = replace(one, memory_bytes=GIB * (60 if back == 2400 else 1 + (3000 - back) // 100))
        pasts.host_looked(HostView(GpuSnapshot(NOW - back), (seen(holders=(grown,)),)))
        pasts.containers_listed([view], at=NOW - back)
    look = Look(NOW, 0, 100, 0, UNICODE)
    (line,) = gpupast.process_field(one, pasts, look).lines
    words = "".join(cell.text for cell in line)
    assert "13.0 … 31.0 GiB" in words
    assert "most ever 60.0, 40 min ago" in words
    lines = text(list(gpupast.container_field(view, pasts, look).lines))
    assert [each.split()[0] for each in lines] == ["GPU", "RAM", "CPU"]
    assert lines[0].endswith("3.0 GiB")
    assert lines[2].endswith("150 %")
    assert gpupast.process_field(one, pasts, replace(look, width=50)).lines == ()
    assert gpupast.process_field(replace(one, pid=8), pasts, look).lines == ()
