"""Profiles in the launch form, on a real engine: they fill it, are written over, asked about, remembered and saved."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Button, Input

from gpuconsole.services.launchrecords import LaunchRecords
from gpuconsole.tui.app import ConsoleApp
from gpuconsole.tui.screens.launch import LaunchScreen
from gpuconsole.tui.screens.launchfields import LaunchFields
from gpuconsole.tui.screens.launchsaving import SaveProfile
from gpuconsole.tui.screens.main import MainScreen
from gpuconsole.tui.screens.question import QuestionScreen
from gpuconsole.tui.widgets.completer import Choices, CompletingInput
from gpuconsole.tui.widgets.gpupicker import GpuPicker
from gpuconsole.tui.widgets.lines import Lines
from gpuconsole.tui.widgets.tick import Tick
from tests.cli.engines import gpuconsole
from tests.rig.client import EngineClient
from tests.rig.engines import Engine
from tests.tui.console import console, shown, until
from tests.tui.formseen import (
    below,
    form,
    inspect,
    names,
    on_main,
    opened,
    problem,
    with_images,
    without_joining,
)

pytestmark = [pytest.mark.engine, pytest.mark.usefixtures("nvml")]
SECRET = "hf_0123456789abcdefghij"
PROFILES = """
[profiles.base]
volumes = [".:/workspace", "./data:/data:ro"]
workdir = "/workspace"
command = ["sleep", "1000"]

[profiles.train]
description = "Two GPUs"
extends = "base"
image = "{image}"
gpus = 2
env = {{ MODE = "fast", HF_TOKEN = "{secret}", TEXT = "two\\nlines" }}
tmpfs = ["/scratch:size=8m"]
tty = false

[profiles.train-more]
extends = "train"

[profiles.broken]
image = 3
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a project, in which the console is started."""
    folder = tmp_path / "my project"
    (folder / "data").mkdir(parents=True)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def small(engine_modern: Engine, project: Path) -> str:
    """The image of the profiles, which are those of the project."""
    _, image = with_images(engine_modern)
    (project / "gpuconsole.toml").write_text(PROFILES.format(image=image, secret=SECRET))
    return image


def bare(app: ConsoleApp) -> str:
    """What a question says, without the frame and the blanks at which its lines break."""
    return "".join(shown(app).replace("│", " ").split())


def told_to_be_gone(app: ConsoleApp) -> bool:
    return isinstance(app.screen, LaunchScreen) and "train is there no more" in problem(app, "profile")


def refused(app: ConsoleApp) -> bool:
    return "Correct what is marked" in below(app)


async def named(pilot: Pilot[Any], app: ConsoleApp, name: str) -> LaunchFields:
    """Type the name of a profile, leave its field, and see it fill the others."""
    fields = form(app).fields
    fields.go_to("profile")
    await pilot.press("end", "ctrl+u", *name, "enter", "tab")
    await until(pilot, lambda: form(app).profile_is_read and fields.value("profile") == name, what="it is read")
    return fields


async def launched(pilot: Pilot[Any], app: ConsoleApp) -> None:
    without_joining(app)
    await pilot.press("f5")
    await until(pilot, lambda: on_main(app) or form(app)._failure, what="launched")
    assert on_main(app), below(app)


def made(engine: EngineClient) -> list[dict[str, Any]]:
    """What docker says of each container, without what is each one's own."""
    found = []
    for name in names(engine):
        whole = inspect(engine, name)
        config, host = whole["Config"], whole["HostConfig"]
        config.pop("Hostname")
        config["Labels"] = {k: v for k, v in config["Labels"].items() if k != "gpuconsole.launch"}
        found.append({"Config": config, "HostConfig": host, "Mounts": sorted(map(str, whole["Mounts"]))})
    return found


