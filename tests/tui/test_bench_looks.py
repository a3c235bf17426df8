"""How benchmarks look: the question before, a run of an H200, two beside each other; pictures kept beside this file."""

from __future__ import annotations

from typing import Any

import pytest
from textual.pilot import Pilot

from gpuconsole.core.config import Config
from gpuconsole.tui.app import ConsoleApp
from gpuconsole.tui.screens.benchask import BenchAsk
from gpuconsole.tui.screens.benchcompare import CompareScreen
from gpuconsole.tui.widgets.lines import Lines
from tests.tui.console import until
from tests.tui.looking import still
from tests.tui.test_bench import Make, fed, results, seen
from tests.tui.test_looks import Compare, same, settled

__all__ = ["seen", "still"]


async def asked(pilot: Pilot[Any]) -> None:
    """The question before an image is measured."""
    app: Any = pilot.app
    await fed(pilot, app)
    await pilot.press("2", "b")
    await until(pilot, lambda: isinstance(app.screen, BenchAsk) and app.focused is not None)
    await pilot.press("down")
    await settled(pilot)


async def run(pilot: Pilot[Any]) -> None:
    """A run that was slow."""
    app: Any = pilot.app
    assert isinstance(app, ConsoleApp)
    await results(pilot, app)
    await settled(pilot)


async def compared(pilot: Pilot[Any]) -> None:
    """The same beside the one before."""
    await run(pilot)
    await pilot.press("v")
    app: Any = pilot.app
    await until(pilot, lambda: isinstance(app.screen, CompareScreen) and app.screen.query_one("#facts", Lines).lines)
    await settled(pilot)


LOOKS = {
    "asked-80x24": (asked, (80, 24), {}),
    "run-120x36": (run, (120, 36), {}),
    "compared-80x24-ascii": (compared, (80, 24), {"config": Config(ascii=True)}),
}


@pytest.mark.parametrize("name", LOOKS)
def test_benchmarks(snap_compare: Compare, seen: Make, name: str) -> None:
    look, size, options = LOOKS[name]
    assert same(snap_compare, seen(**options), look, size)
