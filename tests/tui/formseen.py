"""The launch form in tests: opened, weighed, and what stands in it."""

from __future__ import annotations

import json
from typing import Any

from textual.pilot import Pilot

from gpuconsole.tui.app import ConsoleApp
from gpuconsole.tui.present import launchform
from gpuconsole.tui.screens.launch import LaunchScreen
from gpuconsole.tui.screens.launchfields import LaunchFields
from gpuconsole.tui.screens.main import MainScreen
from gpuconsole.tui.widgets.lines import Lines
from gpuconsole.tui.widgets.tick import Tick
from tests.rig.client import EngineClient
from tests.rig.engines import Engine
from tests.tui.console import until

IMAGE = "cuda-env"
"""An image that says it has PyTorch and CUDA, two megabytes small."""


def with_images(engine: Engine) -> tuple[str, str]:
    """Only the image that says it has CUDA, which the form then proposes, and a small one that says nothing."""
    engine.only(IMAGE, "small")
    return engine.load(IMAGE), engine.load("small")


def form(app: ConsoleApp) -> LaunchScreen:
    assert isinstance(app.screen, LaunchScreen), app.screen
    return app.screen


def below(app: ConsoleApp) -> str:
    lines = form(app).query_one("#below", Lines).lines
    return " ".join(" ".join("".join(cell.text for cell in line) for line in lines).split())


def problem(app: ConsoleApp, key: str) -> str:
    row = next(group for group in (*launchform.ROWS, *launchform.MORE) if any(field.key == key for field in group))
    lines = form(app).query_one(f"#problem-{row[0].key}", Lines).lines
    return " ".join("".join(cell.text for cell in line).strip() for line in lines)


async def opened(pilot: Pilot[Any], app: ConsoleApp) -> LaunchFields:
    """The form by its key, weighed once."""
    await until(pilot, lambda: app.images is not None and app.host_view and app.host_view.gpus, what="images and GPUs")
    await pilot.press("n")
    await until(pilot, lambda: isinstance(app.screen, LaunchScreen), what="the form")
    await until(pilot, lambda: form(app)._weight is not None, what="weighed")
    await pilot.pause()
    return form(app).fields


async def weighed(pilot: Pilot[Any], app: ConsoleApp) -> None:
    """Wait until what stands in the form is weighed."""
    number = form(app)._number
    form(app)._weigh()
    screen = form(app)
    await until(pilot, lambda: screen._number > number and screen._weight is not None)
    seen = screen._weight
    screen._weigh()
    await until(pilot, lambda: screen._weight is not seen, what="weighed again")
    await pilot.pause()


def on_main(app: ConsoleApp) -> bool:
    return isinstance(app.screen, MainScreen)


def without_joining(app: ConsoleApp) -> None:
    form(app).query_one("#join", Tick).decide(False)


def inspect(engine: EngineClient, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(engine.docker("inspect", name).stdout)[0]
    return found


def names(engine: EngineClient) -> list[str]:
    return engine.docker("ps", "--all", "--format", "{{.Names}}").stdout.split()