async def test_a_profile_is_chosen_by_its_name_and_fills_the_fields(
    engine_modern: Engine, tmp_path: Path, project: Path, small: str
) -> None:
    app = console(engine_modern.host, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        fields = await opened(pilot, app)
        choices = form(app).query_one(Choices)
        fields.go_to("profile")
        await pilot.press("down")
        await until(pilot, lambda: choices.is_open, what="the profiles there are")
        assert "Two GPUs, gpuconsole-test/small:1" in shown(app)
        assert "1 mistake: line " in shown(app)
        await pilot.press("down", "enter")
        await until(pilot, lambda: fields.value("image") == small, what="its fields")
        line = form(app).query_one("#field-profile", CompletingInput)
        line.action_take()  # as when the list is shut while the key is on its way
        assert line.value == "train"
        assert fields.typed() == {
            "profile": "train", "image": small, "gpus": "2", "command": "sleep 1000",
            "volumes": f"{project}:/workspace\n{project}/data:/data:ro", "workdir": "/workspace",
            "environment": "MODE=fast 'HF_TOKEN=********' 'TEXT=two lines'", "tmpfs": "/scratch:size=8m",
        }  # fmt: skip
        assert form(app).query_one(GpuPicker).picked == {"0", "1"}
        assert form(app).has_class("-more"), "what is set is seen"
        await until(pilot, lambda: "--tmpfs /scratch:size=8m" in below(app))
        assert SECRET not in shown(app) + below(app)
        fields.set("gpus", "none")
        fields.set("command", "sleep 5")
        fields.go_to("profile")
        await pilot.press("end", "ctrl+u", "tab")
        assert (fields.value("image"), fields.value("command")) == (small, "sleep 5"), "without a name the fields stay"
        await named(pilot, app, "train")
        assert (fields.value("gpus"), fields.value("command")) == ("2", "sleep 1000"), "named anew it fills them anew"
        await named(pilot, app, "base")
        assert (fields.value("image"), fields.value("gpus")) == (small, ""), "it names no image"
        await named(pilot, app, "train")
        await launched(pilot, app)
    (container,) = names(engine_modern)
    found = inspect(engine_modern, container)
    assert {"MODE=fast", f"HF_TOKEN={SECRET}", "TEXT=two\nlines"} <= set(found["Config"]["Env"])
    assert not found["Config"]["Tty"]
    (record,) = LaunchRecords().all()
    assert record.profile == "train"
    assert "from the profile train" in app.desk.runs.all()[0].headline
    for path in tmp_path.glob("runs.db*"):
        assert SECRET.encode() not in path.read_bytes()


async def test_untouched_it_is_what_the_command_line_launches_and_is_read_anew_the_next_time(
    engine_modern: Engine, tmp_path: Path, project: Path, small: str
) -> None:
    text = (project / "gpuconsole.toml").read_text().replace("gpus = 2", 'gpus = "none"')
    (project / "gpuconsole.toml").write_text(text)
    for first in (True, False):
        app = console(engine_modern.host, tmp_path)
        async with app.run_test(size=(80, 24)) as pilot:
            fields = await opened(pilot, app)
            if first:
                await named(pilot, app, "train")
                await launched(pilot, app)
                done = gpuconsole(engine_modern, "launch", "train")
                assert done.code == 0, done.talk
                by_form, by_command = made(engine_modern)
                assert by_form == by_command
                (project / "gpuconsole.toml").write_text(text.replace("MODE =", "NEW ="))
                continue
            assert (fields.value("profile"), fields.value("gpus")) == ("train", "none")
            assert fields.value("environment").startswith("NEW=fast"), "the file has changed since"
            (project / "gpuconsole.toml").unlink()
            await pilot.press("escape", "n")
            await until(pilot, functools.partial(told_to_be_gone, app), what="that it is gone")
            fields = form(app).fields
            left = [fields.value(key) for key in ("profile", "image", "command", "tmpfs")]
            assert left == ["", small, "sleep 1000", "/scratch:size=8m"], "the rest is as it was launched"
            assert fields.value("environment").startswith("MODE=fast")
            assert "HF_TOKEN: its value was not kept" in problem(app, "environment")
            await launched(pilot, app)
            assert len(names(engine_modern)) == 3, "it is in nobody's way"


async def test_what_is_written_over_it_counts_and_is_remembered(
    engine_modern: Engine, tmp_path: Path, small: str
) -> None:
    for first in (True, False):
        app = console(engine_modern.host, tmp_path)
        async with app.run_test(size=(120, 36)) as pilot:
            fields = await opened(pilot, app)
            if first:
                fields = await named(pilot, app, "train")
                fields.set("gpus", "none")
                fields.set("environment", fields.value("environment").replace("MODE=fast", "MODE=slow"))
                fields.set("name", "changed")
                form(app).query_one("#remove", Tick).decide(True)
                await launched(pilot, app)
                continue
            assert (fields.value("profile"), fields.value("gpus"), fields.value("name")) == ("train", "none", "")
            assert form(app).query_one("#remove", Tick).value
            assert fields.value("environment") == "MODE=slow 'TEXT=two lines' 'HF_TOKEN=********'"
            assert "not kept" not in problem(app, "environment"), "the profile has it"
    found = inspect(engine_modern, "changed")
    assert {"MODE=slow", f"HF_TOKEN={SECRET}", "TEXT=two\nlines"} <= set(found["Config"]["Env"])
    assert found["HostConfig"]["AutoRemove"]
    assert json.loads(found["Config"]["Labels"]["gpuconsole.spec"])["gpus"] == "none"


async def test_its_name_and_f5_are_enough_and_a_wrong_name_launches_nothing(
    engine_modern: Engine, tmp_path: Path, small: str
) -> None:
    app = console(engine_modern.host, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        fields = await opened(pilot, app)
        fields.go_to("profile")
        await pilot.press(*"trian", "enter")
        await until(pilot, lambda: "There is no profile trian" in problem(app, "profile"), what="which one is near")
        await pilot.press("f5")
        await until(pilot, lambda: app.focused and app.focused.id == "field-profile", what="the field to correct")
        await pilot.press("end", "ctrl+u", *"broken", "enter", "f5")
        await until(pilot, lambda: "broken.image" in problem(app, "profile") + below(app), what="its mistake")
        assert names(engine_modern) == []
        fields.go_to("profile")
        without_joining(app)
        await pilot.press("end", "ctrl+u", *"train", "f5")
        await until(pilot, lambda: on_main(app), what="launched")
    (container,) = names(engine_modern)
    assert inspect(engine_modern, container)["Config"]["Cmd"] == ["sleep", "1000"]


async def test_what_a_projects_profile_takes_from_outside_is_asked_once_and_not_what_was_taken_out(
    engine_modern: Engine, tmp_path: Path, project: Path, small: str
) -> None:
    for name in ("outside", "more"):
        (tmp_path / name).mkdir()
    (project / "gpuconsole.toml").write_text(
        f'[profiles.out]\nimage = "{small}"\ngpus = "none"\ncommand = "sleep 1000"\n'
        'volumes = [".:/w", "../outside:/o", "../more:/m"]\n'
        f'[profiles.bad]\nimage = "{small}"\ngpus = "none"\ncommand = "sleep 1000"\nvolumes = ["/etc:/e:ro"]\n'
    )
    app = console(engine_modern.host, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        fields = await opened(pilot, app)
        await named(pilot, app, "out")
        without_joining(app)
        await pilot.press("f5")
        await until(pilot, lambda: isinstance(app.screen, QuestionScreen), what="the question")
        assert f"mounts{tmp_path}/outside,tobewritten".replace(" ", "") in bare(app)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, LaunchScreen))
        assert names(engine_modern) == [], "Cancel has the focus"
        fields.set("volumes", f"{project}:/w\n{tmp_path}/outside:/o")
        await pilot.press("f5")
        await until(pilot, lambda: isinstance(app.screen, QuestionScreen), what="the question")
        assert f"{tmp_path}/outside" in bare(app)
        assert f"{tmp_path}/more" not in bare(app), "it was taken out"
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, LaunchScreen))
        fields.go_to("profile")
        await pilot.press("end", "ctrl+u")
        await named(pilot, app, "out")
        await pilot.press("f5")
        await until(pilot, lambda: isinstance(app.screen, QuestionScreen), what="the question")
        await pilot.press("y")
        await until(pilot, lambda: on_main(app), what="launched")
        await opened(pilot, app)
        without_joining(app)
        await pilot.press("f5")
        await until(pilot, lambda: on_main(app), what="launched without a question")
        fields = await opened(pilot, app)
        await named(pilot, app, "bad")
        await pilot.press("f5")
        await until(pilot, lambda: "mounts /etc" in below(app), what="why it is refused")
        assert "--force outside-project" in below(app)
    assert len(names(engine_modern)) == 2


