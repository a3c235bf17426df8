"""A console recorded on real parts and played: the same is seen, by nobody's name, and nothing can be done."""

from __future__ import annotations

import gzip
import os
import socket
import time
from pathlib import Path

import pytest

from gpuconsole.core.errors import Refused
from gpuconsole.services.desk import Desk
from gpuconsole.services.recorder import Recorder
from gpuconsole.services.replay import Clock
from gpuconsole.services.replaydesk import ReplayDesk
from gpuconsole.services.replayfile import Recording, load
from gpuconsole.services.runs import RunState
from gpuconsole.services.session import Session
from gpuconsole.tui.app import ConsoleApp
from gpuconsole.tui.screens.details import ContainerDetails
from gpuconsole.tui.screens.logs import LogScreen
from gpuconsole.tui.widgets.logview import LogView
from tests.rig.engines import Engine
from tests.rig.nvml import GpuProcess, NvmlBox, box, busy
from tests.tui.console import shown, until

GIB = 2**30
SCRIPT = "i=0; while [ $i -lt 80 ]; do i=$((i+1)); echo step $i of $HOSTNAME; done; sleep 1000"


def record(engine: Engine, nvml: NvmlBox, folder: Path) -> Path:
    """Some seconds of a console with a container that works and one that has ended."""
    image = engine.load("small")
    engine.docker("run", "-d", "--name", "train", "-p", "127.0.0.1::8888", "-e", "HF_TOKEN=hf_secretsecretsecret1",
                  "--hostname", socket.gethostname(), image, "sh", "-c", SCRIPT)  # fmt: skip
    engine.docker("run", "--name", "eval", image, "sh", "-c", "exit 3", check=False)
    pid = int(engine.docker("inspect", "-f", "{{.State.Pid}}", "train").stdout)
    one = box(1)
    nvml.write(one.with_(gpus=(busy(one.gpus[0], GpuProcess(pid, 90 * GIB)),)))
    path = folder / "console.jsonl.gz"
    desk = Desk(Session(host=engine.host), runs_path=folder / "runs.db")
    recorder = Recorder(desk, path, interval_s=0.5)
    recorder.start()
    try:
        end = time.monotonic() + 60
        while time.monotonic() < end and not (
            any(view.usage and view.usage.cpu_pct is not None for view in recorder.seen)
            and recorder.lines_of(next(view.container.id for view in recorder.seen if view.container.name == "train"))
        ):
            time.sleep(0.1)
    finally:
        recorder.close()
    assert recorder.failure is None
    return path


@pytest.fixture
def recording(engine_modern: Engine, nvml: NvmlBox, tmp_path: Path) -> Recording:
    path = record(engine_modern, nvml, tmp_path)
    text = gzip.decompress(path.read_bytes()).decode()
    assert "hf_secret" not in text
    assert f'"{socket.gethostname()}"' not in text
    assert f" {socket.gethostname()}" not in text
    nvml.write(box(0))  # what is played does not look at this machine
    engine_modern.docker("rm", "-f", "train", "eval")
    return load(path)


async def test_what_was_seen_is_seen_again_and_nothing_can_be_done(recording: Recording) -> None:
    desk = ReplayDesk(recording, clock=Clock(recording, speed=1000.0))
    app = ConsoleApp(desk)
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        await until(pilot, lambda: app.host_view and app.host_view.gpus and app.containers and app.images)
        await until(pilot, lambda: "90.0" in shown(app))
        text = shown(app)
        assert "gpu-box · recording" in text
        assert "[Containers 2]" in text
        assert "exit 3" in text
        assert "s old" not in text, "the figures are those of the time that is shown"
        app.launched(next(view.container.id for view in app.containers or () if view.container.name == "train"))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, ContainerDetails))
        await until(pilot, lambda: "ssh -N -L" in shown(app))
        assert "me@gpu-box" in shown(app)
        await pilot.press("l")
        await until(pilot, lambda: isinstance(app.screen, LogScreen) and "step 80 of gpu-box" in shown(app))
        view = app.screen.query_one(LogView)
        await until(pilot, lambda: view.vertical_scrollbar.position == view.max_scroll_y > 0)
        await pilot.press("escape", "escape")
        await pilot.press("c")
        await until(pilot, lambda: app.runs)
        assert app.runs[0].state is RunState.CANCELLED
        assert "recording" in app.runs[0].headline
        await pilot.press("s")
        await until(pilot, lambda: "This is a recording" in shown(app))
    assert desk.player.closed


async def test_every_action_on_a_recording_is_refused_in_the_same_words(recording: Recording) -> None:
    desk = ReplayDesk(recording, clock=Clock(recording, speed=0.0))
    app = ConsoleApp(desk)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: desk.started)
        desk.go_to(recording.length_s)
        await until(pilot, lambda: app.containers and app.host_view and app.host_view.gpus)
    container = next(view.container for view in app.containers or () if view.container.name == "train")
    assert app.host_view is not None
    holder = app.host_view.gpus[0].holders[0]
    engine = desk.session.engine
    for act in (
        lambda: desk.stop_container(container),
        lambda: desk.start_container(container),
        lambda: desk.restart_container(container),
        lambda: desk.pause_container(container),
        lambda: desk.remove_container(container),
        lambda: desk.end_process(holder),
        desk.address,
        lambda: engine.pull("busybox"),
        lambda: engine.execute(container.id, ["true"]),
        lambda: engine.attach(container.id, size=None, detach_keys=""),
    ):
        with pytest.raises(Refused, match="This is a recording"):
            act()
    assert os.getpid() != holder.pid
    assert desk.owner(container) is None
    assert engine.container("train").id == container.id
    assert [each.name for each in engine.containers(everything=False)] == ["train"]
    lines = b"".join(data for _, data in engine.logs(container.id, tail=3)).decode().splitlines()
    assert lines == [f"step {number} of gpu-box" for number in (78, 79, 80)]
