"""All about containers, images, processes and runs, on a real engine and a simulated driver."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from gpuconsole.services.runs import RunKind, RunState
from gpuconsole.tui.app import ConsoleApp
from gpuconsole.tui.screens.details import ContainerDetails, ImageDetails, ProcessDetails, RunDetails, open_details
from gpuconsole.tui.screens.logs import LogScreen
from gpuconsole.tui.screens.question import QuestionScreen
from gpuconsole.tui.widgets.grid import Grid
from gpuconsole.tui.widgets.lines import Lines
from gpuconsole.tui.widgets.pane import DetailPane
from tests.rig.engines import Engine
from tests.rig.nvml import NvmlBox, box
from tests.rig.nvml.gpu import GpuProcess
from tests.rig.nvml.presets import busy
from tests.tui.console import console, shown, until

GIB = 2**30


def launch(engine: Engine, name: str, *options: str) -> None:
    engine.docker("run", "-d", "--name", name, *options, engine.load("small"), "sleep", "1000")


async def container_details(pilot: Pilot[Any], app: ConsoleApp, name: str) -> ContainerDetails:
    await until(pilot, lambda: any(view.container.name == name for view in app.containers or ()))
    open_details(app, next(view for view in app.containers or () if view.container.name == name))
    await until(pilot, lambda: isinstance(app.screen, ContainerDetails) and app.screen.query("#facts"))
    await pilot.pause()
    assert isinstance(app.screen, ContainerDetails)
    return app.screen


def all_text(app: ConsoleApp) -> str:
    """What the fields say, also below the edge of the screen."""
    lines = app.screen.query_one("#facts", Lines).lines
    return "\n".join("".join(cell.text for cell in line) for line in lines)


@pytest.mark.parametrize("size", [(80, 24), (40, 12), (200, 50)])
async def test_a_container_is_shown_in_full_and_hostile_text_is_inert(
    engine_modern: Engine, nvml: NvmlBox, tmp_path: Path, size: tuple[int, int]
) -> None:
    variables = ("-e", "HF_TOKEN=hf_0123456789abcdefgh", "-e", "A=[/red]\x1b[2J")
    label = ("--label", "note=[bold]\x1b]0;owned\x07")
    parts = ("-p", "127.0.0.1::8888", "-v", f"{tmp_path}:/data:ro", "--device", "nvidia.com/gpu=1")
    launch(engine_modern, "train", *variables, *label, *parts)
    app = console(engine_modern.host, tmp_path)
    async with app.run_test(size=size) as pilot:
        await container_details(pilot, app, "train")
        await until(pilot, lambda: "H200" in all_text(app))
        text = " ".join(all_text(app).split())
        assert "HF_TOKEN=********" in text
        assert "A=[/red]" in text
        assert "note=[bold]" in text
        assert "ssh -N -L" in text
        assert "1 H200" in text
        assert "train" in shown(app).splitlines()[0]
        assert "\x1b" not in shown(app)
        await until(pilot, lambda: "100 is one core" in " ".join(all_text(app).split()), what="its own load is shown")
        await pilot.press("G")
        await pilot.pause()
        assert "note=[bold]" in shown(app)


async def test_what_happens_to_the_container_is_seen_and_its_removal_said(
    engine_modern: Engine, nvml: NvmlBox, tmp_path: Path
) -> None:
    launch(engine_modern, "train")
    app = console(engine_modern.host, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await container_details(pilot, app, "train")
        engine_modern.docker("kill", "train")
        await until(pilot, lambda: "killed" in all_text(app))
        await pilot.pause()
        assert screen.check_action("start", ())
        assert not screen.check_action("stop", ())
        engine_modern.docker("rm", "train")
        await until(pilot, lambda: "It was removed" in all_text(app))
        assert screen.thing is None
        assert not screen.check_action("start", ())
        await pilot.press("escape")
        assert app.screen is not screen


async def test_actions_work_there_and_ask(engine_modern: Engine, nvml: NvmlBox, tmp_path: Path) -> None:
    launch(engine_modern, "train")
    app = console(engine_modern.host, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await container_details(pilot, app, "train")
        await pilot.press("d")
        await until(pilot, lambda: isinstance(app.screen, QuestionScreen))
        await pilot.press("enter")
        await until(pilot, lambda: app.screen is screen)
        assert "train" in engine_modern.docker("ps", "--format", "{{.Names}}").stdout
        await pilot.press("l")
        await until(pilot, lambda: isinstance(app.screen, LogScreen))
        await pilot.press("q")
        await pilot.press("p")
        await until(pilot, lambda: "paused" in all_text(app))
        await pilot.press("p")
        await until(pilot, lambda: "paused" not in all_text(app))


async def test_readonly_takes_the_changing_keys_away(engine_modern: Engine, nvml: NvmlBox, tmp_path: Path) -> None:
    launch(engine_modern, "train")
    app = console(engine_modern.host, tmp_path, readonly=True)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await container_details(pilot, app, "train")
        for action in ("stop", "remove", "restart", "pause", "shell", "attach", "check"):
            assert not screen.check_action(action, ()), action
        assert screen.check_action("logs", ())


async def test_an_image_and_the_run_of_its_check(engine_modern: Engine, nvml: NvmlBox, tmp_path: Path) -> None:
    reference = engine_modern.load("small")
    app = console(engine_modern.host, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.images)
        open_details(app, next(view for view in app.images or () if reference in view.image.tags))
        await until(pilot, lambda: isinstance(app.screen, ImageDetails) and app.screen.query("#facts"))
        await pilot.pause()
        assert reference in all_text(app)
        assert "not checked yet" in all_text(app)
        await pilot.press("c")
        await until(pilot, lambda: any(run.ended for run in app.runs), seconds=90)
        await until(pilot, lambda: "fail" in all_text(app) and "python" in all_text(app))
        open_details(app, app.runs[0])
        await until(pilot, lambda: isinstance(app.screen, RunDetails) and app.screen.query("#facts"))
        await pilot.pause()
        text = " ".join(all_text(app).split())
        assert "✖ fail python" in text or "X fail python" in text
        assert "→" in text
        assert not app.screen.check_action("cancel_run", ())


@pytest.mark.parametrize("where", ["list", "details"])
async def test_a_run_under_way_can_be_ended(engine_modern: Engine, nvml: NvmlBox, tmp_path: Path, where: str) -> None:
    launch(engine_modern, "train")
    app = console(engine_modern.host, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.containers)
        engine_modern.freeze()  # so that it is still under way
        try:
            app.desk.check_container((app.containers or ())[0].container)
            await until(pilot, lambda: app.runs)
            if where == "details":
                open_details(app, app.runs[0])
                await until(pilot, lambda: isinstance(app.screen, RunDetails) and app.screen.query("#facts"))
                await pilot.pause()
                assert "running" in all_text(app)
            else:
                await pilot.press("4")
                await pilot.pause()
                assert "x Cancel" in shown(app).splitlines()[-1]
            await pilot.press("x")
        finally:
            engine_modern.thaw()
        await until(pilot, lambda: app.runs[0].ended)
        assert app.runs[0].state is RunState.CANCELLED
        await until(pilot, lambda: "cancelled" in shown(app))


async def test_a_process_is_followed_until_it_lets_go(nvml: NvmlBox, tmp_path: Path) -> None:
    first = box(1)
    nvml.write(first.with_(gpus=(busy(first.gpus[0], GpuProcess(os.getpid(), 3 * GIB)),)))
    app = console(f"unix://{tmp_path}/none.sock", tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.host_view and app.host_view.gpus[0].holders)
        assert app.host_view is not None
        open_details(app, app.host_view.gpus[0].holders[0])
        await until(pilot, lambda: isinstance(app.screen, ProcessDetails) and app.screen.query("#facts"))
        await pilot.pause()
        text = all_text(app)
        assert str(os.getpid()) in text
        assert "3 GiB" in text
        assert "none: it runs on the host itself" in text or "container" in text
        nvml.write(first)
        await until(pilot, lambda: "It has let go of the GPU" in all_text(app))
        assert app.screen.check_action("kill", ()) is False


async def test_a_run_nobody_remembers_any_more(tmp_path: Path, nvml: NvmlBox) -> None:
    app = console(f"unix://{tmp_path}/none.sock", tmp_path)
    async with app.run_test(size=(40, 12)) as pilot:
        run_id = app.desk.runs.begin(RunKind.LAUNCH, "pytorch", "sha256:1", "half way")
        await until(pilot, lambda: app.runs)
        run = replace(app.runs[0], progress=0.5)
        open_details(app, run)
        await until(pilot, lambda: isinstance(app.screen, RunDetails) and app.screen.query("#facts"))
        app.desk.runs.advance(run_id, "nearly there", 0.9)
        await until(pilot, lambda: "90%" in all_text(app))
        assert "nearly there" in all_text(app)


def pane_text(app: ConsoleApp) -> str:
    """What stands beside the list."""
    pane = app.screen.query_one(DetailPane)
    return "\n".join("".join(cell.text for cell in line) for line in pane.lines) if pane.display else ""


async def test_the_thing_under_the_cursor_stands_beside_the_list_where_there_is_room(
    engine_modern: Engine, nvml: NvmlBox, tmp_path: Path
) -> None:
    launch(engine_modern, "first")
    launch(engine_modern, "second")
    app = console(engine_modern.host, tmp_path)
    async with app.run_test(size=(200, 50)) as pilot:
        await until(pilot, lambda: "second" in pane_text(app), what="the newest is on top")
        assert isinstance(app.focused, Grid)
        await until(pilot, lambda: "100 is one core" in pane_text(app), what="its own load")
        await pilot.press("down")
        await until(pilot, lambda: "first" in pane_text(app).splitlines()[0])
        engine_modern.docker("kill", "first")
        await until(pilot, lambda: "killed" in pane_text(app), what="it follows")
        assert isinstance(app.focused, Grid), "and takes no focus"
        assert app.focused.id == "containers"
        await pilot.press("shift+tab")
        await until(pilot, lambda: "GPU" in pane_text(app).splitlines()[0], what="the GPU with the focus")
        await pilot.press("down")
        await until(pilot, lambda: "1 H200" in pane_text(app).splitlines()[0])
        await pilot.press("2")
        await until(pilot, lambda: "image" in pane_text(app).splitlines()[0])
        await pilot.press("3")
        await until(pilot, lambda: pane_text(app) == "", what="no process, nothing to show")
        await pilot.press("1")
        await pilot.resize_terminal(100, 30)
        await until(pilot, lambda: not app.screen.query_one(DetailPane).display)
        await pilot.resize_terminal(180, 16)
        await until(pilot, lambda: "enter shows the rest" in pane_text(app), what="what does not fit is said")


async def test_a_key_works_as_soon_as_the_first_container_is_there(
    engine_modern: Engine, nvml: NvmlBox, tmp_path: Path
) -> None:
    app = console(engine_modern.host, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.containers == () and app.host_view)
        await pilot.pause()
        assert isinstance(app.focused, Grid)
        launch(engine_modern, "train")
        await until(pilot, lambda: "train" in shown(app))
        assert isinstance(app.focused, Grid)
        await pilot.press("l")
        await until(pilot, lambda: isinstance(app.screen, LogScreen))
