"""Ring when done, ring when free: what counts as an end, that it rings once, and that it is heard through tmux."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpuconsole.core.config import Config
from gpuconsole.engine.model import Container, ContainerState
from gpuconsole.gpu.model import Gpu, GpuSnapshot, GpuStatus
from gpuconsole.host.model import GpuView, Holder, HostView
from gpuconsole.services.containers import ContainerView
from gpuconsole.services.ringing import Ringing, key_of
from gpuconsole.services.runs import Run, RunKind, RunState
from gpuconsole.tui.app import ConsoleApp
from gpuconsole.tui.screens.detailing import DetailsScreen
from gpuconsole.tui.screens.details import open_details
from gpuconsole.tui.widgets.strip import GpuStrip
from tests.rig.engines import Engine
from tests.rig.nvml import NvmlBox, box
from tests.rig.nvml.gpu import GpuProcess
from tests.rig.nvml.presets import busy
from tests.rig.tmux import Tmux
from tests.tui.console import console, shown, until

GIB = 2**30


def container(**changes: Any) -> ContainerView:
    given: dict[str, Any] = {"id": "ab" * 32, "name": "train", "image": "pytorch:2", "image_id": "sha256:1",
             "state": ContainerState.RUNNING, "started_at": 100.0} | changes  # fmt: skip
    return ContainerView(container=Container(**given))


HOLDER = Holder(pid=7, gpu_index=0, gpu_uuid="GPU-0", memory_bytes=GIB, started_at=50.0)


def gpu(*, held: bool = True, **changes: Any) -> GpuView:
    given: dict[str, Any] = {"index": 0, "uuid": "GPU-0", "name": "NVIDIA H200", "memory_total_bytes": 140 * GIB,
             "memory_used_bytes": 90 * GIB if held else 0, "utilization_pct": 98 if held else 0} | changes  # fmt: skip
    return GpuView(Gpu(**given), holders=(HOLDER,) if held else ())


def host(*views: GpuView, at: float = 1.0, problem: str | None = None) -> HostView:
    return HostView(GpuSnapshot(at, gpus=tuple(view.gpu for view in views), problem=problem), gpus=views)


# --- what is an end ---


@pytest.mark.parametrize(
    ("later", "said"),
    [
        (container(state=ContainerState.EXITED, exit_code=0), "train has ended: exit code 0: it ended well."),
        (container(state=ContainerState.EXITED, exit_code=137, oom_killed=True), "more memory than its limit"),
        (container(state=ContainerState.RESTARTING), "train has ended."),
        (container(started_at=200.0), "was started again"),
        (None, "was removed"),
    ],
)
def test_a_container_s_end_rings_once(later: ContainerView | None, said: str) -> None:
    ringing = Ringing()
    assert "rings when train ends" in ringing.toggle(container())
    assert ringing.containers_listed([container(name="renamed")]) == ()
    assert ringing.containers_listed([container(state=ContainerState.PAUSED)]) == ()
    views = [later] if later else []
    (words,) = ringing.containers_listed(views)
    assert said in words
    assert ringing.containers_listed(views) == ()
    assert ringing.marked == frozenset()


def test_asked_again_it_does_not_ring() -> None:
    ringing = Ringing()
    ringing.toggle(container())
    assert ringing.marked == {key_of(container())}
    assert "not ring" in ringing.toggle(container())
    assert ringing.containers_listed([]) == ()


def test_what_is_over_cannot_be_waited_for() -> None:
    ringing = Ringing()
    assert ringing.toggle(container(state=ContainerState.EXITED)) == "train does not run."
    assert ringing.toggle(gpu(held=False)) == "GPU 0 is free already."
    assert "is over" in ringing.toggle(Run("r", RunKind.CHECK, "train", "ab", 0.0, state=RunState.OK))
    assert ringing.marked == frozenset()


def test_a_run_rings_when_it_is_over() -> None:
    ringing = Ringing()
    run = Run("r", RunKind.CHECK, "train", "ab", 0.0)
    ringing.toggle(run)
    assert ringing.runs_changed([replace(run, progress=0.5)]) == ()
    words = ringing.runs_changed([replace(run, state=RunState.WARN, headline="Fit, with 1 warning.")])
    assert words == ("The check of train is over: warn. Fit, with 1 warning.",)


def test_a_process_rings_when_it_lets_go_and_not_while_nobody_can_tell() -> None:
    ringing = Ringing()
    ringing.toggle(HOLDER)
    for unclear in (
        host(gpu()),
        host(problem="the driver does not answer"),
        host(gpu(held=False, status=GpuStatus.LOST, problem="lost")),
        host(gpu(held=False, processes=None)),
    ):
        assert ringing.host_looked(unclear) == ()
    assert ringing.host_looked(host(gpu(held=False))) == ("Process 7 has let go of GPU 0.",)
    ringing.toggle(HOLDER)
    assert "not there any more" in ringing.host_looked(host())[0]


def test_another_process_with_the_same_number_is_another_one() -> None:
    ringing = Ringing()
    ringing.toggle(HOLDER)
    other = replace(gpu(), holders=(replace(HOLDER, started_at=900.0),))
    assert ringing.host_looked(host(other)) == ("Process 7 has let go of GPU 0.",)


def test_a_gpu_rings_when_it_stays_free_and_a_lost_one_is_not_free() -> None:
    ringing = Ringing()
    ringing.toggle(gpu())
    lost = gpu(held=False, status=GpuStatus.LOST, problem="lost", memory_used_bytes=None)
    for view in (gpu(), gpu(held=False), gpu(), lost, lost, gpu(held=False)):
        at = len(ringing.marked) + id(view)
        assert ringing.host_looked(host(view, at=at)) == ()
        assert ringing.host_looked(host(view, at=at)) == (), "the same look twice counts once"
    assert ringing.host_looked(host(problem="the driver does not answer")) == ()
    assert ringing.host_looked(host(gpu(held=False), at=2.0)) == ("GPU 0 is free.",)
    assert ringing.host_looked(host(gpu(held=False), at=3.0)) == ()


# --- on the screen ---


def bells(app: ConsoleApp, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    rung: list[str] = []
    monkeypatch.setattr(app, "bell", lambda: rung.append("bell"))
    return rung


def notices(app: ConsoleApp) -> list[str]:
    return [each.message for each in app._notifications]


@pytest.mark.parametrize("bell", [True, False])
async def test_a_container_that_ends_is_told_and_rung_once(
    engine_modern: Engine, nvml: NvmlBox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bell: bool
) -> None:
    for name in ("train", "other"):
        engine_modern.docker("run", "-d", "--name", name, engine_modern.load("small"), "sleep", "1000")
    app = console(engine_modern.host, tmp_path, config=Config(bell=bell))
    rung = bells(app, monkeypatch)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: len(app.containers or ()) == 2)
        await pilot.pause()
        name = next(view.container.name for view in app.containers or () if view.container.id == app.screen.grid.cursor)  # type: ignore[attr-defined]
        await pilot.press("r")
        await pilot.pause()
        row = next(line for line in shown(app).splitlines() if line.startswith(name))
        assert f"{app.glyphs.ring} ring" in row
        assert app.screen.thing.container.name == name, "the cursor stays"  # type: ignore[attr-defined]
        looked = app.host_view
        await until(pilot, lambda: app.host_view is not looked, what="another look")
        await pilot.pause()
        assert f"{app.glyphs.ring} ring" in shown(app), "it survives what comes"
        engine_modern.docker("kill", name)
        await until(pilot, lambda: any(f"{name} has ended" in each for each in notices(app)))
        await pilot.pause()
        assert rung == (["bell"] if bell else [])
        assert f"{app.glyphs.ring} ring" not in shown(app)
        engine_modern.docker("rm", name)
        await until(pilot, lambda: len(app.containers or ()) == 1)
        assert sum("has ended" in each for each in notices(app)) == 1


async def test_a_gpu_and_its_process_ring(nvml: NvmlBox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = box(2)
    nvml.write(whole.with_(gpus=(busy(whole.gpus[0], GpuProcess(os.getpid(), 90 * GIB)), whole.gpus[1])))
    app = console(f"unix://{tmp_path}/none.sock", tmp_path, config=Config(refresh_s=0.5))
    rung = bells(app, monkeypatch)
    word = f"{app.glyphs.ring} ring"
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: app.host_view and app.host_view.gpus[0].holders)
        strip = app.screen.query_one(GpuStrip)
        strip.focus()
        await pilot.press("r")
        await pilot.pause()
        assert word in next(line for line in shown(app).splitlines() if line.startswith(" 0 H200"))
        await pilot.press("down", "r")
        assert "GPU 1 is free already." in notices(app)
        await pilot.press("3", "r")
        await pilot.pause()
        assert word in next(line for line in shown(app).splitlines() if line.strip().startswith(str(os.getpid())))
        assert app.host_view is not None
        open_details(app, app.host_view.gpus[0])
        await until(pilot, lambda: isinstance(app.screen, DetailsScreen))
        await pilot.pause()
        assert word in shown(app).splitlines()[0]
        await pilot.press("r")
        await until(pilot, lambda: word not in shown(app).splitlines()[0])
        await pilot.press("r", "escape")
        nvml.write(whole.with_(gpus=(whole.gpus[0].with_(lost=True), whole.gpus[1])))
        await until(pilot, lambda: app.host_view and app.host_view.gpus[0].gpu.status is GpuStatus.LOST)
        assert rung == []
        assert len(app.marks) == 2
        nvml.write(whole)
        await until(pilot, lambda: "GPU 0 is free." in notices(app))
        assert any("has let go of GPU 0" in each for each in notices(app))
        assert app.marks == frozenset()
        assert len(rung) == 2


async def test_sixteen_gpus_show_their_marks_too(nvml: NvmlBox, tmp_path: Path) -> None:
    whole = box(16, "h200")
    nvml.write(whole.with_(gpus=tuple(busy(each, GpuProcess(os.getpid(), GIB)) for each in whole.gpus)))
    app = console(f"unix://{tmp_path}/none.sock", tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.host_view and app.host_view.gpus[3].holders)
        app.screen.query_one(GpuStrip).focus()
        await pilot.press("right", "right", "right", "r")
        await pilot.pause()
        assert shown(app).count(f"{app.glyphs.ring} ring") == 1


# --- through a real tmux ---


@pytest.mark.parametrize("silent", [False, True])
def test_it_is_heard_and_read_where_tmux_shows_another_window(
    engine_modern: Engine, nvml: NvmlBox, tmux: Tmux, tmp_path: Path, silent: bool
) -> None:
    engine_modern.docker("run", "-d", "--name", "100-done", engine_modern.load("small"),
                         "sleep", "1000")  # fmt: skip
    tmux.run("set-option", "-g", "status", "on")
    tmux.run("set-option", "-g", "display-time", "5000")
    environment = {**os.environ, **engine_modern.env(), "XDG_STATE_HOME": str(tmp_path), "TERM": "tmux-256color"}
    for name in ("TMUX", "TMUX_PANE"):
        environment.pop(name, None)
    command = [sys.executable, "-P", "-m", "gpuconsole", *(["--no-bell"] if silent else [])]
    pane = tmux.session(command, env=environment, folder=Path.cwd())
    client = tmux.attach(pane)
    pane.wait_for("100-done")
    pane.keys("r")
    pane.wait_for("ring")
    tmux.run("new-window", "-n", "elsewhere", "sleep 1000")
    client.wait_for("elsewhere")
    before = client.text.count("\x07")
    engine_modern.docker("kill", "100-done")
    client.wait_for("gpuconsole: 100-done has ended: exit code 137")
    if silent:
        assert client.text.count("\x07") == before
    else:
        client.wait_for("\x07")
    pane.wait_for("100-done has ended")


def test_signs_that_tmux_would_read_as_a_format_are_shown_as_they_are(
    tmux: Tmux, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gpuconsole.services import tmux as ours

    tmux.run("set-option", "-g", "status", "on")
    tmux.run("set-option", "-g", "display-time", "5000")
    pane = tmux.session("sleep 1000")
    for name, value in {**tmux.environment(), "TMUX_PANE": pane.id}.items():
        monkeypatch.setenv(name, value)
    ours.tell("nobody looks, and nothing happens")
    client = tmux.attach(pane)
    client.wait_for("[0]")
    ours.tell("a #{session_name} %H #(date) \x1b]0;x\x07 end")
    client.wait_for("a #{session_name} %H #(date) end")
    assert "a #{session_name}" in client.text


def test_outside_tmux_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from gpuconsole.services import tmux as ours

    monkeypatch.setattr(ours, "_tmux", lambda *arguments: pytest.fail("tmux was called"))
    ours.tell("words")
    assert not ours.inside()
