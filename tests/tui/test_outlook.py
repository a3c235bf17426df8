"""Memory that runs full, as the console shows it: real processes and containers, recorded ones, a simulated driver."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gpuconsole.gpu.forecast import predict
from gpuconsole.gpu.forecast_model import Subject
from gpuconsole.gpu.state import MemoryState
from gpuconsole.host.model import HostView
from gpuconsole.host.recorded import memory_samples
from gpuconsole.host.state import memory_state
from gpuconsole.services.desk import Desk
from gpuconsole.services.recorder import Recorder
from gpuconsole.services.replay import Clock
from gpuconsole.services.replaydesk import ReplayDesk
from gpuconsole.services.replayfile import load
from gpuconsole.services.session import Session
from gpuconsole.tui.app import ConsoleApp
from gpuconsole.tui.screens.gpu import GpuScreen
from gpuconsole.tui.widgets.strip import GpuStrip
from tests.forecast.truth import FOLDER
from tests.rig.engines import Engine
from tests.rig.nvml import GpuProcess, NvmlBox, box, busy
from tests.tui.console import console, shown, until

GIB = 2**30
MIB = 2**20
ALARMING = (MemoryState.WATCH, MemoryState.RISK, MemoryState.CRITICAL)
NO_ENGINE = "unix:///nonexistent/docker.sock"
SIZES = [(80, 24), (120, 36), (200, 50)]


def step_by_step(app: ConsoleApp, *, until_s: float, step_s: float = 1.0) -> Iterator[float]:
    """The seconds of a replay, each told before the next."""
    desk = app.desk
    assert isinstance(desk, ReplayDesk)
    at = 1.0
    while at <= until_s:
        desk.go_to(at)
        yield at
        at += step_s


def has_come(app: ConsoleApp, at: float) -> bool:
    """What was recorded in that second was told."""
    return app.host_view is not None and app.host_view.snapshot.taken_at > at - 1


def says(app: ConsoleApp, words: str) -> bool:
    """They stand on the screen."""
    return words in shown(app)


def line_of(app: ConsoleApp) -> str:
    """The line under the GPUs."""
    rows = shown(app).splitlines()
    return rows[app.screen.query_one(GpuStrip).region.bottom - 1]


@pytest.mark.parametrize("size", SIZES)
async def test_a_leak_is_seen_in_the_strip_and_in_a_line_before_it_fills_the_gpu(size: tuple[int, int]) -> None:
    recording = load(FOLDER / "leak-100.jsonl.gz")
    app = ConsoleApp(ReplayDesk(recording, clock=Clock(recording, speed=0.0)))
    order: list[MemoryState] = []
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: app.is_running and app.screen.query(GpuStrip))
        for at in step_by_step(app, until_s=92.0, step_s=1.0 if size[0] == 80 else 4.0):
            await until(pilot, partial(has_come, app, at), what=f"{at} s")
            await pilot.pause(0)
            assert app.host_view is not None
            state = memory_state(app.host_view.gpus[0])
            if state not in order:
                order.append(state)
            if state in ALARMING:
                word = f" {state.value} ~"
                await until(pilot, partial(says, app, word), what=f"{word} at {at} s")
                line = line_of(app)
                assert "GPU 0" in line
                assert "process 680" in line
                assert "full in about" in line
                assert line.rstrip()[-1] not in "…,:"
                if state is not MemoryState.WATCH:
                    assert "save a checkpoint" in line
    assert [state for state in order if state in ALARMING] == list(ALARMING)


@pytest.mark.parametrize("name", ["load-idle", "steady-60", "frag-a"])
async def test_what_is_full_on_purpose_stays_calm(name: str) -> None:
    recording = load(FOLDER / f"{name}.jsonl.gz")
    app = ConsoleApp(ReplayDesk(recording, clock=Clock(recording, speed=0.0)))
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.is_running and app.screen.query(GpuStrip))
        heights = set()
        for _ in step_by_step(app, until_s=recording.length_s, step_s=2.0):
            await pilot.pause(0)
            heights.add(app.screen.query_one(GpuStrip).size.height)
            assert "full in about" not in shown(app)
        assert max(heights) == 2


class Leak:
    """A process on GPU 0 whose memory the driver says grows: a step with each look at it, however seldom they come."""

    def __init__(self, nvml: NvmlBox, memory: Callable[[int], int]) -> None:
        self.process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        self._nvml = nvml
        self._memory = memory
        self.looks: Callable[[], object] = lambda: 0
        """Gives something else once it was looked at anew; nobody looks until a test says how that is known."""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        base, step, looked = box(1), 0, None
        while not self._stop.wait(0.1):
            before, looked = looked, self.looks()
            if looked == before:
                continue
            held = min(self._memory(step), 139 * GIB)
            self._nvml.write(base.with_(gpus=(busy(base.gpus[0], GpuProcess(self.process.pid, held)),)))
            step += 1

    def close(self) -> None:
        self._stop.set()
        self._thread.join()
        self.process.kill()
        self.process.wait()


@pytest.fixture
def leak(nvml: NvmlBox) -> Iterator[Leak]:
    nvml.write(box(1))
    growing = Leak(nvml, lambda step: int(60 * GIB * min(1.0, step / 5) + 2.4 * GIB * max(0, step - 10)))
    yield growing
    growing.close()


async def test_live_a_leak_is_told_everywhere_a_state_is(leak: Leak, tmp_path: Path) -> None:
    app = console(NO_ENGINE, tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        app.pace_s = 0.2
        leak.looks = lambda: app.host_view and app.host_view.snapshot.taken_at
        await until(pilot, lambda: app.host_view and app.host_view.outlooks, what="memory is watched")
        await until(pilot, lambda: "risk ~" in shown(app) or "critical ~" in shown(app))
        assert f"process {leak.process.pid}" in line_of(app)
        await pilot.press("3")
        row = f"{leak.process.pid} "
        await until(pilot, lambda: any(row in text and "~" in text for text in shown(app).splitlines()))
        app.screen.query_one(GpuStrip).focus()
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, GpuScreen))
        await until(pilot, lambda: "forecast" in shown(app) and "at this pace" in shown(app), what=shown(app))


@pytest.mark.parametrize("driver", [True, False], ids=["driver", "no driver"])
async def test_a_container_that_fills_its_shared_memory_says_so(
    engine_modern: Engine, nvml: NvmlBox, tmp_path: Path, driver: bool
) -> None:
    nvml.write(box(1) if driver else box(0).with_(init=9))
    fill = (
        "i=0; sleep 3; while [ $i -lt 100 ]; do i=$((i+1)); head -c 200000 /dev/zero >> /dev/shm/kept; sleep 0.2; done"
    )
    image = engine_modern.load("small")
    engine_modern.docker(
        "run", "-d", "--name", "loader", "--shm-size", "20m", "--memory", "512m", image, "sh", "-c", fill
    )
    app = console(engine_modern.host, tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        app.pace_s = 0.5
        await until(pilot, lambda: "loader" in shown(app))
        await until(pilot, lambda: any("loader" in text and " shm " in text and "~" in text
                                       for text in shown(app).splitlines()), seconds=60, what=shown(app))  # fmt: skip
        assert "/dev/shm of loader" in line_of(app)
        await pilot.press("enter")
        await until(pilot, lambda: "forecast" in shown(app) and "shm  " in shown(app)
                    and ("--shm-size" in shown(app) or "at this pace" in shown(app)), what=shown(app))  # fmt: skip


class Keeping(Recorder):
    """A recorder that also remembers what the live forecaster said."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.views: list[HostView] = []

    def host_looked(self, view: HostView) -> None:
        super().host_looked(view)
        self.views.append(view)


