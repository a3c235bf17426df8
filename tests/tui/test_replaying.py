"""A recording in the console: where one is stands above every screen, keys go elsewhere, and nothing stale is left."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from gpuconsole.services.recordings import shipped
from gpuconsole.services.replay import Clock
from gpuconsole.services.replaydesk import ReplayDesk
from gpuconsole.services.replayfile import Recording, load
from gpuconsole.tui import actions
from gpuconsole.tui.app import ConsoleApp
from gpuconsole.tui.keymap import Keymap
from gpuconsole.tui.keymapcheck import _held, _places
from gpuconsole.tui.replaying import ReplayApp
from gpuconsole.tui.screens.gpu import GpuScreen
from gpuconsole.tui.screens.logs import LogScreen
from gpuconsole.tui.widgets.replayline import ReplayLine
from gpuconsole.tui.widgets.strip import GpuStrip
from tests.tui.console import shown, thought, until

TWO = Path(__file__).parents[1] / "fixtures/two-tenants-h200.jsonl.gz"


@pytest.fixture(scope="module")
def recording() -> Recording:
    return load(TWO)


@asynccontextmanager
async def playing(
    recording: Recording, *, speed: float = 0.0, size: tuple[int, int] = (120, 36)
) -> AsyncIterator[tuple[ReplayApp, Pilot[Any]]]:
    app = ReplayApp(ReplayDesk(recording, clock=Clock(recording, speed=speed)))
    async with app.run_test(size=size, notifications=True) as pilot:
        await until(pilot, lambda: app.desk.started and app.screen.query(ReplayLine))
        yield app, pilot


async def go(app: ReplayApp, pilot: Pilot[Any], at: float) -> None:
    """Go there, and wait until it is on the screen."""
    moves = app.desk.player.moves
    app.desk.seek(at)
    await until(pilot, lambda: app.desk.player.moves > moves and app.desk.player.wanted_s is None)
    await settled(app, pilot)


async def settled(app: ReplayApp, pilot: Pilot[Any]) -> None:
    state = app.desk.player.state
    await until(pilot, lambda: app.host_view == state.host and (app.containers or ()) == state.containers)
    await thought(pilot)


def says(app: ReplayApp, words: str) -> bool:
    """They stand on the screen."""
    return words in shown(app)


def line(app: ReplayApp) -> str:
    """The line of the recording, also where a toast stands over it."""
    return "".join(cell.text for cell in app.screen.query_one(ReplayLine).lines[0])


async def all_seen(app: ReplayApp, pilot: Pilot[Any]) -> str:
    """What stands on the main screen, tab by tab, and on the screen of its GPU, but for the line itself."""
    seen = []
    for key in ("1", "3", "4"):
        await pilot.press(key)
        seen.append(shown(app).partition("\n")[2])
    await pilot.press("1", "tab", "enter")
    await until(pilot, lambda: isinstance(app.screen, GpuScreen))
    await thought(pilot)
    seen.append(shown(app).partition("\n")[2])
    await pilot.press("escape", "tab")
    return "\n".join(seen)


async def test_what_is_seen_at_a_moment_is_the_same_played_to_or_gone_to(recording: Recording) -> None:
    at = recording.length_s * 0.7
    async with playing(recording) as (app, pilot):
        app.desk.go_to(at)  # plays it through
        await settled(app, pilot)
        played = await all_seen(app, pilot)
    async with playing(recording) as (app, pilot):
        for other in (recording.length_s, at + 3, 0.0, at - 9, recording.length_s, at):
            await go(app, pilot, other)
        assert await all_seen(app, pilot) == played


async def test_going_back_leaves_nothing_of_what_came_later(recording: Recording) -> None:
    async with playing(recording) as (app, pilot):
        await go(app, pilot, 0.0)
        before = await all_seen(app, pilot)
        for at in (recording.length_s, recording.length_s / 2, 0.0):
            await go(app, pilot, at)
        assert await all_seen(app, pilot) == before
        assert app.marks == frozenset()


@pytest.mark.parametrize("size", [(80, 24), (120, 36), (200, 50), (40, 10)])
async def test_the_line_says_where_one_is_and_fits(recording: Recording, size: tuple[int, int]) -> None:
    async with playing(recording, size=size) as (app, pilot):
        await until(pilot, lambda: "0:00 / 0:39" in line(app))
        await pilot.press("full_stop")
        await until(pilot, lambda: "0:10 / 0:39" in line(app))
        await pilot.press("full_stop", "comma", "full_stop")
        await until(pilot, lambda: "0:20 / 0:39" in line(app) and "going" not in line(app))
        await pilot.press("space")
        await until(pilot, lambda: "paused" in line(app))
        await pilot.press("right_parenthesis")
        await until(pilot, lambda: "  2×" in line(app) or "  0.25×" in line(app))
        await pilot.press("dollar_sign")
        await until(pilot, lambda: "■ end" in line(app) and "0:39 / 0:39" in line(app))
        await pilot.press("greater_than_sign")
        await until(pilot, lambda: "0:39 / 0:39" in line(app) and "going" not in line(app))
        await pilot.press("circumflex_accent")
        await until(pilot, lambda: "0:00 / 0:39" in line(app))


async def test_it_stops_at_the_end_and_plays_again_only_when_asked(recording: Recording) -> None:
    async with playing(recording, speed=16.0) as (app, pilot):
        await until(pilot, lambda: "■ end" in line(app))
        assert app.desk.clock.position_s == recording.length_s
        await pilot.pause(0.3)
        assert "■ end" in line(app)
        await pilot.press(*["left_parenthesis"] * 5, "space")
        await until(pilot, lambda: "plays" in line(app) and app.desk.clock.position_s < recording.length_s)


async def test_the_next_event_is_gone_to_and_said(recording: Recording) -> None:
    async with playing(recording) as (app, pilot):
        for moment in app.desk.moments:
            await pilot.press("e")
            await until(pilot, lambda: app.desk.player.wanted_s is None and app.desk.clock.position_s > 0.1)
            assert app.desk.clock.position_s == moment.at
            await until(pilot, partial(says, app, moment.words.split(";")[0][:20]))
        await pilot.press("e")
        await until(pilot, lambda: "Nothing happens after this" in shown(app))
        for _ in range(3):
            await pilot.press("e")
        assert [each.message for each in app._notifications].count("Nothing happens after this.") == 1


async def test_output_that_is_shown_is_that_of_the_moment(recording: Recording) -> None:
    async with playing(recording) as (app, pilot):
        await go(app, pilot, recording.length_s)
        output = {key: lines for key, lines in app.desk.player.state.output.items() if len(lines) > 3}
        of, lines = next(iter(output.items()))
        last = lines[-1].text
        at = next(event.at for event in recording.events if event.kind == "log" and event.body.id == of
                  and event.body.text == last)  # fmt: skip
        container = next(view.container for view in app.containers or () if view.container.id == of)
        app.push_screen(LogScreen(container))
        await until(pilot, lambda: last[:30] in shown(app))
        await go(app, pilot, at - 0.001)
        await until(pilot, lambda: isinstance(app.screen, LogScreen) and last[:30] not in shown(app))
        await go(app, pilot, recording.length_s)
        await until(pilot, lambda: last[:30] in shown(app))
        assert len(app.screen_stack) == 2


async def test_every_screen_has_the_line_and_hears_its_keys(recording: Recording) -> None:
    async with playing(recording) as (app, pilot):
        await go(app, pilot, 20.0)
        for open_it in (("enter",), ("exclamation_mark",), ("question_mark",), ("1", "tab", "enter"), ("1", "l")):
            await pilot.press(*open_it)
            await until(pilot, lambda: len(app.screen_stack) == 2, what=str(open_it))
            await until(pilot, lambda: app.screen.query(ReplayLine) and " / 0:39" in shown(app), what=str(open_it))
            await pilot.press("space")
            await until(pilot, lambda: "paused" in line(app), what=str(open_it))
            await pilot.press("space", "escape")
            await until(pilot, lambda: len(app.screen_stack) == 1)
            app.screen.set_focus(app.screen.query_one("#containers"))


async def test_a_space_that_is_typed_or_ticks_does_not_pause(recording: Recording) -> None:
    async with playing(recording) as (app, pilot):
        await go(app, pilot, 5.0)
        await pilot.press("slash", *"a", "space", "comma", "e")
        assert app.screen.query_one("#filter").value == "a ,e"  # type: ignore[attr-defined]
        assert not app.desk.clock.paused
        await pilot.press("escape")
        await pilot.press("space")
        assert app.desk.clock.paused


def test_its_keys_are_no_others_anywhere_and_there_only_in_a_recording() -> None:
    """But for the key that pauses, which scrolls elsewhere: page down does that too."""
    keys = {key for each in actions.REPLAY for key in each.key.split(",")} - {"space"}
    for place, classes in _places().items():
        if ReplayApp not in classes:
            assert not keys & _held(classes, Keymap()).keys(), place
    live = {binding.id for found in ConsoleApp._merge_bindings().key_to_bindings.values() for binding in found}
    assert not live & {each.id for each in actions.REPLAY}
    assert not keys & {*actions.FORBIDDEN_KEYS}


async def test_the_strip_draws_the_use_of_the_time_before(recording: Recording) -> None:
    async with playing(recording) as (app, pilot):
        await go(app, pilot, recording.length_s)
        strip = app.screen.query_one(GpuStrip)
        looks = [event.body for event in recording.events if event.kind == "host"]
        kept = [list(each) for each in strip._history.values()]
        assert kept == [[look.gpus[of].gpu.utilization_pct for look in looks] for of in (0, 1)]


def test_the_shipped_recording_can_be_gone_through() -> None:
    assert load(shipped()).length_s > 10
