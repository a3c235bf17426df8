"""What is likely to fail stands beside its field of the launch form, and its key mends it, lifts it, takes it back."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Button

from gpuconsole.engine.model import EngineInfo
from gpuconsole.host import folders
from gpuconsole.host.devices import DeviceFacts
from gpuconsole.host.facts import LaunchFacts
from gpuconsole.host.memorygroup import MemoryGroup
from gpuconsole.images.verdict import Word
from gpuconsole.launch.preflight import Severity, examine
from gpuconsole.services import enginememory, isolation
from gpuconsole.services.catalog import load_catalog, view_catalog
from gpuconsole.services.fitting import engine_machine
from gpuconsole.services.session import Session
from gpuconsole.services.weighing import Weight, weigh
from gpuconsole.tui.app import ConsoleApp
from gpuconsole.tui.present import launchform
from gpuconsole.tui.present.launchfindings import Remark, remarks_of
from gpuconsole.tui.present.launchmending import field_writing, text_after
from gpuconsole.tui.present.launchtyped import Ticks, options_of
from gpuconsole.tui.screens.main import MainScreen
from gpuconsole.tui.widgets.completer import Choices
from gpuconsole.tui.widgets.lines import Lines
from tests.rig.engines import Engine
from tests.rig.nvml import NvmlBox, box
from tests.rig.nvml.gpu import GpuProcess
from tests.rig.nvml.presets import busy
from tests.rig.prepared import gpuconsole
from tests.tui.console import console, shown, until
from tests.tui.formseen import below, form, inspect, opened, problem, weighed, with_images, without_joining
from tests.unit.test_preflight import CASES
from tests.unit.test_preflight_machine import CASES as MACHINE

pytestmark = [pytest.mark.engine, pytest.mark.usefixtures("nvml")]
GIB = 2**30
Typed = Mapping[str, str]
MINE = {"volumes": ".:/workspace"}
BESIDE = ""
"""What is right alone and wrong beside another option is told before there is a plan, and is no rule with a slug."""


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder the console is started in, below a home of its own."""
    home = tmp_path / "home"
    folder = home / "my project"
    (folder / "data").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(folder)
    return folder


@dataclass
class Case:
    """What is typed, and what makes it likely to fail."""

    typed: Typed
    before: Callable[[Stage], object] = lambda _: None
    removed: bool = False
    """It is ticked that the container is removed."""
    also: frozenset[str] = field(default_factory=frozenset)
    """What is found as well, before and after."""


@dataclass
class Stage:
    """What a case is played on."""

    engine: Engine
    nvml: NvmlBox
    session: Session
    patch: pytest.MonkeyPatch
    end: ExitStack

    def hold(self, *_: object) -> None:
        """A process is on the first GPU."""
        whole = box(2)
        self.nvml.write(whole.with_(gpus=(busy(whole.gpus[0], GpuProcess(os.getpid(), 90 * GIB)), whole.gpus[1])))

    def differ(self, *_: object) -> None:
        """The GPUs are of two models."""
        whole = box(2)
        self.nvml.write(whole.with_(gpus=(whole.gpus[0], whole.gpus[1].with_(name="NVIDIA L40S"))))

    def own(self, image: str, *changes: str) -> str:
        """An image with something of its own."""
        told = [part for change in changes for part in ("--change", change)]
        self.engine.docker("create", "--name", "to-commit", image)
        self.engine.docker("commit", *told, "to-commit", "own/own:1")
        self.engine.docker("rm", "to-commit")
        return "own/own:1"

    def be(self, **facts: Any) -> None:
        """This machine is another one."""
        self.patch.setattr(self.session, "launch_facts", lambda _: replace(LaunchFacts(), **facts))

    def away(self) -> None:
        """The engine is on another machine."""
        told: Callable[[], EngineInfo] = self.session.engine.info
        self.patch.setattr(self.session.engine, "info", lambda: replace(told(), local=False), raising=False)

    def listen(self, port: int) -> None:
        """A program of this machine has a port."""
        taken = self.end.enter_context(socket.socket())
        taken.bind(("127.0.0.1", port))
        taken.listen()

    def person(self, uid: int, *, filesystem: str = "ext4") -> None:
        """Somebody else than root launches, with their folders on such a filesystem."""
        self.patch.setattr(os, "getuid", lambda: uid)
        self.patch.setattr(folders, "filesystem_of", lambda *_: filesystem)

    def gpu_device(self, path: str) -> None:
        """A device is a GPU's."""
        self.patch.setattr(isolation, "look_at_device", lambda _: DeviceFacts(True, path, (path,), gpus=(path,)))

    def limited(self, limit_bytes: int) -> None:
        """A control group above the engine's containers allows only so much."""
        self.patch.setattr(
            enginememory, "smallest_limit", lambda *_, **__: MemoryGroup("/docker.slice", limit_bytes, 0)
        )


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


