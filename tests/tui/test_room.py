"""Windows too small to read: nothing can be done in them but to leave."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpuconsole.core.config import Config
from gpuconsole.tui.app import ConsoleApp
from gpuconsole.tui.screens.main import MainScreen
from gpuconsole.tui.screens.question import QuestionScreen
from tests.tui.console import shown, until
from tests.tui.looking import still
from tests.tui.test_looks import SCREENS

__all__ = ["still"]

Make = Callable[..., ConsoleApp]
KEYS = ("n", "d", "x", "p", "c", "enter", "tab", "enter", "y", "colon", "question_mark", "escape", "K", "1")


@pytest.mark.parametrize("size", [(39, 24), (80, 9), (20, 5)])
async def test_no_key_acts_in_a_window_that_is_too_small(still: Make, size: tuple[int, int]) -> None:
    app = still()
    async with app.run_test(size=size) as pilot:
        await SCREENS["main"](pilot)
        for key in KEYS:
            await pilot.press(key)
        assert isinstance(app.screen, MainScreen)
        assert app.screen.tab == "containers"
        assert "Too small" in shown(app)
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: "Too small" not in shown(app))
        await pilot.press("2")
        assert app.screen.tab == "images"


async def test_a_question_that_cannot_be_read_is_not_answered(still: Make) -> None:
    app = still()
    async with app.run_test(size=(80, 24)) as pilot:
        await SCREENS["question"](pilot)
        await pilot.resize_terminal(30, 8)
        await until(pilot, lambda: "Too small" in shown(app))
        for key in KEYS:
            await pilot.press(key)
        assert isinstance(app.screen, QuestionScreen)
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: "Too small" not in shown(app))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, MainScreen))


@pytest.mark.parametrize(("keys", "key"), [({}, "q"), ({}, "ctrl+c"), ({"app.quit": ("Q",)}, "Q")])
async def test_the_keys_that_leave_leave(still: Make, keys: dict[str, tuple[str, ...]], key: str) -> None:
    app = still(config=Config(keys=keys))
    async with app.run_test(size=(30, 8)) as pilot:
        await SCREENS["main"](pilot)
        assert f"{key if len(key) == 1 else 'q'} quits" in shown(app)
        await pilot.press(key)
        await until(pilot, lambda: app._exit)
    assert app.return_code == 0