async def test_what_it_takes_is_asked_also_once_its_name_is_gone_and_the_form_was_left(
    engine_modern: Engine, tmp_path: Path, project: Path, small: str
) -> None:
    (tmp_path / "outside").mkdir()
    (project / "gpuconsole.toml").write_text(
        f'[profiles.out]\nimage = "{small}"\ngpus = "none"\ncommand = "sleep 1000"\n'
        f'volumes = ["../outside:/o"]\nenv = {{ HF_TOKEN = "{SECRET}" }}\n'
    )
    app = console(engine_modern.host, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        fields = await opened(pilot, app)
        await named(pilot, app, "out")
        fields.go_to("profile")
        await pilot.press("end", "ctrl+u", "escape")
        await until(pilot, lambda: on_main(app), what="left")
        fields = await opened(pilot, app)
        assert fields.value("profile") == ""
        assert "outside:/o" in fields.value("volumes")
        without_joining(app)
        await pilot.press("f5")
        await until(pilot, lambda: isinstance(app.screen, QuestionScreen), what="the question")
        await pilot.press("y")
        await until(pilot, lambda: on_main(app), what="launched")
    (name,) = names(engine_modern)
    assert f"HF_TOKEN={SECRET}" in inspect(engine_modern, name)["Config"]["Env"], "what is hidden is meant all the same"


# --- saved ---


async def saving(pilot: Pilot[Any], app: ConsoleApp, name: str) -> None:
    """Ask for a profile of this name to be saved."""
    await pilot.press("f3")
    await until(pilot, lambda: isinstance(app.screen, SaveProfile), what="its name is asked")
    app.screen.query_one("#profile", Input).value = name
    await pilot.press("enter")


def said(app: ConsoleApp) -> str:
    return " ".join("".join(cell.text for cell in line) for line in app.screen.query_one("#wrong", Lines).lines)


async def test_what_the_form_says_is_saved_and_launched_by_the_command_line(
    engine_modern: Engine, tmp_path: Path, project: Path, small: str
) -> None:
    (project / "netrc").write_text("x")
    app = console(engine_modern.host, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        fields = await opened(pilot, app)
        for key, text in {
            "image": small, "gpus": "none", "command": "sh -c 'sleep 1000'", "environment": "'A=two words' EPOCHS=3",
            "secrets": "netrc=./netrc", "tmpfs": "/scratch:size=8m", "labels": "team=vision", "ports": "8888",
            "volumes": "./data:/data:ro", "workdir": "/data", "shm": "128m", "init": "no", "read_only": "yes",
        }.items():  # fmt: skip
            fields.set(key, text)
        await saving(pilot, app, "kept")
        await until(pilot, lambda: isinstance(app.screen, LaunchScreen), what="saved")
        assert [note.message for note in app._notifications] == ["Saved in ./gpuconsole.toml: gpuconsole launch kept."]
        await launched(pilot, app)
    text = (project / "gpuconsole.toml").read_text()
    assert text.startswith(PROFILES.format(image=small, secret=SECRET)), "the rest of the file stays"
    assert '"./data:/data:ro"' in text
    engine_modern.docker("stop", "-t", "0", *names(engine_modern))
    done = gpuconsole(engine_modern, "launch", "kept")
    assert done.code == 0, done.talk
    by_command, by_form = made(engine_modern)
    assert by_form == by_command


async def test_a_name_that_is_there_is_asked_about_and_what_cannot_be_is_said_there(
    engine_modern: Engine, tmp_path: Path, project: Path, small: str
) -> None:
    app = console(engine_modern.host, tmp_path)
    before = (project / "gpuconsole.toml").read_text()
    async with app.run_test(size=(80, 24)) as pilot:
        fields = await opened(pilot, app)
        fields.set("environment", f"HF_TOKEN={SECRET}")
        await saving(pilot, app, "no:name")
        await until(pilot, lambda: "cannot be a profile's name" in said(app), what="why")
        await pilot.press("end", "ctrl+u", *"train", "enter")
        await until(pilot, lambda: "has a profile train already" in said(app), what="it is there")
        assert isinstance(app.focused, Button)
        assert (app.focused.id, str(app.focused.label)) == ("yes", "Replace")
        await pilot.press("escape")
        assert (project / "gpuconsole.toml").read_text() == before
        await saving(pilot, app, "train")
        await until(pilot, lambda: "already" in said(app))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, LaunchScreen), what="replaced")
        (note,) = app._notifications
        assert "HF_TOKEN holds a secret: it is taken from the shell" in note.message
        text = (project / "gpuconsole.toml").read_text()
        assert 'HF_TOKEN = "${HF_TOKEN}"' in text
        assert "[profiles.train-more]" in text
        fields.set("ports", "x")
        await saving(pilot, app, "other")
        await until(pilot, lambda: isinstance(app.screen, LaunchScreen) and "Correct what is marked" in below(app))
        assert app.focused is not None
        assert app.focused.id == "field-ports"
        fields.set("ports", "'8888")
        await pilot.press("f3")
        assert isinstance(app.screen, LaunchScreen), "a quote is open"
        fields.set("ports", "")
        (project / "gpuconsole.toml").write_text("no toml")
        await saving(pilot, app, "other")
        await until(pilot, lambda: "is not TOML" in said(app))
        await pilot.press("escape")
        fields.go_to("profile")
        await pilot.press("end", "ctrl+u", "down")
        await until(pilot, lambda: any("is not TOML" in note.message for note in app._notifications), what="it is said")
        await saving(pilot, app, "other")
        await until(pilot, lambda: "is not TOML" in said(app))
        app.screen.query_one("#own", Tick).decide(True)
        await pilot.press("enter")
        await until(pilot, lambda: not isinstance(app.screen, SaveProfile), what="saved into one's own")
        assert isinstance(app.screen, LaunchScreen | MainScreen)
    assert "other" not in (project / "gpuconsole.toml").read_text()