PORT = _free_port()
NONE = {"gpus": "none", **MINE}
CAUSES: dict[str, list[Case]] = {
    "gpu-missing": [Case({"gpus": "device=9", **MINE}), Case({"gpus": "5", **MINE})],
    "gpu-busy": [Case({"gpus": "device=0", **MINE}, Stage.hold)],
    "gpu-order": [Case({"gpus": "2", "environment": "A='1 2'", **MINE}, Stage.differ)],
    "gpu-variable": [
        Case({"gpus": "1", "environment": "A=1 CUDA_VISIBLE_DEVICES=3 B='1 2'", **MINE}),
        Case({"gpus": "2", "image": "own/own:1", **MINE},
             lambda stage: stage.own(stage.engine.load("small"), "ENV CUDA_VISIBLE_DEVICES=1")),
    ],
    "engine-not-local": [Case({"gpus": "1"}, Stage.away, also=frozenset(("nothing-mounted",)))],
    "tegra-runtime": [Case({"gpus": "1", "gpu_path": "hook", **MINE}, lambda stage: stage.be(tegra=True))],
    "home-mount": [Case({"gpus": "none", "volumes": ".:/workspace\n~:/home/me\n./data:/data:ro"})],
    "nothing-mounted": [Case({"gpus": "none"}), Case({"gpus": "none", "volumes": "./data:/workspace:ro"})],
    "root-owned": [Case({**NONE, "user": "image"}, lambda stage: stage.person(1000))],
    "no-passwd": [Case({**NONE, "user": "1000"}, lambda stage: stage.person(1000))],
    "root-squash": [Case({**NONE, "user": "image"}, lambda stage: stage.person(1000, filesystem="nfs4"))],
    "shm-size": [Case({**NONE, "shm": "64m"}), Case({**NONE, "ipc": "none"})],
    "memlock": [Case({"gpus": "2", "ulimits": "stack=67108864 memlock=65536", **MINE})],
    "memory-limit": [Case({**NONE, "memory": "900t"}), Case({**NONE, "shm": "900t"})],
    "port-taken": [
        Case({**NONE, "ports": f"80 {PORT}:80/tcp 1:1"}, lambda stage: stage.listen(PORT)),
        Case({**NONE, "ports": f"{PORT}:80"}, lambda stage: stage.listen(PORT)),
    ],
    "port-public": [Case({**NONE, "ports": "0.0.0.0::80 [::1]::81"}), Case({**NONE, "ports": "0.0.0.0:2:80/udp"})],
    "name-taken": [Case({**NONE, "name": "taken"},
                        lambda stage: stage.engine.docker("create", "--name", "taken", stage.engine.load("small")))],
    "entrypoint": [Case({**NONE, "image": "own/own:1", "command": "train.py --lr '0.1 0.2'"},
                        lambda stage: stage.own(stage.engine.load("small"), 'ENTRYPOINT ["python", "-u"]'))],
    "image-latest": [Case({"image": "pytorch/pytorch", "gpus": "1", **MINE})],
    "image-verdict": [Case({"gpus": "1", **MINE})],
    "privileged": [Case({**NONE, "privileged": "yes"})],
    "network-host": [Case({**NONE, "network": "host"})],
    "ipc-host": [Case({**NONE, "ipc": "host"})],
    "group-docker": [Case({**NONE, "group_add": "44 docker"})],
    "device-missing": [Case({**NONE, "devices": "/dev/null /dev/nowhere:/dev/x:r"})],
    "dangerous-device": [Case({**NONE, "devices": "/dev/null /dev/tty"})],
    "gpu-device": [Case({**NONE, "devices": "/dev/null:/dev/of-a-gpu"}, lambda stage: stage.gpu_device("/dev/null"))],
    "memory-group": [
        Case({**NONE, "memory": "8g"}, lambda stage: stage.limited(4 * GIB)),
        Case({**NONE, "shm": "8g"}, lambda stage: stage.limited(4 * GIB)),
    ],
    BESIDE: [
        Case({**NONE, "restart": "always"}, removed=True),
        Case({**NONE, "shm": "64m", "ipc": "host"}, also=frozenset(("ipc-host",))),
        Case({**NONE, "shm": "2g", "memory": "1g"}),
        Case({**NONE, "ports": f"{PORT}:80", "network": "none"}),
    ],
}  # fmt: skip
"""Slug of each rule that has a change → what is typed so that it fires on a real engine."""


