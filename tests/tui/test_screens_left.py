"""A screen ends at news, whatever lies over it by then; and each is left once."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

import gpuconsole.tui
from gpuconsole.launch.options import LaunchOptions
from gpuconsole.services.launching import Launched
from gpuconsole.tui.app import ConsoleApp
from gpuconsole.tui.leaving import leave
from gpuconsole.tui.screens.building import BuildScreen
from gpuconsole.tui.screens.details import open_details
from gpuconsole.tui.screens.help import HelpScreen
from gpuconsole.tui.screens.launch import LaunchScreen
from gpuconsole.tui.screens.launchrunning import Running
from gpuconsole.tui.screens.launchsaving import SaveProfile
from gpuconsole.tui.screens.logs import LogScreen
from gpuconsole.tui.screens.main import MainScreen
from gpuconsole.tui.screens.pulling import PullScreen
from gpuconsole.tui.screens.question import Question, QuestionScreen
from gpuconsole.tui.screens.reading import ReadingScreen
from tests.tui.console import until
from tests.tui.looking import containers, feed, still

__all__ = ["still"]
QUESTION = Question("Stop it?", "It stops.", "Stop")
SCREENS: dict[str, Callable[[ConsoleApp], Any]] = {
    "launch": lambda app: LaunchScreen(),
    "save": lambda app: SaveProfile("train", LaunchOptions("small")),
    "pull": lambda app: PullScreen(),
    "build": lambda app: BuildScreen(),
    "log": lambda app: LogScreen(containers()[0].container),
    "question": lambda app: QuestionScreen(QUESTION),
    "text": lambda app: ReadingScreen("A text", "words"),
    "details": lambda app: open_details(app, containers()[0]),
}


@pytest.mark.parametrize("name", SCREENS)
async def test_a_screen_is_left_from_under_others(still: Callable[..., ConsoleApp], name: str) -> None:
    app = still()
    async with app.run_test(size=(80, 24)) as pilot:
        await feed(pilot)
        if screen := SCREENS[name](app):
            app.push_screen(screen)
        await until(pilot, lambda: len(app.screen_stack) == 2)
        below = app.screen
        app.action_help()
        await until(pilot, lambda: isinstance(app.screen, HelpScreen), what="help")
        leave(below)
        leave(below)  # as when a key was on its way
        await until(pilot, lambda: not below.is_attached, what="it is gone")
        assert isinstance(app.screen, HelpScreen), "what is read stays"
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, MainScreen), what="the main screen")
        await pilot.press("f1", "escape", "escape", "escape")
        await until(pilot, lambda: isinstance(app.screen, MainScreen), what="still there")
    assert app.failure is None


@pytest.mark.parametrize("keys", [(), ("f1",)])
async def test_a_question_goes_with_who_asked_it(still: Callable[..., ConsoleApp], keys: tuple[str, ...]) -> None:
    app, answers = still(), list[str]()
    async with app.run_test(size=(80, 24)) as pilot:
        await feed(pilot)
        form = LaunchScreen()
        app.push_screen(form)
        await until(pilot, lambda: form.is_attached)
        form.ask(QUESTION, lambda: answers.append("yes"))
        await until(pilot, lambda: isinstance(app.screen, QuestionScreen))
        await pilot.press(*keys)
        await pilot.pause()
        form.post_message(Running.Ended(Launched("1" * 64, cast(Any, SimpleNamespace(name="train")), None)))
        await until(pilot, lambda: not form.is_attached, what="the form's end")
        await pilot.press(*["escape" for _ in keys])
        await until(pilot, lambda: isinstance(app.screen, MainScreen), what="the main screen")
        await pilot.press("escape", "y")
    assert app.failure is None
    assert not answers


async def test_whether_to_leave_is_not_asked_any_more_once_nothing_goes_on(
    still: Callable[..., ConsoleApp], monkeypatch: pytest.MonkeyPatch
) -> None:
    app, going = still(), ["launch of train", "pull of small"]
    monkeypatch.setattr(type(app.desk), "going", property(lambda desk: tuple(going)))
    async with app.run_test(size=(80, 24)) as pilot:
        await feed(pilot)
        await pilot.press("q")
        await until(pilot, lambda: isinstance(app.screen, QuestionScreen), what="the question")
        for left in (1, 0):
            going.pop()
            app.runs = app.runs[: 1 + left]
            await pilot.pause()
            assert isinstance(app.screen, QuestionScreen if left else MainScreen)
    assert app.failure is None


def test_screens_are_left_in_this_way_alone() -> None:
    wrong = []
    folder = Path(gpuconsole.tui.__file__).parent
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and path.name != "leaving.py":
                of = ast.unparse(node.func.value)
                if node.func.attr == "dismiss" and of in ("self", "self.screen", "screen", "app.screen"):
                    wrong.append(f"{path.relative_to(folder)}:{node.lineno}")
    assert not wrong
