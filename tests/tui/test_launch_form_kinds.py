"""Every kind of work from the launch form, on a real engine; all that is rarely needed; waiting for a free GPU."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from gpuconsole.services.runs import RunState
from gpuconsole.tui.app import ConsoleApp
from gpuconsole.tui.screens.launch import LaunchScreen
from gpuconsole.tui.screens.launchaccess import AccessScreen
from gpuconsole.tui.screens.question import QuestionScreen
from gpuconsole.tui.widgets.gpupicker import GpuPicker
from gpuconsole.tui.widgets.lines import Lines
from gpuconsole.tui.widgets.tick import Tick
from tests.rig.engines import Engine
from tests.rig.nvml import NvmlBox, box
from tests.rig.nvml.gpu import GpuProcess
from tests.rig.nvml.presets import busy
from tests.tui.console import console, shown, until
from tests.tui.formseen import below, form, inspect, names, on_main, opened, with_images, without_joining

pytestmark = [pytest.mark.engine, pytest.mark.usefixtures("nvml")]
GIB = 2**30
STAND_IN = "#!/bin/sh\necho $0 $*\nexec sleep 1000\n"
"""Does as a program of PyTorch's images that the small one lacks."""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder the console is started in, with what stands in for the programs."""
    folder = tmp_path / "my project"
    folder.mkdir()
    for name in ("jupyter", "tensorboard", "torchrun", "python"):
        (folder / name).write_text(STAND_IN)
        (folder / name).chmod(0o755)
    monkeypatch.chdir(folder)
    return folder


def programs() -> str:
    return "\n".join(f"./{name}:/bin/{name}:ro" for name in ("jupyter", "tensorboard", "torchrun", "python"))


async def choose_kind(pilot: Pilot[Any], app: ConsoleApp, kind: str) -> None:
    """Write a kind of work into its field, as a person does."""
    form(app).fields.go_to("kind")
    await pilot.press("end", "ctrl+u", *kind, "escape" if form(app).query_one("#choices").display else "end")
    await pilot.pause()


async def launched(pilot: Pilot[Any], app: ConsoleApp) -> None:
    await pilot.press("f5")
    await until(pilot, lambda: on_main(app) or isinstance(app.screen, AccessScreen) or form(app)._failure)
    assert not isinstance(app.screen, LaunchScreen), below(app)
    if isinstance(app.screen, AccessScreen):
        await until(pilot, lambda: told(app), what="where to point a browser")


def told(app: ConsoleApp) -> str:
    shown = [line for each in app.screen.query("#told").results(Lines) for line in each.lines]  # none at first
    return "\n".join("".join(cell.text for cell in line) for line in shown)


async def test_each_kind_runs_what_it_is_and_shows_only_its_own_options(
    engine_modern: Engine, tmp_path: Path, project: Path
) -> None:
    _, small = with_images(engine_modern)
    app = console(engine_modern.host, tmp_path)
    expected = {
        "shell": ["sh", "-c", "command -v bash >/dev/null 2>&1 && exec bash; exec sh"],
        "script": ["python", "-u", "prepare.py", "two words"],
        "torchrun": ["torchrun", "--nnodes=1", "--rdzv-backend=c10d", "--rdzv-endpoint=localhost:29500",
                     "--rdzv-id=seven", "--nproc-per-node=3", "train.py", "--lr", "0.1"],
        "tensorboard": ["tensorboard", "--logdir=/runs", "--host=0.0.0.0", "--port=6006"],
    }  # fmt: skip
    written = {
        "shell": {},
        "script": {"command": "prepare.py 'two words'"},
        "torchrun": {"command": "train.py --lr 0.1", "processes": "3", "rendezvous": "localhost:29500",
                     "rendezvous_id": "seven"},
        "tensorboard": {"logdir": "/runs"},
    }  # fmt: skip
    async with app.run_test(size=(80, 24)) as pilot:
        for kind, fields_of in written.items():
            fields = await opened(pilot, app)
            fields.fill({"image": small, "gpus": "auto", "name": f"a-{kind}", "volumes": programs()})
            await choose_kind(pilot, app, kind)
            seen = [name for name in ("Log folder", "Processes") if name in shown(app)]
            assert seen == {"torchrun": ["Processes"], "tensorboard": ["Log folder"]}.get(kind, [])
            for key, text in fields_of.items():
                fields.set(key, text)
            without_joining(app)
            await launched(pilot, app)
            if kind == "tensorboard":
                assert "http://127.0.0.1:6006/" in told(app)
                assert "token" not in told(app)
                await pilot.press("enter")
            await until(pilot, lambda: on_main(app))
            assert inspect(engine_modern, f"a-{kind}")["Config"]["Cmd"] == expected[kind]
    assert inspect(engine_modern, "a-tensorboard")["Config"]["Labels"]["gpuconsole.gpus"] == "none"
    assert inspect(engine_modern, "a-shell")["Config"]["Tty"]