def test_every_rule_with_a_change_has_a_case_here() -> None:
    every = [*CASES.values(), *MACHINE.values()]
    changing = {one.slug for fires, _ in every for facts in fires for one in examine(facts) if one.change}
    assert set(CAUSES) - changing == {BESIDE, "gpu-busy", "home-mount", "port-public", "port-taken"}, (
        "those whose change depends on how it was written, or on what else is free"
    )
    assert changing <= set(CAUSES), changing - set(CAUSES)


@pytest.fixture
def stage(engine_modern: Engine, nvml: NvmlBox, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    """A session with a real engine and two free GPUs."""
    session = Session(host=engine_modern.host)
    with ExitStack() as end, monkeypatch.context() as patch:
        nvml.write(box(2))
        yield Stage(engine_modern, nvml, session, patch, end)
    session.close()


def remarks(session: Session, typed: Typed, *, removed: bool) -> tuple[Weight, list[Remark]]:
    options, problems = options_of(typed, Ticks(remove=removed), uuids={})
    weight = weigh(session, options, name=None if typed.get("name") else "made-abcd")
    assert weight.failure is None, weight.failure
    return weight, list(remarks_of((*problems, *weight.problems), weight.findings, weight.force))


def _will_not_run(session: Session) -> str:
    """An image of the catalog that does not run on this machine, while another would."""
    views = view_catalog(load_catalog(), engine_machine(session).traits)
    return next(each.image.reference for each in views if each.verdict.word is Word.WILL_NOT_RUN and each.instead)


@pytest.mark.parametrize(("slug", "number"), [(slug, n) for slug, cases in CAUSES.items() for n in range(len(cases))])
def test_a_key_mends_it_and_changes_nothing_else(slug: str, number: int, stage: Stage) -> None:
    case = CAUSES[slug][number]
    case.before(stage)
    typed = {"image": stage.engine.load("small"), **case.typed}
    if slug == "image-verdict":
        typed["image"] = _will_not_run(stage.session)
    _, found = remarks(stage.session, typed, removed=case.removed)
    one = next(each for each in found if each.slug == slug and each.change is not None)
    assert one.change is not None
    writes = field_writing(one.change.option)
    assert writes is not None, one.change
    after = text_after(writes, typed.get(writes.key, ""), one.change)
    assert after != typed.get(writes.key, ""), one.change
    options, _ = options_of(typed, Ticks(remove=case.removed), uuids={})
    mended, problems = options_of(typed | {writes.key: after}, Ticks(remove=case.removed), uuids={})
    assert problems == ()
    assert replace(mended, **{one.change.option: getattr(options, one.change.option)}) == options, "nothing else"
    weight, left = remarks(stage.session, typed | {writes.key: after}, removed=case.removed)
    assert weight.plan is not None, left
    assert (one.slug, one.sentence) not in [(each.slug, each.sentence) for each in left]
    new = {each.slug for each in left} - {each.slug for each in found}
    assert new <= case.also, left


async def test_it_stands_under_its_field_with_a_sign_and_its_key(
    engine_modern: Engine, nvml: NvmlBox, tmp_path: Path
) -> None:
    image, _ = with_images(engine_modern)
    Stage.hold(Stage(engine_modern, nvml, Session(), pytest.MonkeyPatch(), ExitStack()))
    app = console(engine_modern.host, tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        fields = await opened(pilot, app)
        fields.set("gpus", "device=0")
        fields.set("volumes", "/etc:/host-etc")
        fields.set("memory", "900t")
        await weighed(pilot, app)
        sign = app.glyphs
        assert problem(app, "gpus").startswith(f"{sign.watch} GPU 0 ")
        assert "F7 writes device=1" in problem(app, "gpus")
        assert _tones(app, "gpus") == {"watch", "accent"}
        assert problem(app, "volumes").startswith(f"{sign.critical} /etc would let")
        assert "F9 forces it" in problem(app, "volumes")
        assert "press F9 if this is meant" in problem(app, "volumes") + below(app)
        assert _tones(app, "volumes") == {"critical", "accent"}
        assert f"{sign.idle} Memory: " in below(app), "of a row that is hidden, with the field's name"
        assert not form(app).has_class("-more")
        await pilot.press("f4")
        await until(pilot, lambda: "900" in problem(app, "memory"), what="the row is open")
        assert "Memory: " not in below(app)
        assert _tones(app, "memory") == {"dim", "accent"}
        assert "docker run" in below(app)
        assert image in shown(app)


def _tones(app: ConsoleApp, key: str) -> set[str]:
    group = next(group for group in _groups() if key in [each.key for each in group])
    lines = form(app).query_one(f"#problem-{group[0].key}", Lines).lines
    return {cell.tone for line in lines for cell in line if cell.text.strip()}


def _groups() -> tuple[Any, ...]:
    return (*launchform.ROWS, *launchform.MORE)


async def test_the_key_mends_what_is_in_focus_else_the_first_and_takes_it_back(
    engine_modern: Engine, tmp_path: Path
) -> None:
    with_images(engine_modern)
    app = console(engine_modern.host, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        fields = await opened(pilot, app)
        fields.go_to("environment")
        before = fields.typed()
        await pilot.press("f7", "f8", "f9", "ctrl+f", "ctrl+r", "ctrl+y")
        assert fields.typed() == before, "with nothing to do they do nothing, and are not written"
        assert all(word not in shown(app) for word in ("F7", "F8", "F9"))
        fields.set("environment", "A=1 CUDA_VISIBLE_DEVICES=3")
        fields.set("shm", "64m")
        fields.set("ports", "0.0.0.0::80")
        fields.go_to("shm")
        await weighed(pilot, app)
        assert "F7 Fix" in shown(app)
        await pilot.press("f7")
        assert (fields.value("shm"), fields.value("ports")) == ("", "0.0.0.0::80")
        assert "Shm size: 64m → empty. F8 takes it back." in below(app)
        await pilot.press("ctrl+f")
        await pilot.press("ctrl+f")
        assert (fields.value("ports"), fields.value("environment")) == ("80", "A=1"), "each once, the rest after it"
        await pilot.press("ctrl+f")
        await weighed(pilot, app)
        assert "F7" not in shown(app)
        assert [remark.slug for remark in form(app)._remarks] == []
        assert (fields.value("ports"), fields.value("environment"), fields.value("shm")) == ("80", "A=1", "")
        fields.set("ports", "81")
        for _ in range(3):
            await pilot.press("f8")
        assert (fields.value("ports"), fields.value("shm")) == ("81", "64m"), "what was written since stays"
        assert fields.value("environment") == "A=1 CUDA_VISIBLE_DEVICES=3"
        await weighed(pilot, app)
        assert "Taken back: Shm size is 64m again." in below(app)
        assert "F7 Fix" in shown(app)
        assert "F8" not in shown(app)
        fields.go_to("shm")
        await pilot.press("9")
        await weighed(pilot, app)
        assert "Taken back" not in below(app), "it is told until something else is written"


async def test_a_refusal_is_gone_to_and_lifted_by_its_key(engine_modern: Engine, tmp_path: Path) -> None:
    with_images(engine_modern)
    app = console(engine_modern.host, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        fields = await opened(pilot, app)
        fields.set("volumes", "/etc:/host-etc:ro")
        fields.set("name", "forced")
        without_joining(app)
        form(app).query_one("#launch", Button).focus()
        await pilot.press("f5")
        await until(pilot, lambda: "Correct what is marked" in below(app), what="refused")
        await until(pilot, lambda: app.focused is not None and app.focused.id == "field-volume-0", what="its field")
        assert "docker run" in below(app), "the line stays"
        await pilot.press("f9")
        assert fields.value("force") == "dangerous-mount"
        assert "Forced: dangerous-mount. F8 takes it back." in below(app)
        await weighed(pilot, app)
        assert _tones(app, "volumes") == {"watch", "accent"}
        assert "files of the system. forced" in problem(app, "volumes")
        await pilot.press("f8")
        await weighed(pilot, app)
        assert fields.value("force") == ""
        assert "F9 forces it" in problem(app, "volumes")
        fields.set("privileged", "yes")
        await weighed(pilot, app)
        assert form(app).has_class("-more"), "what is in the way is seen"
        fields.go_to("force")
        await pilot.press("down")
        choices = form(app).query_one(Choices)
        await until(pilot, lambda: choices.is_open)
        assert {choice for choice, _ in choices._choices} == {"dangerous-mount", "privileged"}
        await pilot.press("tab")
        fields.set("privileged", "")
        fields.set("force", "dangerous-mount")
        await weighed(pilot, app)
        await pilot.press("f5")
        await until(pilot, lambda: isinstance(app.screen, MainScreen), what="launched")
    assert inspect(engine_modern, "forced")["HostConfig"]["Mounts"][0]["Source"] == "/etc"


async def test_what_was_taken_meanwhile_is_gone_to(engine_modern: Engine, tmp_path: Path) -> None:
    _, small = with_images(engine_modern)
    app = console(engine_modern.host, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        fields = await opened(pilot, app)
        fields.set("name", "mine")
        await weighed(pilot, app)
        engine_modern.docker("create", "--name", "mine", small)
        await pilot.press("f5")
        await until(pilot, lambda: app.focused is not None and app.focused.id == "field-name", what="its field")
        assert "Correct what is marked" in below(app)
        assert "The name mine is taken" in problem(app, "name")
        await pilot.press("f7")
        assert fields.value("name") == ""
        without_joining(app)
        await pilot.press("f5")
        await until(pilot, lambda: isinstance(app.screen, MainScreen), what="launched under another name")


async def test_however_much_there_is_the_form_stays_a_form(
    engine_modern: Engine, nvml: NvmlBox, tmp_path: Path
) -> None:
    with_images(engine_modern)
    Stage.hold(Stage(engine_modern, nvml, Session(), pytest.MonkeyPatch(), ExitStack()))
    app = console(engine_modern.host, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        fields = await opened(pilot, app)
        fields.set("gpus", "device=0")
        fields.set("volumes", "/etc:/a\n/:/b\n/var/run:/c")
        fields.set("ports", " ".join(f"0.0.0.0::{port}" for port in range(80, 90)))
        fields.set("environment", "CUDA_VISIBLE_DEVICES=3 HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz123456")
        fields.set("privileged", "yes")
        fields.go_to("shm")
        await pilot.press(*"64m")
        await weighed(pilot, app)
        text = shown(app)
        assert app.focused is not None
        assert app.focused.region.y > 0
        assert "64m" in text, "what is written in stays in sight"
        assert "Launch " in text
        told = "".join(problem(app, group[0].key) for group in _groups()) + below(app)
        for remark in form(app)._remarks:
            assert remark.sentence[:30] in told, remark
        lines = [line for group in _groups() for line in form(app).query_one(f"#problem-{group[0].key}", Lines).lines]
        assert max(len("".join(cell.text for cell in line)) for line in lines) <= 80 - 12


def test_form_and_command_line_find_the_same_and_say_it_in_the_same_words(
    engine_modern: Engine, nvml: NvmlBox, stage: Stage, project: Path
) -> None:
    stage.hold()
    image = engine_modern.load("small")
    engine_modern.docker("create", "--name", "taken", image)
    stage.listen(PORT)
    typed = {"image": image, "gpus": "device=0", "volumes": "/etc:/etc2\n~:/home/me", "shm": "64m", "name": "taken",
             "ports": f"{PORT}:80 0.0.0.0::81", "environment": "CUDA_VISIBLE_DEVICES=3", "privileged": "yes",
             "memory": "900t", "force": "privileged"}  # fmt: skip
    weight, _ = remarks(stage.session, typed, removed=False)
    options = ("--gpus", "device=0", "-v", "/etc:/etc2", "-v", "~:/home/me", "--shm-size", "64m", "--name", "taken",
               "-p", f"{PORT}:80", "-p", "0.0.0.0::81", "-e", "CUDA_VISIBLE_DEVICES=3", "--privileged",
               "--memory", "900t", "--force", "privileged")  # fmt: skip
    env = nvml.env({**os.environ, **engine_modern.env()})
    done = gpuconsole("launch", image, *options, "--dry-run", "--json", env=env, folder=project)
    told = json.loads(done.stdout)["findings"]
    ours = [(one.slug, str(one.severity), one.field, one.sentence, one.fix) for one in weight.findings]
    assert [tuple(one[key] for key in ("slug", "severity", "field", "sentence", "fix")) for one in told] == ours
    assert len({slug for slug, *_ in ours}) >= 8
    assert {severity for _, severity, *_ in ours} == set(Severity)
    for _, _, _, sentence, _ in ours:
        assert sentence in done.stderr.decode()
