"""The footer and the help of each list and of the form: what one needs there, on the smallest screen too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Button, Input

from gpuconsole.core.config import Config
from gpuconsole.services.runs import Run, RunKind, RunState
from gpuconsole.tui.app import ConsoleApp
from gpuconsole.tui.screens.details import open_details
from gpuconsole.tui.screens.help import HelpScreen
from gpuconsole.tui.screens.launch import LaunchScreen
from gpuconsole.tui.screens.main import MainScreen
from gpuconsole.tui.widgets.keyline import KeyLine
from gpuconsole.tui.widgets.strip import GpuStrip
from tests.tui.console import shown, until
from tests.tui.looking import IDS, NOW, feed, still

__all__ = ["still"]
Make = Callable[..., ConsoleApp]


def footer(app: ConsoleApp) -> str:
    """The keys that are shown, as they stand there."""
    (line,) = app.screen.query_one(KeyLine).lines
    return "".join(cell.text for cell in line)


def tells(app: ConsoleApp, *keys: str) -> bool:
    """They stand in the footer, whole."""
    return bool(app.screen.query(KeyLine)) and all(each in footer(app) for each in keys)


async def seen(pilot: Pilot[Any], app: ConsoleApp) -> MainScreen:
    await feed(pilot)
    await pilot.pause()
    assert isinstance(app.screen, MainScreen)
    return app.screen


NEEDED = {
    "containers": ("enter Open", "n New", "l Logs", "s Shell", "c Check", "x Stop"),
    "images": ("enter Open", "n New", "p Pull", "c Check", "i Pin"),
    "processes": ("enter Open", "n New", "K Kill"),
    "runs": ("enter Open", "x Cancel"),
}


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("tab", list(NEEDED))
async def test_each_list_tells_the_keys_one_needs_there(still: Make, tab: str, width: int) -> None:
    app = still()
    async with app.run_test(size=(width, 24)) as pilot:
        screen = await seen(pilot, app)
        screen.tab = tab
        needed = (*NEEDED[tab], "? Help", "q Quit")
        await until(pilot, lambda: all(each in footer(app) for each in needed), what=f"{needed}")
        assert len(footer(app).rstrip()) <= width


@pytest.mark.parametrize("width", [40, 80])
async def test_what_is_under_way_tells_how_to_end_it(still: Make, width: int) -> None:
    app = still()
    async with app.run_test(size=(width, 24)) as pilot:
        screen = await seen(pilot, app)
        under_way = [
            Run(str(10 + place), kind, "llama-ft", IDS["llama-ft"], NOW - 30, headline="half way", progress=0.5)
            for place, kind in enumerate(RunKind)
        ]
        screen.tab = "runs"
        for run in under_way:
            app.runs = (run,)
            app.desk.runs.show(app.runs)
            await until(pilot, partial(tells, app, "x Cancel", "? Help", "q Quit"), what=f"{run.kind} in the list")
            open_details(app, run)
            await until(pilot, partial(tells, app, "x Cancel", "? Help", "esc Back"), what=f"{run.kind} in full")
            await app.pop_screen()
        app.runs = (replace(under_way[0], state=RunState.OK, ended_at=NOW),)
        app.desk.runs.show(app.runs)
        await until(pilot, lambda: "x Cancel" not in footer(app), what="nothing is to be ended")


async def test_the_form_tells_how_to_launch_go_on_and_back(still: Make) -> None:
    app = still()
    async with app.run_test(size=(80, 24)) as pilot:
        await seen(pilot, app)
        await pilot.press("n")
        await until(pilot, lambda: isinstance(app.screen, LaunchScreen) and isinstance(app.focused, Button))
        needed = ("tab Next field", "F5 Launch", "F4 More", "esc Back", "? Help")
        await until(pilot, lambda: all(each in footer(app) for each in needed), what=f"{needed}")
        app.screen.query(Input).first().focus()
        # Where one types, a letter is a letter, and Help has its other key.
        needed = (*needed[:-1], "F1 Help")
        await until(pilot, lambda: all(each in footer(app) for each in needed), what=f"{needed}")
        assert "? Help" not in footer(app)
        assert len(footer(app).rstrip()) <= 80
        await pilot.press("f1")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))


async def test_where_words_are_typed_no_letter_passes_for_a_key(still: Make) -> None:
    app = still()
    async with app.run_test(size=(80, 24)) as pilot:
        await seen(pilot, app)
        await pilot.press("slash")
        await until(pilot, lambda: "F1 Help" in footer(app))
        keys = [entry.split()[0] for entry in footer(app).strip().split("  ")]
        assert not [key for key in keys if len(key) == 1], footer(app)


HELPED = {
    "gpus": ("who holds memory", "measures it"),
    "containers": ("what they hold and use", "A shell inside it"),
    "images": ("those of the catalog", '"seen"', "Bring it here"),
    "processes": ("hold memory on a GPU", "End one of your GPU processes"),
    "runs": ("the newest first", "one that waits says for whom", "End this run"),
}


@pytest.mark.parametrize("ascii_only", [False, True])
@pytest.mark.parametrize("part", list(HELPED))
async def test_the_help_is_that_of_the_list_that_is_shown(still: Make, part: str, ascii_only: bool) -> None:
    app = still(config=Config(ascii=ascii_only))
    async with app.run_test(size=(120, 60)) as pilot:
        screen = await seen(pilot, app)
        if part == "gpus":
            screen.query_one(GpuStrip).focus()
        else:
            screen.tab = part
        await until(pilot, lambda: screen.query_one(GpuStrip).has_focus == (part == "gpus") and bool(screen.thing))
        await pilot.pause()
        await pilot.press("question_mark")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen) and "Help" in shown(app))
        text = " ".join(shown(app).replace("│", " ").split())
        for words in HELPED[part]:
            assert words in text
        for other in HELPED:
            assert other == part or HELPED[other][0] not in text, other
        assert "{" not in text
        assert ("as long as this console is open" in text) == (part != "images")
        assert text.isascii() or not ascii_only