async def test_what_belongs_to_another_kind_is_put_away_and_comes_back(
    engine_modern: Engine, tmp_path: Path, project: Path
) -> None:
    with_images(engine_modern)
    app = console(engine_modern.host, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        fields = await opened(pilot, app)
        await choose_kind(pilot, app, "tensorboard")
        assert fields.value("gpus") == "none", "curves are drawn without a GPU"
        assert form(app).query_one(GpuPicker).picked == set()
        fields.set("logdir", "/runs")
        await choose_kind(pilot, app, "jupyter")
        assert (fields.value("logdir"), fields.value("gpus")) == ("", "auto")
        await until(pilot, lambda: "jupyter lab" in below(app))
        await choose_kind(pilot, app, "tensorboard")
        assert (fields.value("logdir"), fields.value("gpus")) == ("/runs", "none")
        fields.go_to("name")
        await pilot.pause()
        fields.set("kind", "script")
        await until(pilot, lambda: "is for --kind tensorboard" in shown(app))
        assert "Log folder" in shown(app), "what is written is never hidden"


async def test_jupyters_token_and_the_line_to_it_are_shown_once(
    engine_modern: Engine, tmp_path: Path, project: Path
) -> None:
    _, small = with_images(engine_modern)
    app = console(engine_modern.host, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        fields = await opened(pilot, app)
        fields.fill({"image": small, "gpus": "none", "name": "notes", "volumes": programs(), "kind": "jupyter"})
        await launched(pilot, app)
        found = re.search(r"http://127\.0\.0\.1:(\d+)/lab\?token=(\S+)", told(app))
        assert found, told(app)
        port, token = found.groups()
        assert re.search(rf"ssh -N -L {port}:127\.0\.0\.1:{port} ", told(app))
        (kept,) = re.findall(r"\S+jupyter_token", "".join(line.strip() for line in told(app).splitlines()))
        assert token in shown(app)
        await pilot.press("y")
        assert app.clipboard == found[0]
        await pilot.press("t")
        assert app.clipboard.startswith("ssh -N -L")
        await pilot.press("enter")
        await until(pilot, lambda: on_main(app))
        await until(pilot, lambda: app.containers)
        assert token not in shown(app)
        assert all(token not in run.headline + (run.document or "") for run in app.desk.runs.all())
        assert all(token not in note.message for note in app._notifications)
    assert token not in str(inspect(engine_modern, "notes"))
    assert kept.endswith("/jupyter_token")
    for path in tmp_path.glob("runs.db*"):
        assert token.encode() not in path.read_bytes()


async def test_what_is_rarely_needed_reaches_the_container(
    engine_modern: Engine, tmp_path: Path, project: Path
) -> None:
    _, small = with_images(engine_modern)
    (project / "netrc").write_text("hush")
    (project / "vars.env").write_text("FROM_FILE=1\n")
    (project / "c d").mkdir()
    app = console(engine_modern.host, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        fields = await opened(pilot, app)
        fields.fill({
            "image": small, "gpus": "none", "name": "rare", "command": "sleep 1000", "user": "0:0",
            "secrets": "netrc=./netrc", "env_files": "vars.env", "tmpfs": "/scratch:size=8m,mode=700 /more",
            "devices": "/dev/null:/dev/nothing:r", "group_add": "44 45", "extra_hosts": "up:10.0.0.1",
            "read_only": "yes", "ulimits": "nofile=1024 core=0", "hostname": "box", "ipc": "shareable",
            "restart": "on-failure:2", "init": "no", "cpus": "0.5", "labels": "team=vision 'note=two words'",
        })  # fmt: skip
        fields.set("mounts", "type=bind,source=./c d,target=/cd,readonly\ntype=volume,source=vol,target=/vol")
        without_joining(app)
        await until(pilot, lambda: "--mount" in below(app))
        assert "hush" not in shown(app) + below(app)
        await launched(pilot, app)
    found = inspect(engine_modern, "rare")
    config, host = found["Config"], found["HostConfig"]
    assert {(m["Destination"], m["RW"]) for m in found["Mounts"]} == {
        ("/cd", False), ("/vol", True), ("/run/secrets/netrc", False),
    }  # fmt: skip
    assert host["Tmpfs"] == {"/scratch": "size=8m,mode=700", "/more": ""}
    assert [(d["PathOnHost"], d["PathInContainer"]) for d in host["Devices"]] == [("/dev/null", "/dev/nothing")]
    assert (host["GroupAdd"], host["ExtraHosts"], host["ReadonlyRootfs"]) == (["44", "45"], ["up:10.0.0.1"], True)
    assert {(u["Name"], u["Soft"]) for u in host["Ulimits"]} == {("nofile", 1024), ("core", 0)}
    assert (config["Hostname"], host["IpcMode"], host.get("Init")) == ("box", "shareable", None)
    assert host["RestartPolicy"] == {"Name": "on-failure", "MaximumRetryCount": 2}
    assert "FROM_FILE=1" in config["Env"]
    assert (config["Labels"]["team"], config["Labels"]["note"]) == ("vision", "two words")


async def test_a_launch_waits_for_a_free_gpu_and_can_be_stopped_or_left_to_go_on(
    engine_modern: Engine, nvml: NvmlBox, tmp_path: Path, project: Path
) -> None:
    whole = box(2)
    taken = tuple(busy(gpu, GpuProcess(os.getpid(), 90 * GIB)) for gpu in whole.gpus)
    nvml.write(whole.with_(gpus=taken))
    _, small = with_images(engine_modern)
    app = console(engine_modern.host, tmp_path)

    def waits(words: str) -> Callable[[], bool]:
        return lambda: words in app.desk.runs.all()[0].headline

    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.host_view and app.host_view.gpus and app.host_view.gpus[0].holders)
        fields = await opened(pilot, app)
        fields.fill({"image": small, "gpus": "1", "name": "patient", "command": "sleep 1000"})
        form(app).query_one("#free", Tick).decide(True)
        await pilot.press("f5")
        await until(pilot, lambda: "Waiting for a free GPU: GPU" in below(app), what="what it waits for")
        assert "GiB used" in below(app)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, QuestionScreen))
        await pilot.press("y")
        await until(pilot, lambda: isinstance(app.screen, LaunchScreen) and form(app)._run is None, what="stopped")
        assert "nothing was launched" in below(app)
        assert names(engine_modern) == []
        await pilot.press("f5")
        await until(pilot, lambda: "Waiting for a free GPU" in below(app))
        await pilot.press("f6")
        await until(pilot, lambda: on_main(app), what="it goes on behind")
        await until(pilot, waits("waiting for a free GPU"))
        assert app.desk.runs.all()[0].state is RunState.RUNNING
        await pilot.press("q")
        await until(pilot, lambda: isinstance(app.screen, QuestionScreen), what="leaving would end it")
        assert "launch of patient" in shown(app)
        await pilot.press("escape")
        nvml.write(whole.with_(gpus=(taken[0], whole.gpus[1])))
        await until(pilot, lambda: app.desk.runs.all()[0].ended, what="launched once a GPU was free")
        assert waits("patient was started")()
        assert app.host_view is not None
        uuid = app.host_view.gpus[1].gpu.uuid
    assert inspect(engine_modern, "patient")["Config"]["Labels"]["gpuconsole.gpus"] == uuid
