"""Keys that come before the launch form knows enough: none is swallowed, and nothing unseen is launched."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from gpuconsole.engine.endpoint import DEFAULT_SOCKET
from gpuconsole.launch.options import LaunchOptions
from gpuconsole.services.feed import EngineLink
from gpuconsole.tui.app import ConsoleApp
from gpuconsole.tui.screens.help import HelpScreen
from gpuconsole.tui.screens.launch import LaunchScreen
from gpuconsole.tui.screens.launchrunning import Running
from gpuconsole.tui.widgets.gpupicker import GpuPicker
from tests.tui.console import until
from tests.tui.formseen import below, form
from tests.tui.looking import NOW, feed, still

__all__ = ["still"]
PROFILES = """
[profiles.notebook]
image = "notes:1"
kind = "jupyter"

[profiles.train]
image = "train:1"
gpus = 2
"""


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[LaunchOptions]:
    """What was to be launched, which is not."""
    (tmp_path / "gpuconsole.toml").write_text(PROFILES)
    monkeypatch.chdir(tmp_path)
    begun: list[LaunchOptions] = []
    monkeypatch.setattr(Running, "_launch", lambda self, options: begun.append(options))
    monkeypatch.setattr("gpuconsole.services.profilefilling.to_be_asked", lambda *_: ())
    return begun


async def opened(pilot: Pilot[Any], app: ConsoleApp) -> LaunchScreen:
    await pilot.press("n")
    await until(pilot, lambda: isinstance(app.screen, LaunchScreen) and app.screen._began, what="the form")
    return form(app)


@pytest.mark.parametrize("what", ["images", "none with torch", "no engine", "written"])
async def test_a_launch_waits_for_the_images(
    still: Callable[..., ConsoleApp], launches: list[LaunchOptions], what: str
) -> None:
    app = still()
    async with app.run_test(size=(80, 24)) as pilot:
        await feed(pilot)
        images, app.images = app.images, None
        screen = await opened(pilot, app)
        await pilot.press("enter")
        await pilot.pause()
        assert "Waiting for the engine's list of images" in below(app)
        if what == "no engine":
            url = f"unix://{DEFAULT_SOCKET}"
            app.link = EngineLink(connected=False, endpoint=url, since=NOW, message="It is away.", hint="Start it.")
        elif what == "written":
            screen.fields.set("image", "mine:1")
            app.images = images
        else:
            app.images = images if what == "images" else ()
        await pilot.pause()
        if what == "images":
            await until(pilot, lambda: launches, what="it is launched")
            assert launches[0].image == screen.fields.value("image") != ""
        elif what != "written":
            await until(pilot, lambda: app.focused and app.focused.id == "field-image", what="where to correct it")
        # Without an image the launch itself says what is missing.
        assert len([each for each in launches if each.image]) == (what == "images")


async def test_what_was_not_seen_is_not_launched(
    still: Callable[..., ConsoleApp], launches: list[LaunchOptions]
) -> None:
    app = still()
    async with app.run_test(size=(80, 24)) as pilot:
        await feed(pilot)
        screen = await opened(pilot, app)
        screen.fields.go_to("profile")
        await pilot.press(*"notebook", "enter", "tab")
        await until(pilot, lambda: screen.fields.value("image") == "notes:1", what="the first profile")
        screen.fields.go_to("profile")
        await pilot.press("end", "ctrl+u", *"train", "f5")
        await until(pilot, lambda: "F5 launches it" in below(app), what="a word")
        assert screen.fields.value("image") == "train:1"
        assert not launches
        await pilot.press("f5")
        await until(pilot, lambda: launches, what="it is launched")
        assert (launches[0].image, launches[0].kind) == ("train:1", None)


async def test_help_that_is_read_stays_and_the_engine_that_is_away_is_told_once(
    still: Callable[..., ConsoleApp], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    app = still()
    async with app.run_test(size=(80, 24)) as pilot:
        await feed(pilot)
        screen = await opened(pilot, app)
        await until(pilot, lambda: screen._weight and screen._weight.failure, what="weighed")
        failure = screen._weight.failure if screen._weight else None
        assert failure is not None
        await pilot.press("f5", "f1")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen) and screen._failure, what="it failed")
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is screen and screen._weight and screen._weight.failure)
        await pilot.pause()
        assert "".join(below(app).split()).count("".join(failure.message.split())) == 1  # a long path breaks anywhere


def is_wide(picker: GpuPicker, width: int) -> bool:
    return picker.size.width == width


async def test_a_row_of_gpus_that_is_cut_says_so(still: Callable[..., ConsoleApp], tmp_path: Path) -> None:
    app = still()
    async with app.run_test(size=(80, 24)) as pilot:
        await feed(pilot)
        picker = (await opened(pilot, app)).query_one(GpuPicker)
        for width in (78, 70, 60):
            picker.styles.width = width  # as when a scrollbar comes
            await until(pilot, partial(is_wide, picker, width), what="the width")
            await pilot.pause()
            whole = ["  " + "".join(cell.text for cell in row.cells) for row in picker._rows]
            for row, line in zip(whole, picker.lines, strict=True):
                text = "".join(cell.text for cell in line)
                assert text == row or (text.endswith("…") and len(text) <= width)
