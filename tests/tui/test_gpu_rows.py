"""The charts of a GPU keep their place, whatever comes and goes above and around them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest
from textual.pilot import Pilot

from gpuconsole.gpu.forecast_model import Assessment, Subject
from gpuconsole.gpu.model import GpuStatus
from gpuconsole.gpu.state import MemoryState
from gpuconsole.host.model import GpuView, HostView
from gpuconsole.host.state import memory_state
from gpuconsole.services.replay import Clock
from gpuconsole.services.replaydesk import ReplayDesk
from gpuconsole.services.replayfile import load
from gpuconsole.tui.app import ConsoleApp
from gpuconsole.tui.present import gpunow
from gpuconsole.tui.screens.gpu import GpuScreen
from gpuconsole.tui.screens.subjects import GpuSubject
from gpuconsole.tui.theme import UNICODE
from gpuconsole.tui.widgets.lines import Lines
from gpuconsole.tui.widgets.strip import GpuStrip
from tests.forecast.truth import FOLDER
from tests.tui.console import shown, until
from tests.tui.looking import feed, host, still
from tests.tui.test_outlook import has_come, step_by_step

__all__ = ["still"]
SIZES = [(40, 12), (60, 20), (80, 24), (120, 36), (200, 50)]
GROWS = "process 4211 grew 6.8 GiB in 23 s, 500 MiB a step, ever faster; at this pace full in about 15 s (4.1 GiB left)"
ADVICE = ": save a checkpoint, then lower the batch or length, or stop it"


def charts_at(app: ConsoleApp) -> tuple[int, list[int]]:
    """The row of the screen on which the charts begin, and the rows of their titles below it."""
    charts = app.screen.query_one("#charts", Lines)
    texts = ["".join(cell.text for cell in line) for line in charts.lines]
    return charts.region.y, [place for place, text in enumerate(texts) if "USE %" in text or "GiB ·" in text]


def outlook(state: MemoryState, why: str, eta_s: float | None = None) -> Assessment:
    return Assessment(Subject.GPU, "0", 0, None, state, eta_s, why, 5e8 if eta_s else None)


def said_of(first: GpuView) -> dict[str, GpuView]:
    """All that can come and go above the charts."""
    quiet = replace(first, gpu=replace(first.gpu, throttle_reasons=()), outlook=None)
    everything = ("sw-power-cap", "hw-slowdown", "sw-thermal", "hw-thermal", "hw-power-brake", "sync-boost")
    return {
        "nothing yet": quiet,
        "calm": replace(quiet, outlook=outlook(MemoryState.STEADY, "131 GiB of 140 GiB, no growth to speak of")),
        "loads": replace(quiet, outlook=outlook(MemoryState.LOADING, "loading: 131 GiB of 140 GiB so far")),
        "watch": replace(first, outlook=outlook(MemoryState.WATCH, GROWS, 600.0)),
        "risk": replace(first, outlook=outlook(MemoryState.RISK, GROWS + ADVICE, 15.0)),
        "critical": replace(first, outlook=outlook(MemoryState.CRITICAL, GROWS + ADVICE, 5.0)),
        "slowed by all": replace(quiet, gpu=replace(first.gpu, throttle_reasons=everything)),
        "given to many": replace(quiet, given_to=tuple(f"someone-s-training-{each}" for each in range(12))),
        "unknown memory": replace(quiet, gpu=replace(first.gpu, memory_used_bytes=None, memory_free_bytes=None,
                                  unknown={"memory_used_bytes": "the driver does not tell it of this GPU " * 4})),
        "lost": replace(quiet, gpu=replace(first.gpu, status=GpuStatus.LOST, problem="The GPU is lost; restart it.")),
        "nobody's": replace(quiet, holders=()),
    }  # fmt: skip


async def seen_as(pilot: Pilot[None], before: HostView, *gpus: GpuView) -> None:
    app = pilot.app
    assert isinstance(app, ConsoleApp)
    app.host_view = replace(before, gpus=gpus)
    await pilot.pause()
    await pilot.pause()


@pytest.mark.parametrize("size", SIZES)
async def test_the_charts_keep_their_rows_whatever_is_said_above_them(
    still: Callable[..., ConsoleApp], size: tuple[int, int]
) -> None:
    app = still()
    async with app.run_test(size=size) as pilot:
        await feed(pilot)
        seen_first = app.host_view
        assert seen_first is not None
        first, *others = seen_first.gpus
        await app.push_screen(GpuScreen(GpuSubject(app, first)))
        await pilot.pause()
        seen = {}
        for name, view in said_of(first).items():
            await seen_as(pilot, seen_first, view, *others)
            seen[name] = charts_at(app)
        await seen_as(pilot, seen_first, *others)
        assert "not there any more" in " ".join(shown(app).split()) or size[0] < 60
        seen["gone"] = charts_at(app)
        assert len({str(place) for place in seen.values()}) == 1, seen


@pytest.mark.parametrize(("name", "size"), [("leak-100", (80, 24)), ("two-tenants-leak", (120, 36))])
async def test_the_charts_of_a_recorded_leak_keep_their_rows(name: str, size: tuple[int, int]) -> None:
    recording = load(FOLDER / f"{name}.jsonl.gz")
    app = ConsoleApp(ReplayDesk(recording, clock=Clock(recording, speed=0.0)))
    places: dict[tuple[int, ...], str] = {}
    states: set[MemoryState] = set()
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: app.is_running and app.screen.query(GpuStrip))
        for at in step_by_step(app, until_s=min(100.0, recording.length_s), step_s=4.0):
            await until(pilot, partial(has_come, app, at), what=f"{at} s")
            assert app.host_view is not None
            if not isinstance(app.screen, GpuScreen):
                await app.push_screen(GpuScreen(GpuSubject(app, app.host_view.gpus[0])))
            await pilot.pause()
            states.add(memory_state(app.host_view.gpus[0]))
            first, titles = charts_at(app)
            places.setdefault((first, *titles), f"{at} s\n{shown(app)}")
    assert {MemoryState.LOADING, MemoryState.WATCH, MemoryState.RISK} <= states, "the forecast came and went"
    assert len(places) == 1, "\n".join(places.values())


@pytest.mark.parametrize("width", [30, 39, 65, 79, 119, 199])
def test_what_is_cut_above_the_charts_stands_in_full_below(width: int) -> None:
    for name, view in said_of(host().gpus[0]).items():
        rows = ["".join(cell.text for cell in row) for row in gpunow.now_rows(view, width=width, glyphs=UNICODE)]
        whole = gpunow.whole_fields(view, width=width, glyphs=UNICODE)
        assert len(rows) == gpunow.ROWS or name == "lost"
        assert all(len(row) <= width for row in rows), rows
        below = " ".join("".join(cell.text for cell in line) for each in whole for line in each.lines)
        for row in rows:
            if row.endswith("…") and not row.lstrip().startswith("memory"):  # of which the account stands below
                title, begun = row[1:12].strip(), row[13:-1].strip()
                assert title in [each.title for each in whole] or title == "state", row
                assert begun.split("  ")[-1].removeprefix("held by ") in below, row
        if view.outlook is not None and view.outlook.eta_s is not None:
            assert view.outlook.why in " ".join([*rows, below]), "how it is known is somewhere in full"
            assert "grows" in rows[1] or "grew" in rows[1] or width < 40
