"""The launch form on real engines: from defaults to a container, everything typed, everything that goes wrong."""

from __future__ import annotations

import functools
import os
from pathlib import Path

import pytest
from textual import events
from textual.widgets import Button

from gpuconsole.services.runs import RunKind, RunState
from gpuconsole.tui.screens.launch import LaunchScreen
from gpuconsole.tui.screens.main import MainScreen
from gpuconsole.tui.screens.question import QuestionScreen
from gpuconsole.tui.widgets.completer import Choices
from gpuconsole.tui.widgets.gpupicker import GpuPicker
from gpuconsole.tui.widgets.lines import Lines
from gpuconsole.tui.widgets.strip import GpuStrip
from gpuconsole.tui.widgets.tick import Tick
from tests.rig.engines import Engine
from tests.rig.fresh import fresh_image
from tests.rig.nvml import NvmlBox, box
from tests.rig.nvml.gpu import GpuProcess
from tests.rig.nvml.presets import busy
from tests.rig.registry import Registry
from tests.rig.tmux import Tmux
from tests.tui.console import console, shown, until
from tests.tui.formseen import (
    below,
    form,
    inspect,
    names,
    on_main,
    opened,
    problem,
    weighed,
    with_images,
    without_joining,
)

pytestmark = [pytest.mark.engine, pytest.mark.usefixtures("nvml", "project")]
GIB = 2**30
_STANDSTILL = 2_000
"""Bytes a second: nothing that is pulled comes to its end, however long one looks."""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder the console is started in."""
    folder = tmp_path / "my project"
    (folder / "data").mkdir(parents=True)
    monkeypatch.chdir(folder)
    return folder


async def test_enter_on_the_defaults_launches_and_joins(
    engine_modern: Engine, tmp_path: Path, project: Path, tmux: Tmux, monkeypatch: pytest.MonkeyPatch
) -> None:
    image, _ = with_images(engine_modern)
    tmux.session("sleep 1000")
    for name, value in tmux.environment().items():
        monkeypatch.setenv(name, value)
    app = console(engine_modern.host, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        app.screen.query_one(GpuStrip).focus()
        fields = await opened(pilot, app)
        assert fields.value("image") == image
        assert isinstance(app.focused, Button)
        line = below(app)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, MainScreen), what="back on the main screen")
        await until(pilot, lambda: app.containers)
        (container,) = [view.container for view in app.containers or ()]
        main = app.screen
        assert isinstance(main, MainScreen)
        await until(pilot, lambda: main.grid.cursor == container.id, what="the cursor on the new container")
        await until(pilot, lambda: main.grid.has_focus, what="the focus, which was on the GPUs")
        await until(pilot, lambda: container.name in tmux.windows(), what="a window with its terminal")
        assert f"--name {container.name} " in line
    found = inspect(engine_modern, container.name)
    assert found["Image"] == engine_modern.images()[image]
    assert found["Config"]["Tty"]
    assert found["Config"]["WorkingDir"] == "/workspace"
    assert [(m["Source"], m["Destination"]) for m in found["Mounts"]] == [(str(project), "/workspace")]
    assert found["Config"]["Labels"]["gpuconsole.gpus"].count("GPU-") == 1
    assert app.desk.runs.all()[0].kind is RunKind.LAUNCH
    assert app.desk.runs.all()[0].state is RunState.OK


@pytest.mark.parametrize("size", [(80, 24), (120, 36), (200, 50)])
async def test_it_stands_on_one_screen(engine_modern: Engine, tmp_path: Path, size: tuple[int, int]) -> None:
    with_images(engine_modern)
    app = console(engine_modern.host, tmp_path)
    async with app.run_test(size=size) as pilot:
        await opened(pilot, app)
        text = shown(app)
        for word in ("Image", "GPUs", "Name", "Volumes", "Ports", "Env", "Shm size", "User", "Workdir", "Command",
                     "Launch", "attach", "terminal", "remove at end", "when free", "Profile", "Kind", "docker run",
                     "GiB free", "F5"):  # fmt: skip
            assert word in text, word
        assert "torch 2.9.0, CUDA 12.8" in text
        assert all(len(line.rstrip()) <= size[0] for line in text.splitlines())
        seen = []
        for _ in range(20):
            assert app.focused is not None
            seen.append(app.focused.id)
            await pilot.press("tab")
        assert seen[:19] == [
            "launch", "join", "terminal", "remove", "free", "field-profile", "field-name", "field-image", "field-gpus",
            "picker", "field-kind", "field-command", "field-volume-0", "field-volume-1", "field-ports",
            "field-environment", "field-shm", "field-user", "field-workdir",
        ]  # fmt: skip


async def test_everything_typed_reaches_the_container(engine_modern: Engine, tmp_path: Path, project: Path) -> None:
    _, image = with_images(engine_modern)
    app = console(engine_modern.host, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        fields = await opened(pilot, app)
        fields.go_to("image")
        await pilot.press("end", "ctrl+u", *"small")
        await until(pilot, lambda: form(app).query_one(Choices).is_open)
        await pilot.press("tab")
        assert fields.value("image") == image
        for key, text in {
            "gpus": "2", "name": "train", "ports": "8888 9000:80/udp", "environment": "A=1 'B=two words'",
            "shm": "128m", "user": "1000:1000", "workdir": "/data", "command": "sh -c 'sleep 1000'",
            "memory": "256m", "ulimits": "nofile=1024", "labels": "team=vision",
        }.items():  # fmt: skip
            fields.set(key, text)
        form(app).query_one("#field-volume-1").focus()
        await pilot.press(*"./data:/data:ro")
        assert fields.typed()["volumes"] == f"{project}:/workspace\n./data:/data:ro"
        without_joining(app)
        form(app).query_one("#terminal", Tick).decide(True)
        form(app).query_one("#remove", Tick).decide(True)
        await weighed(pilot, app)
        assert "two words" in " ".join(below(app).split())
        await pilot.press("f5")
        await until(pilot, lambda: isinstance(app.screen, MainScreen) or form(app)._failure)
        assert isinstance(app.screen, MainScreen), below(app)
    found = inspect(engine_modern, "train")
    config, limits = found["Config"], found["HostConfig"]
    assert {(m["Destination"], m["RW"]) for m in found["Mounts"]} == {("/workspace", True), ("/data", False)}
    assert {"A=1", "B=two words"} <= set(config["Env"])
    assert (config["User"], config["WorkingDir"], config["Cmd"]) == ("1000:1000", "/data", ["sh", "-c", "sleep 1000"])
    assert config["Tty"]
    assert config["Labels"]["team"] == "vision"
    assert config["Labels"]["gpuconsole.gpus"].count("GPU-") == 2
    assert (limits["ShmSize"], limits["Memory"], limits["AutoRemove"]) == (128 * 2**20, 256 * 2**20, True)
    assert limits["PortBindings"]["8888/tcp"][0]["HostIp"] == "127.0.0.1"
    assert limits["PortBindings"]["80/udp"][0]["HostPort"] == "9000"


async def test_what_is_wrong_stands_under_its_field_and_nothing_is_made(engine_modern: Engine, tmp_path: Path) -> None:
    image, _ = with_images(engine_modern)
    engine_modern.docker("run", "-d", "--name", "taken", "-p", "127.0.0.1:18765:80", image, "sleep", "1000")
    app = console(engine_modern.host, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        fields = await opened(pilot, app)
        wrong = {"gpus": "device=7", "ports": "99999", "shm": "much", "user": "a b", "command": "echo 'a"}
        for key, text in wrong.items():
            fields.set(key, text)
        await weighed(pilot, app)
        assert "65535" in problem(app, "ports")
        assert "Shm size" in problem(app, "shm")
        assert "User" in problem(app, "shm")
        assert "quote" in problem(app, "command")
        await pilot.press("f5")
        assert app.focused is not None
        assert app.focused.id == "field-command", "the first that must be corrected"
        fields.set("command", "")
        await pilot.press("f5")
        await until(pilot, lambda: app.focused and app.focused.id == "field-ports")
        assert [fields.value(key) for key in ("ports", "shm", "user")] == ["99999", "much", "a b"]
        for key, text in {"ports": "18765:80", "shm": "", "user": "", "name": "taken"}.items():
            fields.set(key, text)
        await weighed(pilot, app)
        assert "GPU 7 is not in this machine" in problem(app, "gpus")
        fields.set("gpus", "auto")
        await weighed(pilot, app)
        assert "taken by a container" in problem(app, "name")
        assert "Publish " in problem(app, "ports"), "a free one is named"
        await pilot.press("f5")
        await until(pilot, lambda: "Correct what is marked" in below(app), what="why it was not launched")
        assert app.focused is not None
        assert app.focused.id in ("field-name", "field-ports")
        assert fields.value("name") == "taken"
    assert names(engine_modern) == ["taken"]


async def test_gpus_are_ticked_by_what_is_seen(engine_modern: Engine, nvml: NvmlBox, tmp_path: Path) -> None:
    whole = box(2)
    holder = busy(whole.gpus[0], GpuProcess(os.getpid(), 90 * GIB))
    nvml.write(whole.with_(gpus=(holder, whole.gpus[1])))
    with_images(engine_modern)
    app = console(engine_modern.host, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.host_view and app.host_view.gpus and app.host_view.gpus[0].holders)
        fields = await opened(pilot, app)
        picker = form(app).query_one(GpuPicker)
        assert picker.picked == {"1"}, "the free one"
        assert f":{os.getpid()}" in shown(app)
        picker.focus()
        await pilot.press("space")
        await until(pilot, lambda: picker.picked == {"0", "1"})
        assert fields.value("gpus") == "device=0,1"
        await pilot.press("down", "space")
        await until(pilot, lambda: picker.picked == {"0"})
        await weighed(pilot, app)
        assert "is busy" in below(app)
        await pilot.press("n")
        await until(pilot, lambda: picker.picked == set())
        assert fields.value("gpus") == "none"
        await pilot.press("a")
        await until(pilot, lambda: picker.picked == {"0", "1"})
        await pilot.press("f")
        await until(pilot, lambda: picker.picked == {"1"})
        nvml.write(whole.with_(gpus=(whole.gpus[0], busy(whole.gpus[1], GpuProcess(os.getpid(), 90 * GIB)))))
        await until(pilot, lambda: picker.picked == {"0"}, what="another one is the freest")
        assert app.host_view is not None
        uuid = app.host_view.gpus[0].gpu.uuid
        assert uuid
        await until(pilot, lambda: uuid in "".join(below(app).split()), what="the line follows")
        nvml.write(whole.with_(gpus=(whole.gpus[0].with_(lost=True), whole.gpus[1])))
        await until(pilot, lambda: "cannot be given" in shown(app))


async def test_paths_and_images_are_completed(engine_modern: Engine, tmp_path: Path, project: Path) -> None:
    image, small = with_images(engine_modern)
    (project / "data" / "deep").mkdir()
    (project / "d\x1b[2Jangerous").mkdir()
    app = console(engine_modern.host, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        fields = await opened(pilot, app)
        choices = form(app).query_one(Choices)
        fields.go_to("image")
        await pilot.press("down")
        await until(pilot, lambda: choices.is_open)
        assert "torch 2.9.0, CUDA 12.8" in shown(app)
        while choices.choice != small:
            await pilot.press("down")
        await pilot.press("enter")
        assert fields.value("image") == small
        assert not choices.is_open
        await pilot.press("down", "escape")
        assert isinstance(app.screen, LaunchScreen), "esc closed the list only"
        form(app).query_one("#field-volume-1").focus()
        await pilot.press(*"./d")
        await until(pilot, lambda: choices.is_open)
        assert choices.choice == "./data/"
        assert "angerous" not in shown(app)
        await pilot.press("tab")
        assert form(app).query_one("#field-volume-1").value == "./data/"  # type: ignore[attr-defined]
        await pilot.press("down")
        await until(pilot, lambda: choices.choice == "./data/deep/")
        await pilot.press("tab", "tab")
        assert app.focused is not None
        assert app.focused.id == "field-volume-2"
        fields.set("image", image)


async def test_a_pull_is_seen_stopped_and_done_again(engine_modern: Engine, registry: Registry, tmp_path: Path) -> None:
    with_images(engine_modern)
    reference = registry.over_the_line(fresh_image(registry, megabytes=(3,)))
    app = console(engine_modern.host, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        fields = await opened(pilot, app)
        fields.set("image", reference)
        fields.set("name", "pulled")
        without_joining(app)
        await weighed(pilot, app)
        assert "will be pulled" in below(app)
        registry.line.limit(bytes_per_second=200_000)
        await pilot.press("f5")
        await until(pilot, lambda: "%" in below(app) and "Downloading" in below(app), what="layers and a share")
        registry.line.limit(bytes_per_second=_STANDSTILL)
        await pilot.press("f5")
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, QuestionScreen))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, LaunchScreen))
        assert form(app)._run is not None, "Cancel has the focus"
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, QuestionScreen))
        await pilot.press("y")
        await until(pilot, lambda: isinstance(app.screen, LaunchScreen) and form(app)._run is None, what="stopped")
        assert "nothing was launched" in below(app)
        assert (fields.value("image"), fields.value("name")) == (reference, "pulled")
        assert [run.state for run in app.desk.runs.all()] == [RunState.CANCELLED]
        assert names(engine_modern) == []
        registry.line.restore()
        await pilot.press("ctrl+s")
        await until(pilot, lambda: isinstance(app.screen, MainScreen), what="launched")
    assert names(engine_modern) == ["pulled"]


async def test_a_launch_goes_on_behind_and_leaving_stops_one(
    engine_modern: Engine, registry: Registry, tmp_path: Path
) -> None:
    with_images(engine_modern)
    reference = registry.over_the_line(fresh_image(registry, megabytes=(3,)))
    app = console(engine_modern.host, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        fields = await opened(pilot, app)
        fields.set("image", reference)
        fields.set("name", "behind")
        registry.line.limit(bytes_per_second=300_000)
        await pilot.press("f5")
        await until(pilot, lambda: "Downloading" in below(app))
        registry.line.limit(bytes_per_second=_STANDSTILL)
        await pilot.press("f6")
        await until(pilot, lambda: isinstance(app.screen, MainScreen))
        assert app.desk.runs.all()[0].state is RunState.RUNNING
        registry.line.restore()
        await until(pilot, lambda: app.desk.runs.all()[0].ended)
        await until(pilot, lambda: any(view.container.name == "behind" for view in app.containers or ()))
        engine_modern.docker("rm", "--force", "behind")
        engine_modern.docker("rmi", "--force", reference)
        fields = await opened(pilot, app)
        fields.set("image", reference)
        fields.set("name", "left")
        registry.line.limit(bytes_per_second=_STANDSTILL)
        await pilot.press("f5")
        await until(pilot, lambda: form(app)._run is not None)
    assert names(engine_modern) == []


async def test_a_failure_is_told_in_the_form_and_nothing_typed_is_lost(
    engine_modern: Engine, registry: Registry, tmp_path: Path
) -> None:
    image, _ = with_images(engine_modern)
    app = console(engine_modern.host, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        fields = await opened(pilot, app)
        missing = f"{registry.address}/no/such:1"
        fields.set("image", missing)
        fields.set("environment", "A=1")
        await pilot.press("f5")
        await until(pilot, lambda: form(app)._run is None and form(app)._failure, what="why")
        assert missing in below(app)
        assert (fields.value("image"), fields.value("environment")) == (missing, "A=1")
        fields.set("image", image)
        fields.set("command", "sh -c 'echo [b]out; exit 3'")
        fields.set("name", "short")
        await pilot.press("f5")
        await until(pilot, lambda: "exit code 3" in below(app))
        assert "[b]out" in below(app)
        assert fields.value("command") == "sh -c 'echo [b]out; exit 3'"
        assert app.desk.runs.all()[0].state is RunState.FAILED
    assert names(engine_modern) == ["short"]


async def test_the_folder_keeps_what_was_launched_and_no_secret(
    engine_modern: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, small = with_images(engine_modern)
    for first in (True, False):
        app = console(engine_modern.host, tmp_path)
        async with app.run_test(size=(80, 24)) as pilot:
            fields = await opened(pilot, app)
            if first:
                fields.set("image", small)
                fields.set("environment", "API_TOKEN=s3cr3t-value EPOCHS=3")
                fields.set("gpus", "none")
                fields.set("name", "once")
                fields.set("memory", "256m")
                form(app).query_one("#remove", Tick).decide(True)
                without_joining(app)
                await pilot.press("f5")
                await until(pilot, functools.partial(on_main, app), what="launched")
                continue
            assert fields.value("image") == small
            assert fields.value("environment") == "EPOCHS=3"
            assert (fields.value("gpus"), fields.value("name"), fields.value("memory")) == ("none", "", "256m")
            assert form(app).query_one("#remove", Tick).value
            assert form(app).has_class("-more"), "what is set is seen"
            assert "API_TOKEN: its value was not kept" in problem(app, "environment"), "and it is in nobody's way"
            fields.set("environment", "EPOCHS=3 API_TOKEN=other-value")
            await weighed(pilot, app)
            assert "not kept" not in problem(app, "environment")
    for path in tmp_path.glob("runs.db*"):
        assert b"s3cr3t-value" not in path.read_bytes()


async def test_what_was_typed_is_there_again_after_leaving(engine_modern: Engine, tmp_path: Path) -> None:
    with_images(engine_modern)
    app = console(engine_modern.host, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        fields = await opened(pilot, app)
        fields.set("environment", "A=1")
        fields.go_to("name")
        await pilot.press(*"quick", "enter")
        assert app.focused is not None
        assert app.focused.id == "field-image", "enter goes on"
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, MainScreen))
        fields = await opened(pilot, app)
        assert (fields.value("environment"), fields.value("name")) == ("A=1", "quick")


async def test_what_is_pasted_is_harmless(engine_modern: Engine, tmp_path: Path) -> None:
    with_images(engine_modern)
    app = console(engine_modern.host, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        fields = await opened(pilot, app)
        fields.go_to("name")
        assert app.focused is not None
        app.focused.post_message(events.Paste("[red]a\x1b]0;pwned\x07\x9b2J\u202eb"))
        await until(pilot, lambda: fields.value("name") == "[red]ab")
        await weighed(pilot, app)
        assert "cannot be a name" in problem(app, "name")
        assert "\x1b" not in shown(app)


async def test_with_readonly_nothing_can_be_launched(engine_modern: Engine, tmp_path: Path) -> None:
    with_images(engine_modern)
    app = console(engine_modern.host, tmp_path, readonly=True)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.images)
        await pilot.press("n")
        assert isinstance(app.screen, MainScreen)
        await app.push_screen(LaunchScreen(None))
        await until(pilot, lambda: isinstance(app.screen, MainScreen))
    assert names(engine_modern) == []


async def test_an_engine_that_is_away_is_said_and_comes_back(engine_modern: Engine, tmp_path: Path) -> None:
    with_images(engine_modern)
    app = console(engine_modern.host, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        fields = await opened(pilot, app)
        fields.set("environment", "A=1")
        engine_modern.stop()
        await until(pilot, lambda: "The last line that could be" in below(app), what="the engine is away")
        await pilot.press("f5")
        await until(pilot, lambda: form(app)._run is None and form(app)._failure, what="why it was not launched")
        assert fields.value("environment") == "A=1"
        engine_modern.start()
        await until(pilot, lambda: "docker run" in below(app) and "last line" not in below(app), what="it is back")


async def test_the_toolkits_way_on_an_old_engine(engine_old: Engine, tmp_path: Path) -> None:
    with_images(engine_old)
    app = console(engine_old.host, tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        fields = await opened(pilot, app)
        assert "NVIDIA_VISIBLE_DEVICES=GPU-" in below(app)
        fields.set("name", "old")
        without_joining(app)
        await pilot.press("f5")
        await until(pilot, lambda: isinstance(app.screen, MainScreen), what="launched")
    assert inspect(engine_old, "old")["HostConfig"]["Runtime"] == "nvidia"


async def test_the_folder_is_gone(
    engine_modern: Engine, tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_images(engine_modern)
    monkeypatch.chdir(project / "data")
    app = console(engine_modern.host, tmp_path)
    (project / "data").rmdir()
    async with app.run_test(size=(80, 24)) as pilot:
        await opened(pilot, app)
        assert "is gone" in below(app)
        await pilot.press("f5")
        await until(pilot, lambda: form(app)._failure, what="why")


async def test_the_last_line_that_could_be_stays_while_a_field_is_wrong(engine_modern: Engine, tmp_path: Path) -> None:
    with_images(engine_modern)
    app = console(engine_modern.host, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        fields = await opened(pilot, app)
        fields.set("name", "first")
        await weighed(pilot, app)
        assert "--name first " in below(app)
        assert "last line" not in below(app)
        fields.set("shm", "much")
        await weighed(pilot, app)
        assert "--name first " in below(app)
        assert "The last line that could be" in below(app)
        lines = form(app).query_one("#below", Lines).lines
        assert {cell.tone for line in lines for cell in line if "docker run" in cell.text} == {"dim"}
        await pilot.press("f5")
        await until(pilot, lambda: form(app)._run is None and "--name first " in below(app), what="it stays")
        fields.set("shm", "1g")
        fields.set("name", "second")
        await weighed(pilot, app)
        assert "--name second " in below(app)
        assert "last line" not in below(app)
        assert "--name first " not in below(app)


async def test_what_is_too_long_for_the_room_below_scrolls(engine_modern: Engine, tmp_path: Path) -> None:
    with_images(engine_modern)
    app = console(engine_modern.host, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        fields = await opened(pilot, app)
        fields.set("environment", " ".join(f"VARIABLE_{number}=1" for number in range(60)))
        await weighed(pilot, app)
        assert "VARIABLE_59=1" in below(app)
        assert "--env VARIABLE_59=1" not in shown(app)
        for _ in range(6):
            await pilot.press("pagedown")
            await pilot.pause()
        assert "--env VARIABLE_59=1" in shown(app)
        fields.go_to("command")
        await pilot.press(*["pageup"] * 6)
        await pilot.pause()
        assert "docker run" in shown(app)
