"""What happens around the console while one watches: engines, drivers and containers that come, go, hang and lie."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from textual.app import ComposeResult
from textual.screen import Screen

from gpuconsole.engine.model import Usage
from gpuconsole.host.usage import UsageReader
from gpuconsole.tui.present.cell import Cell
from gpuconsole.tui.screens.details import ContainerDetails, open_details
from gpuconsole.tui.screens.help import HelpScreen
from gpuconsole.tui.screens.logs import LogScreen
from gpuconsole.tui.screens.main import MainScreen
from gpuconsole.tui.widgets.grid import Grid
from gpuconsole.tui.widgets.lines import Lines
from gpuconsole.tui.widgets.strip import GpuStrip
from tests.rig.engines import Engine
from tests.rig.nvml import NvmlBox, box
from tests.rig.nvml.gpu import GpuProcess
from tests.rig.nvml.presets import busy
from tests.tui.console import console, sees, shown, until

GIB = 2**30


def run(engine: Engine, name: str, *options: str) -> str:
    return engine.docker("run", "-d", "--name", name, *options, engine.load("small"), "sleep", "1000").stdout.strip()


# --- the engine ---


async def test_an_engine_that_is_stopped_and_started_again(
    engine_modern: Engine, nvml: NvmlBox, tmp_path: Path
) -> None:
    run(engine_modern, "train")
    app = console(engine_modern.host, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await sees(pilot, app, "train", "0 H200")
        engine_modern.stop()
        text = await sees(pilot, app, "→", "Since", "tried again by itself", "train")
        assert "0 H200" in text, "the GPUs are still there"
        assert app.link is not None
        assert not app.link.connected
        engine_modern.start()
        engine_modern.docker("start", "train")
        await until(pilot, lambda: app.link and app.link.connected)
        await until(pilot, lambda: "tried again by itself" not in shown(app))
        await sees(pilot, app, "train", "up")


async def test_an_engine_that_hangs_and_goes_on(engine_modern: Engine, nvml: NvmlBox, tmp_path: Path) -> None:
    run(engine_modern, "train")
    app = console(engine_modern.host, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await sees(pilot, app, "train", "0 H200")
        engine_modern.freeze()
        try:
            text = await sees(pilot, app, "→", "Since", "train")
            assert "answer" in text
            looked = app.host_view.snapshot.taken_at if app.host_view else 0.0
            await until(pilot, lambda: app.host_view and app.host_view.snapshot.taken_at > looked)
        finally:
            engine_modern.thaw()
        await until(pilot, lambda: app.link and app.link.connected)
        run(engine_modern, "second")
        await sees(pilot, app, "second")


async def test_an_engine_that_comes_later(engine_modern: Engine, nvml: NvmlBox, tmp_path: Path) -> None:
    engine_modern.stop()
    app = console(engine_modern.host, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        text = await sees(pilot, app, "→", "0 H200")
        assert "Traceback" not in text
        engine_modern.start()
        run(engine_modern, "train")
        await sees(pilot, app, "[Containers 1]", "train")


# --- the GPUs ---


async def test_a_gpu_that_is_lost_and_comes_back(nvml: NvmlBox, tmp_path: Path) -> None:
    app = console(f"unix://{tmp_path}/none.sock", tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await sees(pilot, app, "0 H200", "1 H200")
        nvml.change_gpu(1, lost=True)
        await sees(pilot, app, "0 H200", "1 H200", "fallen off the bus")
        nvml.change_gpu(1, lost=False)
        await until(pilot, lambda: "fallen off" not in shown(app))
        await sees(pilot, app, "0 H200", "1 H200")


async def test_gpus_that_are_all_gone_and_come_back(nvml: NvmlBox, tmp_path: Path) -> None:
    app = console(f"unix://{tmp_path}/none.sock", tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await sees(pilot, app, "0 H200")
        whole = nvml.state
        nvml.write(box(0))
        await until(pilot, lambda: "0 H200" not in shown(app))
        text = await sees(pilot, app, "no GPU")
        assert "→" in text
        nvml.write(whole)
        await sees(pilot, app, "0 H200", "1 H200")
        assert app.screen.query_one(GpuStrip).size.height == 3


async def test_without_a_driver_it_is_calm_and_sees_one_that_comes(nvml: NvmlBox, tmp_path: Path) -> None:
    whole = nvml.state
    nvml.write(whole.with_(init=9))  # the driver is not loaded
    app = console(f"unix://{tmp_path}/none.sock", tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        text = await sees(pilot, app, "driver", "→")
        assert "Traceback" not in text
        assert "Looking for GPUs" not in text
        nvml.write(whole)
        await sees(pilot, app, "0 H200")


async def test_a_driver_that_hangs_shows_how_old_its_figures_are(nvml: NvmlBox, tmp_path: Path) -> None:
    app = console(f"unix://{tmp_path}/none.sock", tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await sees(pilot, app, "0 H200")
        nvml.change_gpu(0, delays_ms={"nvmlDeviceGetMemoryInfo_v2": 8_000, "nvmlDeviceGetMemoryInfo": 8_000})
        await sees(pilot, app, " s old")
        await sees(pilot, app, "not answered", "→")
        nvml.change_gpu(0, delays_ms={})
        await until(pilot, lambda: " s old" not in shown(app))
        await sees(pilot, app, "0 H200")


async def test_a_fault_at_looking_is_told_and_tried_again(
    nvml: NvmlBox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gpuconsole.services.overview import Overview

    app = console(f"unix://{tmp_path}/none.sock", tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await sees(pilot, app, "0 H200")
        with monkeypatch.context() as patch:
            patch.setattr(Overview, "look", lambda *_, **__: 1 / 0)
            await sees(pilot, app, "failed inside gpuconsole", "ZeroDivisionError", "→")
        await until(pilot, lambda: "ZeroDivisionError" not in shown(app))
        await sees(pilot, app, "0 H200")


# --- a container that goes ---


@pytest.mark.parametrize("place", [0, 1, 2])
async def test_the_cursor_of_a_container_that_vanishes_goes_to_its_neighbour(
    engine_modern: Engine, nvml: NvmlBox, tmp_path: Path, place: int
) -> None:
    for name in ("one", "two", "three"):  # none runs, so that none moves among the others before it goes
        engine_modern.docker("create", "--name", name, engine_modern.load("small"), "sleep", "1000")
    app = console(engine_modern.host, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await sees(pilot, app, "[Containers 3]", "one", "two", "three")
        grid = app.screen.query_one("#containers", Grid)
        keys = [row.key for row in grid.rows]
        grid.cursor = keys[place]
        engine_modern.docker("rm", keys[place])
        await until(pilot, lambda: len(grid.rows) == 2)
        rest = [key for key in keys if key != keys[place]]
        assert grid.cursor == rest[min(place, 1)]


async def test_open_details_and_logs_of_a_container_that_vanishes_say_so(
    engine_modern: Engine, nvml: NvmlBox, tmp_path: Path
) -> None:
    run(engine_modern, "train")
    run(engine_modern, "other")
    app = console(engine_modern.host, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: len(app.containers or ()) == 2)
        view = next(each for each in app.containers or () if each.container.name == "train")
        open_details(app, view)
        await until(pilot, lambda: isinstance(app.screen, ContainerDetails))
        app.push_screen(LogScreen(view.container))
        await until(pilot, lambda: isinstance(app.screen, LogScreen))
        engine_modern.docker("rm", "-f", "train")
        text = await sees(pilot, app, "train", "removed")
        assert "Traceback" not in text
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, ContainerDetails))
        await sees(pilot, app, "train", "It was removed")
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, MainScreen))
        text = await sees(pilot, app, "other")
        assert "train" not in text


# --- only what is seen is asked for and drawn ---


async def test_figures_are_taken_only_of_what_is_on_the_screen(
    engine_modern: Engine, nvml: NvmlBox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        run(engine_modern, f"c{number}")
    asked: list[set[str]] = []
    read = UsageReader.read

    def counted(self: UsageReader, pids: dict[str, int]) -> dict[str, Usage]:
        asked.append(set(pids))
        return read(self, pids)

    monkeypatch.setattr(UsageReader, "read", counted)
    app = console(engine_modern.host, tmp_path)
    async with app.run_test(size=(80, 14)) as pilot:
        await until(pilot, lambda: len(app.containers or ()) == 20)
        await until(pilot, lambda: asked and asked[-1])
        grid = app.screen.query_one("#containers", Grid)
        rows = grid.size.height - 1
        assert rows <= 8
        seen = {row.key for row in grid.rows[:rows]}
        await until(pilot, lambda: seen <= asked[-1])
        assert len(asked[-1]) <= rows + 5, "the rows on the screen, and some around them"
        await pilot.press("4")
        await until(pilot, lambda: not asked[-1], what="none while another list is shown")
        await pilot.press("1")
        await until(pilot, lambda: asked[-1])
        await pilot.press("question_mark")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))
        await until(pilot, lambda: not asked[-1], what="none while another screen is shown")
        await pilot.press("escape")
        await until(pilot, lambda: asked[-1])


async def test_the_main_screen_is_not_drawn_while_another_covers_it_and_misses_nothing(
    engine_modern: Engine, nvml: NvmlBox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(engine_modern, "train")
    app = console(engine_modern.host, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await sees(pilot, app, "train", "0 H200")
        drawn: list[int] = []
        draw = MainScreen._draw

        def counted(self: MainScreen) -> None:
            drawn.append(1)
            draw(self)

        monkeypatch.setattr(MainScreen, "_draw", counted)
        await pilot.press("question_mark")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))
        await pilot.pause()
        drawn.clear()
        run(engine_modern, "second")
        await until(pilot, lambda: len(app.containers or ()) == 2)
        taken_at = app.host_view.snapshot.taken_at if app.host_view else 0.0
        await until(pilot, lambda: app.host_view and app.host_view.snapshot.taken_at > taken_at + 1)
        assert drawn == []
        await pilot.press("escape")
        await sees(pilot, app, "second", "[Containers 2]")


class Page(Screen[None]):
    """Nothing but lines."""

    def compose(self) -> ComposeResult:
        yield Lines(id="lines")


async def test_lines_that_become_more_while_a_layout_is_due_are_all_shown(tmp_path: Path, nvml: NvmlBox) -> None:
    app = console(f"unix://{tmp_path}/none.sock", tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await app.push_screen(Page())
        lines = app.screen.query_one("#lines", Lines)
        for count in (1, 3, 2, 5):
            lines.refresh(layout=True)
            app.screen._refresh_layout()  # finds the height it had
            lines.show([(Cell(f"line {number}"),) for number in range(count)])
            await until(pilot, lambda count=count: lines.size.height == count)  # type: ignore[misc]
        assert "line 4" in shown(app)


async def test_why_gpus_are_unknown_before_the_first_look(engine_modern: Engine, nvml: NvmlBox, tmp_path: Path) -> None:
    first = box(1)
    slow = {"nvmlInit_v2": 3_000, "nvmlInitWithFlags": 3_000, "nvmlDeviceGetCount_v2": 3_000}
    nvml.write(first.with_(delays_ms=slow, gpus=(busy(first.gpus[0], GpuProcess(os.getpid(), GIB)),)))
    run(engine_modern, "train", "--device", "nvidia.com/gpu=0")
    app = console(engine_modern.host, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.containers)
        if app.host_view is None:  # the driver is still starting
            view = (app.containers or ())[0]
            assert view.unknown["gpu_memory_bytes"] == "the GPUs are still being looked at"
        await until(pilot, lambda: app.host_view)
        await until(
            pilot,
            lambda: "still being looked at" not in str((app.containers or ())[0].unknown),
        )
        assert not [why for why in (app.containers or ())[0].unknown.values() if "not on this machine" in why]