def test_a_session_that_was_recorded_says_what_was_said_live(engine_modern: Engine, leak: Leak, tmp_path: Path) -> None:
    image = engine_modern.load("small")
    engine_modern.docker("run", "-d", "--name", "idler", "--memory", "256m", image, "sleep", "600")
    path = tmp_path / "session.jsonl.gz"
    desk = Desk(Session(host=engine_modern.host), runs_path=tmp_path / "runs.db")
    recorder = Keeping(desk, path, interval_s=0.2)
    leak.looks = lambda: len(recorder.views)
    recorder.start()
    end = time.monotonic() + 60
    while time.monotonic() < end and not any(
        each.state in ALARMING and each.subject is Subject.GPU for view in recorder.views for each in view.outlooks
    ):
        time.sleep(0.1)
    recorder.close()
    live = [view for view in recorder.views if view.memory is not None]
    assert any(each.subject is Subject.CONTAINER for view in live for each in view.outlooks)
    assert any(each.state in ALARMING for view in live for each in view.outlooks)
    unwatched = len(recorder.views) - len(live)
    again = list(predict(list(memory_samples(path))[unwatched:]))
    assert len(again) >= len(live) - 1  # a look under way at the end is not in the file any more
    for said, view in zip(again, live, strict=False):
        assert [(each.key, each.state) for each in said] == [(each.key, each.state) for each in view.outlooks]
        assert [each.eta_s for each in said] == [pytest.approx(each.eta_s, abs=0.05) for each in view.outlooks]
    replayed = [event for event in load(path).events if event.kind == "sample"]
    assert len(replayed) == len(again) + unwatched
