"""One GPU on a screen, from a simulated driver."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gpuconsole.gpu.forecast_model import Assessment, Subject
from gpuconsole.gpu.state import MemoryState
from gpuconsole.services.pasts import MEMORY
from gpuconsole.services.ringing import gpu_key
from gpuconsole.tui.app import ConsoleApp
from gpuconsole.tui.screens.copying import CopyScreen
from gpuconsole.tui.screens.details import ProcessDetails, open_details
from gpuconsole.tui.screens.gpu import GpuScreen
from gpuconsole.tui.screens.subjects import GpuSubject
from gpuconsole.tui.widgets.lines import Lines
from tests.rig.engines import Engine
from tests.rig.nvml import NvmlBox, box
from tests.rig.nvml.gpu import GpuProcess
from tests.rig.nvml.presets import busy
from tests.tui.console import console, shown, until
from tests.tui.looking import NOW, containers, feed, still

__all__ = ["still"]
GIB = 2**30


def every_text(app: ConsoleApp) -> str:
    """What all parts say, also below the edge of the screen."""
    parts = [app.screen.query_one(f"#{name}", Lines).lines for name in ("facts", "charts", "more")]
    return "\n".join("".join(cell.text for cell in line) for lines in parts for line in lines)


def key_now(app: ConsoleApp) -> str:
    assert app.host_view is not None
    return gpu_key(app.host_view.gpus[0])


async def opened(app: ConsoleApp) -> None:
    """The screen of the first GPU."""
    assert app.host_view is not None
    await app.push_screen(GpuScreen(GpuSubject(app, app.host_view.gpus[0])))


def alone(tmp_path: Path) -> ConsoleApp:
    """A console with GPUs and no engine."""
    return console(f"unix://{tmp_path}/none.sock", tmp_path)


@pytest.mark.parametrize("size", [(80, 24), (40, 12), (120, 36)])
async def test_a_busy_gpu_in_full(nvml: NvmlBox, tmp_path: Path, size: tuple[int, int]) -> None:
    first = box(1)
    nvml.write(first.with_(gpus=(busy(first.gpus[0], GpuProcess(os.getpid(), 90 * GIB)),)))
    app = alone(tmp_path)
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: app.host_view and app.host_view.gpus[0].holders)
        await opened(app)
        await until(pilot, lambda: app.history.points(MEMORY, key_now(app), 0, app.now() + 60)[1:])
        await pilot.pause()
        text = " ".join(every_text(app).split())
        assert "power cap" in text
        assert "of 700 W" in text
        assert "compute capability 9.0" in text
        assert "ECC on" in text
        assert "█" in every_text(app) or "#" in every_text(app)
        assert "0 H200" in shown(app).splitlines()[0]
        assert all(len(line) <= size[0] for line in shown(app).splitlines())
        assert "slowed by power cap, still" in every_text(app), "in the line of what happened"
        assert "1 min" in every_text(app)
        await pilot.press("z")
        assert "5 min" in every_text(app)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, ProcessDetails))
        await pilot.press("q")
        await pilot.press("y")
        await until(pilot, lambda: isinstance(app.screen, CopyScreen))
        await pilot.press("escape", "escape")
        assert not isinstance(app.screen, GpuScreen)


@pytest.mark.parametrize("preset", ["rtx4090", "gb10"])
async def test_what_a_gpu_does_not_tell_has_a_reason(nvml: NvmlBox, tmp_path: Path, preset: str) -> None:
    nvml.write(box(1, preset))
    app = alone(tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.host_view and app.host_view.gpus)
        await opened(app)
        await pilot.pause()
        text = every_text(app)
        assert preset != "gb10" or "–  " in text
        assert "not known" not in text, "everything that is missing has a reason of its own"


async def test_a_gpu_divided_into_instances(nvml: NvmlBox, tmp_path: Path) -> None:
    nvml.write(box(1, "a100-mig"))
    app = alone(tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.host_view and app.host_view.gpus)
        await opened(app)
        await pilot.pause()
        assert "3g.20gb" in every_text(app)


async def test_a_gpu_that_goes_is_said_and_comes_back(nvml: NvmlBox, tmp_path: Path) -> None:
    app = alone(tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.host_view and app.host_view.gpus)
        await opened(app)
        whole = box(2)
        nvml.write(whole.with_(gpus=(whole.gpus[0].with_(lost=True), whole.gpus[1])))
        await until(pilot, lambda: "failed" in every_text(app))
        nvml.write(whole)
        await until(pilot, lambda: "failed" not in every_text(app))


async def test_what_happens_to_a_container_stands_below_the_charts(
    engine: Engine, nvml: NvmlBox, tmp_path: Path
) -> None:
    image = engine.load("small")
    engine.docker("run", "-d", "--name", "train", image, "sleep", "1000")
    pid = int(engine.docker("inspect", "-f", "{{.State.Pid}}", "train").stdout)
    first = box(1)
    nvml.write(first.with_(gpus=(busy(first.gpus[0], GpuProcess(pid, 90 * GIB)),)))
    app = console(engine.host, tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: app.containers and app.containers[0].gpus)
        await opened(app)
        await until(pilot, lambda: "train started" in every_text(app))
        engine.docker("kill", "train")
        await until(pilot, lambda: "train ended (killed)" in every_text(app))


async def test_the_forecast_is_drawn_ahead_and_goes_with_its_trend(still: Callable[..., ConsoleApp]) -> None:
    app = still()
    async with app.run_test(size=(120, 36)) as pilot:
        await feed(pilot)
        assert app.host_view is not None
        await opened(app)
        await pilot.pause()
        assert "full in" not in every_text(app)
        told = Assessment(Subject.GPU, "0", 0, None, MemoryState.RISK, 45.0, "grew 12 GiB in 60 s")
        first, *others = app.host_view.gpus
        app.host_view = replace(app.host_view, gpus=(replace(first, outlook=told), *others))
        await until(pilot, lambda: "full in about 45 s" in every_text(app))
        assert any(set("⣀⠤⠒⠉") & set(line) for line in every_text(app).splitlines())
        app.host_view = replace(app.host_view, gpus=(first, *others))
        await until(pilot, lambda: "full in" not in every_text(app))


async def test_the_span_grows_with_what_is_remembered_until_a_person_chooses(still: Callable[..., ConsoleApp]) -> None:
    app = still()
    async with app.run_test(size=(120, 36)) as pilot:
        await feed(pilot)  # four minutes
        await opened(app)
        await pilot.pause()
        seen = [every_text(app).split("·")[1].split("  ")[0].strip()]
        for _ in range(6):
            await pilot.press("z")
            seen.append(every_text(app).split("·")[1].split("  ")[0].strip())
        assert seen == ["5 min", "30 min", "2 h", "6 h", "24 h", "1 min", "5 min"]


async def test_a_container_and_a_process_show_their_half_hour(still: Callable[..., ConsoleApp]) -> None:
    app = still()
    async with app.run_test(size=(120, 36)) as pilot:
        await feed(pilot)
        for back in range(900, -1, -10):
            app.history.containers_listed(containers(), at=NOW - back)
        assert app.containers is not None
        assert app.host_view is not None
        for thing, words in ((app.containers[0], ["GPU", "RAM", "CPU"]), (app.host_view.gpus[0].holders[0], ["GiB"])):
            open_details(app, thing)
            await pilot.pause()
            text = shown(app).partition("last 30 min")[2].splitlines()[: len(words)]
            assert all(word in line for word, line in zip(words, text, strict=True)), text
            app.pop_screen()


def test_nothing_of_the_past_is_imported_for_the_first_screen() -> None:
    code = (
        "import sys, gpuconsole.tui.app\nprint([name for name in sys.modules if '.pasts' in name or '.track' in name])"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