async def test_what_is_typed_before_the_form_knows_what_to_begin_with_stays(
    engine_modern: Engine, tmp_path: Path, small: str
) -> None:
    app = console(engine_modern.host, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        fields = await opened(pilot, app)
        fields.fill({"environment": "A=1", "name": "mine"})
        form(app).post_message(LaunchScreen.Began({"image": small, "name": "other", "gpus": "none"}, None))
        await until(pilot, lambda: fields.value("gpus") == "none")
        assert (fields.value("environment"), fields.value("name"), fields.value("image")) == ("A=1", "mine", small)


async def test_the_form_is_cleared_by_a_key_and_that_is_taken_back(
    engine_modern: Engine, tmp_path: Path, project: Path, small: str
) -> None:
    app = console(engine_modern.host, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        fields = await opened(pilot, app)
        first = form(app).everything()
        await pilot.press("ctrl+n")
        assert form(app).everything() == first
        await named(pilot, app, "train")
        fields.set("environment", "A=1")
        form(app).query_one("#remove", Tick).decide(True)
        before, options = form(app).everything(), form(app)._options()
        await pilot.press("ctrl+n")
        assert form(app).everything() == first
        assert form(app).taken == frozenset()
        assert "Cleared" in below(app)
        await pilot.press("f8")
        assert (form(app).everything(), form(app)._options()) == (before, options)
        await pilot.press("ctrl+n")
        fields.set("environment", "B=2")
        await pilot.press("f8")
        assert fields.value("environment") == "B=2", "what was written since stays"
        await pilot.press("f1")
        assert any(line.split()[:2] == ["^n", "Clear"] for line in app.screen._text.splitlines())  # type: ignore[attr-defined]


async def test_a_lifted_refusal_is_not_lifted_the_next_time(
    engine_modern: Engine, tmp_path: Path, project: Path, small: str
) -> None:
    (project / "gpuconsole.toml").unlink()
    for first in (True, False):
        app = console(engine_modern.host, tmp_path)
        async with app.run_test(size=(80, 24)) as pilot:
            fields = await opened(pilot, app)
            if first:
                fields.fill({"image": small, "gpus": "none", "volumes": "/etc:/e", "force": "dangerous-mount"})
                await launched(pilot, app)
                continue
            assert (fields.value("volumes"), fields.value("force")) == ("/etc:/e", "")
            await pilot.press("enter")
            await until(pilot, functools.partial(refused, app), what="refused anew")
    assert len(names(engine_modern)) == 1
