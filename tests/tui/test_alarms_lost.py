"""A GPU that falls off the bus while the console is open is told, once, as any failure is."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from gpuconsole.core.config import Config
from gpuconsole.gpu.model import Gpu, GpuSnapshot, GpuStatus
from gpuconsole.host.model import GpuView, HostView
from gpuconsole.services.alarmlost import LostGpus
from gpuconsole.tui.app import ConsoleApp
from gpuconsole.tui.screens.alarms import AlarmsScreen
from tests.rig.nvml import NvmlBox, box
from tests.tui.console import console, shown, until
from tests.tui.test_alarms import bells, toasts

OK, GONE = GpuStatus.OK, GpuStatus.LOST
LOST = "The GPU is lost: it has fallen off the bus"


def heard(rung: list[str], times: int, app: ConsoleApp) -> bool:
    return len(rung) == times and any(LOST in each for each in toasts(app))


def is_not(app: ConsoleApp, looked: object) -> bool:
    return app.host_view is not looked


async def test_a_lost_gpu_rings_once_and_once_more_when_it_is_lost_again(
    nvml: NvmlBox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = box(2)
    broken = whole.with_(gpus=(whole.gpus[0].with_(lost=True), whole.gpus[1]))
    nvml.write(whole)
    app = console(f"unix://{tmp_path}/none.sock", tmp_path, config=Config(refresh_s=0.5))
    rung = bells(app, monkeypatch)
    async with app.run_test(size=(100, 30), notifications=True) as pilot:
        await until(pilot, lambda: app.host_view and len(app.host_view.gpus) == 2)
        for times in (1, 2):
            for _ in range(2):
                await until(pilot, partial(is_not, app, app.host_view), what="it answers")
            nvml.write(broken)
            await until(pilot, partial(heard, rung, times, app))
            assert any("--gpu-reset -i 0" in each for each in toasts(app))
            for _ in range(3):
                await until(pilot, partial(is_not, app, app.host_view), what="another look")
            assert len(rung) == times, "once for each time it is lost"
            nvml.write(whole)
            await until(pilot, lambda: "free" in shown(app).splitlines()[2], what="it is back")
        await pilot.press("exclamation_mark")
        await until(pilot, lambda: isinstance(app.screen, AlarmsScreen) and LOST[:15] in shown(app))


def look(*status: GpuStatus, problem: str | None = None) -> HostView:
    gpus = tuple(
        Gpu(
            index=index,
            uuid=f"GPU-{index}",
            name="NVIDIA H200",
            status=each,
            problem=None if each is GpuStatus.OK else "gone",
        )
        for index, each in enumerate(status)
    )
    snapshot = GpuSnapshot(0.0, gpus=gpus if problem is None else (), problem=problem)
    return HostView(snapshot, gpus=tuple(GpuView(each) for each in snapshot.gpus))


def told(*looks: HostView) -> list[tuple[int, str]]:
    follower = LostGpus()
    return [(number, each.name) for number, view in enumerate(looks) for each in follower.looked(view, float(number))]


def test_one_look_without_an_answer_is_no_loss_and_what_never_answered_is_none() -> None:
    assert told(look(OK, OK), look(GONE, OK), look(OK, OK), look(GONE, OK)) == []
    assert told(look(GONE, OK), look(GONE, OK), look(GONE, OK)) == []


def test_each_gpu_that_is_lost_is_told_by_its_index() -> None:
    lost = look(GONE, GpuStatus.ERROR, OK)
    assert told(look(OK, OK, OK), lost, lost, lost, lost) == [(2, "GPU 0"), (2, "GPU 1")]


def test_a_driver_that_does_not_answer_is_no_loss_of_gpus() -> None:
    away = look(problem="The driver does not answer.")
    assert told(look(OK), away, away, away, look(OK)) == []
    gone = look(GONE)
    assert told(look(OK), gone, away, replace(gone, outlooks=())) == [(3, "GPU 0")]
