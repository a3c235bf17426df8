"""The main screen on a real engine and a simulated driver."""

from __future__ import annotations

from pathlib import Path

from textual.widgets import Input

from gpuconsole.tui.screens.main import MainScreen
from gpuconsole.tui.widgets.grid import Grid
from tests.rig.engines import Engine
from tests.rig.nvml import NvmlBox, box
from tests.tui.console import console, shown, until


async def test_gpus_containers_and_counts_are_there_and_stay_up_to_date(
    engine_modern: Engine, nvml: NvmlBox, tmp_path: Path
) -> None:
    engine_modern.docker("run", "-d", "--name", "train", engine_modern.load("small"), "sleep", "1000")
    app = console(engine_modern.host, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.containers and app.host_view)
        await until(pilot, lambda: "0 H200" in shown(app) and "train" in shown(app))
        text = shown(app)
        assert "1 H200" in text
        assert "[Containers 1]" in text
        assert "train" in text
        engine_modern.docker("run", "-d", "--name", "second", engine_modern.load("small"), "sleep", "1000")
        await until(pilot, lambda: len(app.containers or ()) == 2)
        engine_modern.docker("rm", "-f", "train")
        await until(pilot, lambda: len(app.containers or ()) == 1)
        await until(pilot, lambda: "train" not in shown(app))


async def test_every_printable_key_reaches_the_filter(engine_modern: Engine, nvml: NvmlBox, tmp_path: Path) -> None:
    app = console(engine_modern.host, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("slash")
        for key in ("n", "q", "question_mark", "x", "1", "colon", "d"):
            await pilot.press(key)
        assert isinstance(app.screen, MainScreen)
        assert app.screen.query_one("#filter", Input).value == "nq?x1:d"
        assert app.screen.words == "nq?x1:d"
        await pilot.press("escape")
        assert app.screen.words == ""
        assert isinstance(app.focused, Grid)


async def test_sixteen_gpus_are_all_on_a_small_screen(nvml: NvmlBox, tmp_path: Path) -> None:
    nvml.write(box(16, "h200"))
    app = console(f"unix://{tmp_path}/none.sock", tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.host_view is not None)
        await until(pilot, lambda: app.link is not None)
        await until(pilot, lambda: "15 " in shown(app))
        await until(pilot, lambda: "→" in shown(app))
        text = shown(app)
        for index in range(16):
            assert f"{index:>2} " in text
        assert "engine" in text
