"""A container's output on the screen, from a real engine."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from gpuconsole.engine.model import Container, ContainerState
from gpuconsole.services.logfollow import LogState
from gpuconsole.tui.app import ConsoleApp
from gpuconsole.tui.present.logs import MOST_LINES
from gpuconsole.tui.screens.logs import LogScreen
from gpuconsole.tui.screens.question import QuestionScreen
from gpuconsole.tui.widgets.logview import LogView
from tests.rig.engines import Engine
from tests.tui.console import console, shown, until

pytestmark = pytest.mark.usefixtures("nvml")


def run(engine: Engine, name: str, script: str, *options: str) -> None:
    engine.docker("run", "-d", "--name", name, *options, engine.load("small"), "sh", "-c", script)


async def opened(pilot: Pilot[None], app: ConsoleApp, name: str) -> LogScreen:
    """The log screen of a container, once the console knows it."""
    await until(pilot, lambda: any(view.container.name == name for view in app.containers or ()))
    container = next(view.container for view in app.containers or () if view.container.name == name)
    screen = LogScreen(container)
    await app.push_screen(screen)
    return screen


def view_of(screen: LogScreen) -> LogView:
    return screen.query_one(LogView)


def texts(screen: LogScreen) -> list[str]:
    return [line.text for line in view_of(screen).buffer.lines_kept]


def followers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "log-follower"]


@pytest.mark.parametrize("size", [(80, 24), (40, 12)])
async def test_output_is_followed_and_what_comes_later_is_shown(
    engine_modern: Engine, tmp_path: Path, size: tuple[int, int]
) -> None:
    run(engine_modern, "late", "seq 1 300; while [ ! -f /go ]; do sleep 0.05; done; echo the end came; sleep 1000")
    app = console(engine_modern.host, tmp_path)
    async with app.run_test(size=size) as pilot:
        screen = await opened(pilot, app, "late")
        await until(pilot, lambda: view_of(screen).buffer.end == 300)
        await pilot.pause()
        assert "300" in shown(app)
        assert "following" in shown(app)
        engine_modern.docker("exec", "late", "touch", "/go")
        await until(pilot, lambda: "the end came" in texts(screen))
        await pilot.pause()
        assert "the end came" in shown(app)


async def test_scrolling_up_stops_the_following_and_the_end_goes_on_with_it(
    engine_modern: Engine, tmp_path: Path
) -> None:
    run(engine_modern, "train", "seq 1 200; while [ ! -f /go ]; do sleep 0.05; done; seq 201 240; sleep 1000")
    app = console(engine_modern.host, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot, app, "train")
        await until(pilot, lambda: view_of(screen).buffer.end == 200)
        await pilot.press("up", "up")
        view = view_of(screen)
        assert not view.following
        before = view.on_screen()
        engine_modern.docker("exec", "train", "touch", "/go")
        await until(pilot, lambda: view.buffer.end == 240)
        await pilot.pause()
        assert view.on_screen() == before
        assert "paused, 40 new" in shown(app)
        await pilot.press("end")
        await pilot.pause()
        assert view.on_screen()[-1].text == "240"
        await pilot.press("f", "up")
        await pilot.press("home")
        await pilot.pause()
        assert view.on_screen()[0].text == "1"
        assert "paused" in shown(app)


async def test_words_are_found_counted_and_gone_to(engine_modern: Engine, tmp_path: Path) -> None:
    run(engine_modern, "train", "for i in $(seq 1 100); do echo step $i loss 0.$i; done; sleep 1000")
    app = console(engine_modern.host, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot, app, "train")
        await until(pilot, lambda: view_of(screen).buffer.end == 100)
        await pilot.press("slash", *"step", "space", "9", "enter")
        await pilot.pause()
        finder = view_of(screen).finder
        assert len(finder.matches) == 11
        assert "step 9 " in shown(app)
        assert "/11" in shown(app)
        await pilot.press("n")
        first = finder.found
        await pilot.press("n", "N")
        assert finder.found == first
        await pilot.press("escape")
        assert finder.words == ""
        assert isinstance(app.screen, LogScreen)
        await pilot.press("escape")
        assert not isinstance(app.screen, LogScreen)


async def test_hostile_output_a_long_line_and_a_progress_bar(engine_modern: Engine, tmp_path: Path) -> None:
    script = (
        r"printf '\033[2J\033]0;owned\007[/red]safe\n'; head -c 90000 /dev/zero | tr '\0' x; echo END; "
        r"printf '10 %%\r50 %%\r100 %%\n'; echo wrong >&2; sleep 1000"
    )
    run(engine_modern, "train", script)
    app = console(engine_modern.host, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot, app, "train")
        await until(pilot, lambda: len(texts(screen)) == 4)
        lines = texts(screen)
        assert "[/red]safe" in lines
        assert "x" * 90_000 + "END" in lines
        assert "100 %" in lines
        assert "\x1b" not in shown(app)
        assert "! wrong" in shown(app)
        await pilot.press("w", "home")
        await pilot.pause()
        assert view_of(screen).virtual_size.height > 90_000 // 80
        await pilot.press("t")
        await pilot.pause()
        assert ":" in shown(app).splitlines()[1]
        await pilot.press("w", "slash", *"END", "enter")
        await pilot.pause()
        assert "xEND" in shown(app), "the line is scrolled to where the words stand"


@asynccontextmanager
async def one_that_has_ended(
    engine: Engine, tmp_path: Path
) -> AsyncIterator[tuple[Pilot[None], ConsoleApp, LogScreen]]:
    """The output of a container that has ended, open."""
    run(engine, "train", "echo life; exit 3")
    engine.docker("wait", "train")
    app = console(engine.host, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot, app, "train")
        await until(pilot, lambda: screen._status.state is LogState.ENDED)
        yield pilot, app, screen


async def test_a_restart_goes_on_in_the_same_view_and_says_the_end(engine_modern: Engine, tmp_path: Path) -> None:
    async with one_that_has_ended(engine_modern, tmp_path) as (pilot, app, screen):
        await pilot.pause()
        assert "exit code 3" in shown(app)
        assert texts(screen) == ["life"]
        engine_modern.docker("start", "train")
        await until(pilot, lambda: texts(screen) == ["life", "life"])
        engine_modern.docker("rm", "-f", "train")


async def test_one_that_has_ended_is_removed_later_and_that_is_said(engine_modern: Engine, tmp_path: Path) -> None:
    async with one_that_has_ended(engine_modern, tmp_path) as (pilot, app, screen):
        engine_modern.docker("rm", "train")
        await until(pilot, lambda: screen._status.state is LogState.GONE)
        assert "removed" in shown(app)
        assert texts(screen) == ["life"]


async def test_what_keeps_no_output_says_so(engine_modern: Engine, tmp_path: Path) -> None:
    run(engine_modern, "train", "echo x; sleep 1000", "--log-driver", "none")
    app = console(engine_modern.host, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot, app, "train")
        await until(pilot, lambda: screen._status.state is LogState.REFUSED)
        await pilot.pause()
        assert "→" in shown(app)


async def test_saving_asks_before_it_writes_over_a_file(
    engine_modern: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run(engine_modern, "train", "seq 1 50; sleep 1000")
    app = console(engine_modern.host, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot, app, "train")
        await until(pilot, lambda: view_of(screen).buffer.end == 50)
        await pilot.press("S")
        assert screen.query_one("#path", Input).value == "./train.log"
        await pilot.press("enter")
        file = tmp_path / "train.log"
        await until(pilot, lambda: file.exists() and file.read_text().count("\n") == 50)
        file.write_text("mine")
        await pilot.press("S", "enter")
        await until(pilot, lambda: isinstance(app.screen, QuestionScreen))
        await pilot.press("enter")  # Cancel has the focus
        await until(pilot, lambda: app.screen is screen)
        assert file.read_text() == "mine"
        await pilot.press("S", "enter")
        await until(pilot, lambda: isinstance(app.screen, QuestionScreen))
        await pilot.press("y")
        await until(pilot, lambda: file.read_text().startswith("1\n2\n"))


@pytest.mark.parametrize("place", ["~nobody-of-this-name/x.log", "/proc/self/nowhere/x", "missing/x", "y" * 300])
async def test_a_place_that_cannot_be_written_is_said(tmp_path: Path, place: str) -> None:
    app = console(f"unix://{tmp_path}/none.sock", tmp_path)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        screen = LogScreen(Container("ab" * 32, "train", "a:1", "sha256:1", ContainerState.EXITED))
        app.push_screen(screen)
        await until(pilot, lambda: app.screen is screen and screen.query("#path"))
        await pilot.press("S")
        screen.query_one("#path", Input).value = place
        await pilot.press("enter")
        await until(pilot, lambda: app._notifications)
        assert app.is_running
        assert app.failure is None


async def test_closing_ends_the_following_also_with_a_frozen_engine(engine_modern: Engine, tmp_path: Path) -> None:
    run(engine_modern, "train", "echo hello; sleep 1000")
    app = console(engine_modern.host, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot, app, "train")
        await until(pilot, lambda: texts(screen) == ["hello"])
        engine_modern.freeze()
        try:
            await pilot.press("q")
            await until(pilot, lambda: not followers(), seconds=9)  # an engine that is asked is waited for 10 s
        finally:
            engine_modern.thaw()


async def test_an_engine_that_goes_and_comes_back_is_said_and_healed(engine_modern: Engine, tmp_path: Path) -> None:
    run(engine_modern, "train", "echo life; sleep 1000")
    app = console(engine_modern.host, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot, app, "train")
        await until(pilot, lambda: texts(screen) == ["life"])
        engine_modern.stop()
        try:
            await until(pilot, lambda: screen._status.state is LogState.LOST)
            await until(pilot, lambda: app.link is not None and not app.link.connected)
            await pilot.pause()
            assert "→" in shown(app)
        finally:
            engine_modern.start()
        await until(pilot, lambda: screen._status.state in (LogState.ENDED, LogState.FOLLOWING))
        engine_modern.docker("start", "train")
        await until(pilot, lambda: texts(screen)[-2:] == ["life", "life"])


async def test_a_frozen_engine_is_said_and_the_output_goes_on(engine_modern: Engine, tmp_path: Path) -> None:
    run(engine_modern, "train", "i=0; while true; do i=$((i+1)); echo step $i; sleep 0.2; done")
    app = console(engine_modern.host, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot, app, "train")
        await until(pilot, lambda: view_of(screen).buffer.end > 2)
        engine_modern.freeze()
        try:
            await until(pilot, lambda: app.link is not None and not app.link.connected)
            await pilot.pause()
            assert "→" in shown(app)
        finally:
            engine_modern.thaw()
        await until(pilot, lambda: app.link is not None and app.link.connected)
        count = view_of(screen).buffer.end
        await until(pilot, lambda: view_of(screen).buffer.end > count + 2)
        await pilot.pause()
        assert "→" not in shown(app)
        numbers = [int(text.removeprefix("step ")) for text in texts(screen)]
        assert numbers == list(range(1, len(numbers) + 1)), "nothing is missing, nothing twice"


async def test_a_flood_leaves_the_console_quick_and_its_memory_bounded(engine_modern: Engine, tmp_path: Path) -> None:
    run(engine_modern, "train", "yes the quick brown fox")
    app = console(engine_modern.host, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot, app, "train")
        await until(pilot, lambda: view_of(screen).buffer.first > 10_000)
        assert len(texts(screen)) == MOST_LINES
        await pilot.press("up")
        assert not view_of(screen).following
        before = view_of(screen).on_screen()
        await until(pilot, lambda: "dropped" in shown(app) and "more waits" in shown(app))
        assert view_of(screen).on_screen() == before
        await pilot.press("home")
        await pilot.pause(0.3)
        assert view_of(screen).on_screen()[0] == view_of(screen).buffer.lines_kept[0]
        dropped = view_of(screen).buffer.first
        await pilot.press("end")
        await until(pilot, lambda: view_of(screen).buffer.first > dropped)
        await pilot.press("q")
        await until(pilot, lambda: not followers())
        engine_modern.docker("rm", "-f", "train")
