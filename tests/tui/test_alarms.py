"""Alarms: told once and everywhere they should be, listed, dismissed, marked wrong, and explained after a death."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpuconsole.cli.main import main
from gpuconsole.core.config import Config, config_path
from gpuconsole.core.paths import state_dir
from gpuconsole.gpu.forecast import Forecaster, predict
from gpuconsole.gpu.forecast_model import Assessment, Subject
from gpuconsole.gpu.model import Gpu, GpuSnapshot
from gpuconsole.gpu.state import MemoryState
from gpuconsole.host.model import GpuView, Holder, HostView
from gpuconsole.host.recorded import memory_samples
from gpuconsole.services.alarmdesk import Standing
from gpuconsole.services.alarms import Alarms
from gpuconsole.tui import messages
from gpuconsole.tui.app import ConsoleApp
from gpuconsole.tui.screens.alarms import AlarmsScreen
from gpuconsole.tui.screens.detailing import DetailsScreen
from tests.forecast.truth import FOLDER
from tests.rig.engines import Engine
from tests.rig.nvml import NvmlBox, box
from tests.rig.nvml.gpu import GpuProcess
from tests.rig.nvml.presets import busy
from tests.rig.tmux import Tmux
from tests.tui.console import console, looks_no_more, shown, until
from tests.tui.in_tmux import wait

GIB = 2**30
WHY = "grew 12 GiB in 45 s, 0.5 GiB a step; at this pace full in about 40 s (9 GiB left): save a checkpoint"


def said(state: MemoryState, pid: int = 7, *, gpu: int = 0, eta_s: float | None = 40.0) -> Assessment:
    return Assessment(Subject.PROCESS, f"{gpu}:{pid}", gpu, pid, state, eta_s, WHY)


def look(*outlooks: Assessment, at: float | None = None) -> HostView:
    at = time.time() if at is None else at
    gpus = tuple(
        GpuView(
            Gpu(index=index, uuid=f"GPU-{index}", name="NVIDIA H200", memory_total_bytes=140 * GIB, utilization_pct=98),
            holders=(Holder(pid=7 + index, gpu_index=index, gpu_uuid=f"GPU-{index}", memory_bytes=GIB, user="mei",
                            started_at=50.0),),
        )
        for index in range(8)
    )  # fmt: skip
    return HostView(GpuSnapshot(at, gpus=tuple(view.gpu for view in gpus)), gpus=gpus, outlooks=outlooks)


def hold(nvml: NvmlBox, gib: int) -> None:
    """This process holds so much of GPU 0."""
    whole = box(2)
    nvml.write(whole.with_(gpus=(busy(whole.gpus[0], GpuProcess(os.getpid(), gib * GIB)), whole.gpus[1])))


def bells(app: ConsoleApp, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    rung: list[str] = []
    monkeypatch.setattr(app, "bell", lambda: rung.append("bell"))
    return rung


def toasts(app: ConsoleApp, title: str = "Alarm") -> list[str]:
    return [each.message for each in app._notifications if each.title.startswith(title)]


def quiet_console(tmp_path: Path, **options: Any) -> ConsoleApp:
    """A console whose own looks come seldom; tests end them, so that they are never in the way."""
    config = Config(refresh_s=10.0, **options)
    return console(f"unix://{tmp_path}/none.sock", tmp_path, config=config)


async def hear(app: ConsoleApp, pilot: Any, *outlooks: Assessment, at: float | None = None) -> None:
    app.post_message(messages.HostLooked(look(*outlooks, at=at)))
    await pilot.pause()
    await pilot.pause()


async def test_a_critical_trend_rings_once_stays_and_is_dismissed_for_every_console(
    nvml: NvmlBox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = quiet_console(tmp_path, alarms_bell=True)
    rung = bells(app, monkeypatch)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await looks_no_more(pilot, app)
        await hear(app, pilot, said(MemoryState.RISK))
        assert (rung, toasts(app)) == ([], [])
        for _ in range(3):
            await hear(app, pilot, said(MemoryState.CRITICAL))
        assert rung == ["bell"]
        (words,) = toasts(app)
        assert words.startswith("Process 7 of mei on GPU 0: grew 12 GiB")
        assert "! lists alarms" in words
        nearer = replace(said(MemoryState.CRITICAL), why=WHY.replace("40 s", "20 s"), eta_s=20.0)
        await hear(app, pilot, nearer)
        assert "in about 20 s" in toasts(app)[0], "it says how it is now"
        assert "about 20 s" in shown(app)
        assert rung == ["bell"]
        await pilot.press("exclamation_mark")
        await until(pilot, lambda: isinstance(app.screen, AlarmsScreen))
        await pilot.pause()
        assert toasts(app) == [], "who looks at them needs no toast"
        text = shown(app)
        assert "Process 7 of mei on GPU 0" in text
        assert "told" in text
        assert "a trend" in text
        await pilot.press("d")
        await pilot.pause()
        assert "dismissed" in shown(app)
        await hear(app, pilot, said(MemoryState.CRITICAL))
        assert rung == ["bell"]
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, DetailsScreen))
        await pilot.press("escape", "escape")
    other = quiet_console(tmp_path)
    rung = bells(other, monkeypatch)
    async with other.run_test(size=(80, 24), notifications=True) as pilot:
        await looks_no_more(pilot, other)
        await hear(other, pilot, said(MemoryState.CRITICAL))
        await hear(other, pilot, said(MemoryState.CRITICAL))
        assert (rung, toasts(other)) == ([], [])
        await hear(other, pilot, said(MemoryState.FAILED, eta_s=None))
        assert rung == ["bell"]


@pytest.mark.parametrize(("bell", "trends"), [(True, True), (True, False), (False, True), (False, False)])
async def test_without_bell_it_is_still_told(
    nvml: NvmlBox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bell: bool, trends: bool
) -> None:
    """A trend rings only for who wants it; a failure for everybody but who wants no bell at all."""
    app = quiet_console(tmp_path, bell=bell, alarms_bell=trends, alarms_from="risk")
    rung = bells(app, monkeypatch)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await looks_no_more(pilot, app)
        await hear(app, pilot, said(MemoryState.RISK))
        await hear(app, pilot, said(MemoryState.RISK))
        assert rung == (["bell"] if bell and trends else [])
        assert len(toasts(app, "Alarm: risk, a trend")) == 1
        rung.clear()
        later = time.time() + 60
        for _ in range(2):
            await hear(app, pilot, said(MemoryState.FAILED, eta_s=None), at=later)
        assert rung == (["bell"] if bell else [])


async def test_eight_at_once_are_one_toast_and_one_bell_and_what_is_over_takes_its_toast_along(
    nvml: NvmlBox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = quiet_console(tmp_path, alarms_bell=True)
    rung = bells(app, monkeypatch)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await looks_no_more(pilot, app)
        all_of_them = [said(MemoryState.CRITICAL, 7 + index, gpu=index) for index in range(8)]
        start = time.time()
        await hear(app, pilot, *all_of_them, at=start)
        await hear(app, pilot, *all_of_them, at=start + 1)
        assert rung == ["bell"]
        (words,) = toasts(app)
        assert "And 7 more." in words
        calm = [said(MemoryState.STEADY, 7 + index, gpu=index, eta_s=None) for index in range(8)]
        for second in (10, 40, 75):
            await hear(app, pilot, *calm, at=start + second)
        assert toasts(app) == []
        await pilot.press("exclamation_mark")
        await until(pilot, lambda: isinstance(app.screen, AlarmsScreen))
        await pilot.pause()
        assert shown(app).count(" over ") == 8


async def test_marked_wrong_its_samples_are_saved_and_the_forecast_says_the_same_of_them(
    nvml: NvmlBox, tmp_path: Path
) -> None:
    """What a real leak was seen like, look by look, until it rings."""
    app = quiet_console(tmp_path)
    forecaster = Forecaster()
    async with app.run_test(size=(120, 36), notifications=True) as pilot:
        await looks_no_more(pilot, app)
        for sample in memory_samples(FOLDER / "stairs-oom.jsonl.gz"):
            (read,) = sample.gpus
            gpu = Gpu(
                index=0, uuid="GPU-0", name="NVIDIA H200", memory_total_bytes=read.total_bytes,
                memory_used_bytes=read.used_bytes, memory_free_bytes=read.free_bytes, utilization_pct=98,
            )  # fmt: skip
            snapshot = GpuSnapshot(1e9 + sample.t, gpus=(gpu,))
            app.host_view = HostView(snapshot, (GpuView(gpu),), memory=sample, outlooks=forecaster.feed(sample))
            app.alarming.host_looked(app.host_view)
            if app.alarming.listed() and app.alarming.listed()[0].standing is Standing.RINGS:
                break
        await until(pilot, lambda: toasts(app))
        alarm = app.alarming.listed()[0].alarm
        await pilot.press("exclamation_mark")
        await until(pilot, lambda: isinstance(app.screen, AlarmsScreen))
        await pilot.pause()
        await pilot.press("w")
        await until(pilot, lambda: toasts(app, "Marked as wrong"))
        assert "dismissed" in shown(app)
    (path,) = (state_dir() / "alarms").glob("*.jsonl.gz")
    assert str(path) in toasts(app, "Marked as wrong")[0]
    alarms = Alarms()
    (again,) = [each for said in predict(memory_samples(path)) for each in alarms.looked(said, 0.0)]
    assert (again.subject, again.pid, again.state, again.why) == (alarm.subject, alarm.pid, alarm.state, alarm.why)
    assert main(["forecast", str(path)]) == 0


# --- after a death ---

OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.80 GiB. GPU 0 has a total capacity of 139.80 GiB "
    "of which 1.70 GiB is free. Including non-PyTorch memory, this process has 138.10 GiB memory in use."
)


CUDA = "GPU memory of its GPU 0 was over: it asked for 3.8 GiB"
LIMIT = "It was killed because the container reached its memory limit of 24 MiB"
FAILS = f"echo '{OOM}'; exit "
GROWS = "x=x; while :; do x=$x$x; done"


def begin(engine: Engine, name: str, script: str) -> str:
    """A container that does ``script`` once it is let go; its id."""
    waiting = f"while [ ! -e /tmp/go ]; do sleep 0.1; done; {script}"
    started = engine.docker(
        "run", "-d", "--name", name, "--memory", "24m", engine.load("small"), "sh", "-c", waiting
    )  # fmt: skip
    return started.stdout.strip()


@pytest.mark.parametrize(("script", "why"), [(f"{FAILS}137", CUDA), (GROWS, LIMIT)], ids=["gpu", "limit"])
async def test_a_killed_container_is_told_once_with_its_cause_and_its_details_say_it_too(
    engine_modern: Engine, nvml: NvmlBox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, why: str
) -> None:
    begin(engine_modern, "train", script)
    engine_modern.docker("run", "-d", "--name", "asked", engine_modern.load("small"), "sleep", "1000")
    app = console(engine_modern.host, tmp_path)
    rung = bells(app, monkeypatch)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: len(app.containers or ()) == 2)
        engine_modern.docker("stop", "-t", "0", "asked")
        engine_modern.docker("exec", "train", "touch", "/tmp/go")
        await until(pilot, lambda: toasts(app), what="the alarm")
        (words,) = toasts(app)
        assert words.startswith(f"train has ended: Exit code 137: {why}")
        looked = app.host_view
        await until(pilot, lambda: app.host_view is not looked, what="another look")
        await pilot.pause()
        assert rung == ["bell"], "one that was stopped is no news, and nothing rings twice"
        await pilot.press("exclamation_mark")
        await until(pilot, lambda: isinstance(app.screen, AlarmsScreen))
        await pilot.pause()
        assert "train has ended" in shown(app)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, DetailsScreen))
        await until(pilot, lambda: why[:30] in shown(app))
        assert "what to do" in shown(app)
    late = console(engine_modern.host, tmp_path)
    rung = bells(late, monkeypatch)
    async with late.run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: len(late.containers or ()) == 2)
        screen: Any = late.screen
        ids = {each.container.name: each.container.id for each in late.containers or ()}
        screen.show_container(ids["train"])
        await until(pilot, lambda: screen.thing and screen.thing.container.name == "train")
        await pilot.press("enter")
        await until(pilot, lambda: why[:30] in shown(late), what="what had ended before")
        assert (rung, toasts(late)) == ([], [])


async def test_a_worker_that_is_killed_for_the_limit_is_told_while_its_container_goes_on(
    engine_modern: Engine, nvml: NvmlBox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(engine_modern, "train", f"sh -c '{GROWS}'; sleep 1000")
    app = console(engine_modern.host, tmp_path)
    rung = bells(app, monkeypatch)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: app.containers)
        engine_modern.docker("exec", "train", "touch", "/tmp/go")
        await until(pilot, lambda: toasts(app), what="the alarm")
        assert toasts(app)[0].startswith("train: a process in it was killed because the container reached its memory")
        assert rung == ["bell"]
        assert app.containers is not None
        assert app.containers[0].container.running


async def test_a_process_that_fails_and_the_end_of_its_container_are_one_death(
    engine_modern: Engine, nvml: NvmlBox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ident = begin(engine_modern, "train", f"{FAILS}1")
    app = console(engine_modern.host, tmp_path, config=Config(refresh_s=10.0, alarms_bell=True))
    rung = bells(app, monkeypatch)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: app.containers)
        view = look(said(MemoryState.CRITICAL))
        inside = replace(view.gpus[0].holders[0], container_id=ident, container_name="train")
        view = replace(view, gpus=(replace(view.gpus[0], holders=(inside,)), *view.gpus[1:]))
        app.post_message(messages.HostLooked(view))
        await until(pilot, lambda: toasts(app))
        assert toasts(app)[0].startswith("Process 7 of train on GPU 0: ")
        gone = look(said(MemoryState.FAILED, eta_s=None), at=view.snapshot.taken_at + 6)
        app.post_message(messages.HostLooked(replace(gone, gpus=())))
        await until(pilot, lambda: len(rung) == 2)
        engine_modern.docker("exec", "train", "touch", "/tmp/go")
        await until(pilot, lambda: toasts(app) and "GPU memory of its GPU 0 was over" in toasts(app)[0])
        assert rung == ["bell", "bell"], "why it died is told where its death was told"
        assert len(toasts(app)) == 1


# --- beyond the screen ---


def test_a_leak_rings_through_tmux_where_another_window_is_shown(nvml: NvmlBox, tmux: Tmux, tmp_path: Path) -> None:
    """From the driver to the terminal: the memory of a real process list grows, and who looks elsewhere hears it."""
    ran = tmp_path / "ran"
    path = config_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    command = ["sh", "-c", f'printf "%s|%s\\n" "$0" "$GPUCONSOLE_ALARM_STATE" >> {ran}']
    path.write_text(f'refresh = 0.5\n[alarms]\nfrom = "risk"\nbell = true\ncommand = {json.dumps(command)}\n')
    tmux.run("set-option", "-g", "status", "on")
    tmux.run("set-option", "-g", "display-time", "5000")
    environment = {**os.environ, **nvml.env(), "DOCKER_HOST": f"unix://{tmp_path}/none.sock", "TERM": "tmux-256color"}
    for name in ("TMUX", "TMUX_PANE"):
        environment.pop(name, None)
    hold(nvml, 1)
    pane = tmux.session([sys.executable, "-P", "-m", "gpuconsole"], env=environment, folder=Path.cwd())
    client = tmux.attach(pane)
    pane.wait_for("[Containers]")
    tmux.run("new-window", "-n", "elsewhere", "sleep 1000")
    client.wait_for("elsewhere")
    for held in (20, 40, 60, 60, 60, *range(64, 140, 4)):
        hold(nvml, held)
        time.sleep(0.5)
        pane.wait_for(f" {held}.0/")  # however slowly it looks, it sees every step
        if "lists alarms" in pane.capture():
            break
    client.wait_for("gpuconsole: Process ")
    client.wait_for("\x07")
    assert tmux.run("list-windows", "-F", "#{window_bell_flag}").split() == ["1", "0"]
    wait(ran.exists, what="the user's command")
    text, state = ran.read_text().splitlines()[0].rsplit("|", 1)
    assert text.startswith(f"Process {os.getpid()}")
    assert state in ("risk", "critical")


async def test_a_command_that_fails_is_told_once_and_what_cannot_be_saved_is_told(
    nvml: NvmlBox, tmp_path: Path
) -> None:
    app = quiet_console(tmp_path, alarm_command=("/no/such/program",))
    trouble = "That did not work"
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await looks_no_more(pilot, app)
        start = time.time()
        await hear(app, pilot, at=start)
        for second in range(1, 4):
            more = [said(MemoryState.CRITICAL, 7 + index, gpu=index) for index in range(second)]
            await hear(app, pilot, *more, at=start + 10 * second)
        await until(pilot, lambda: toasts(app, trouble))
        await pilot.press("exclamation_mark")
        await until(pilot, lambda: isinstance(app.screen, AlarmsScreen))
        await until(pilot, lambda: not tellers())
        (words,) = toasts(app, trouble)
        assert "The alarm command /no/such/program cannot be run" in words
        await pilot.press("w")
        await until(pilot, lambda: len(toasts(app, trouble)) == 2)
        assert "nothing is saved" in toasts(app, trouble)[1]


def tellers() -> list[str]:
    """Threads that still tell an alarm."""
    return [each.name for each in threading.enumerate() if each.name == "alarm-teller"]
