"""What asks before it is done: one's own plainly or not at all, another user's only once its name is typed."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from textual.pilot import Pilot
from textual.widgets import Button, Input

from gpuconsole.core.users import caller_name, user_name
from gpuconsole.engine.model import Container, ContainerState
from gpuconsole.gpu.model import GpuSnapshot
from gpuconsole.host.model import GpuView, Holder, HostView
from gpuconsole.launch.labels import USER
from gpuconsole.services.containers import ContainerView
from gpuconsole.services.feed import EngineLink
from gpuconsole.tui import actions
from gpuconsole.tui.app import ConsoleApp
from gpuconsole.tui.screens.asking import about_container
from gpuconsole.tui.screens.details import ContainerDetails, open_details
from gpuconsole.tui.screens.question import QuestionScreen
from tests.rig.nvml import NvmlBox
from tests.tui.console import console, looks_no_more, shown, until

OTHER_UID = 54321
ACTS = {
    "container.stop": "stop_container",
    "container.start": "start_container",
    "container.restart": "restart_container",
    "container.pause": "pause_container",
    "container.remove": "remove_container",
    "container.check": "check_container",
}
"""What is done by an action of a container."""
SEES_TO_IT = {"container.shell", "container.attach", "container.bench"}
"""Commands in a terminal of their own, which tell the owner or ask, tested with the commands; and what asks for more
before, tested with benchmarks."""
UNASKED = {"container.start", "container.pause", "container.check"}
"""Of one's own."""


def test_every_action_that_changes_a_container_or_runs_something_in_it_is_tested_here() -> None:
    assert {action.id for action in actions.CONTAINER if action.changes} == set(ACTS) | SEES_TO_IT


@pytest.mark.parametrize("owner", [None, "anna"])
def test_a_name_of_any_length_leaves_the_answers_on_the_screen(owner: str | None) -> None:
    one = Container("0123456789abcdef", "a" * 3000, "a:1", "sha256:1", ContainerState.RUNNING)
    question = about_container("Stop", one, owner)
    assert len(question.title) < 80
    assert question.word == ("0123456789ab" if owner else None), "nobody types 3,000 characters"
    assert "0123456789ab" in question.word_is
    brief = about_container("Stop", replace(one, name="train"), owner)
    assert (brief.title, brief.word) == ("Stop train?", "train" if owner else None)


class Done(list[str]):
    """What the desk was asked to do."""

    def take_the_place_of(self, app: ConsoleApp) -> None:
        for method in ACTS.values():
            setattr(app.desk, method, lambda container, name=method: self._did(name))

    def _did(self, name: str) -> str:
        self.append(name)
        return "done"


def container(owner: str, state: ContainerState) -> ContainerView:
    return ContainerView(
        Container(id="ab" * 32, name="train", image="a:1", image_id="sha256:1", state=state, labels={USER: owner})
    )


def see(app: ConsoleApp, view: ContainerView) -> None:
    app.link = EngineLink(connected=True)
    app.containers = (view,)


async def answer(pilot: Pilot[Any], word: str) -> None:
    """Try to go on without a word and with a wrong one, then with the right one."""
    app = pilot.app
    await until(pilot, lambda: isinstance(app.screen, QuestionScreen) and app.screen.query("#word"))
    button, line = app.screen.query_one("#yes", Button), app.screen.query_one("#word", Input)
    await pilot.press("y")
    for wrong in ("", word[:-1], word + "x"):
        line.value = wrong
        await pilot.pause()
        assert button.disabled
        button.press()
    assert isinstance(app.screen, QuestionScreen)
    line.value = word
    await until(pilot, lambda: not button.disabled)
    button.press()
    await until(pilot, lambda: not isinstance(app.screen, QuestionScreen))


def fits(state: ContainerState, action: str) -> bool:
    running = state in (ContainerState.RUNNING, ContainerState.PAUSED)
    return {"container.start": not running, "container.stop": running, "container.check": running}.get(action, True)


STATES = (ContainerState.RUNNING, ContainerState.PAUSED, ContainerState.EXITED, ContainerState.CREATED)


@pytest.mark.parametrize("detailed", [False, True], ids=["list", "details"])
@pytest.mark.parametrize("state", STATES)
async def test_another_users_container_is_left_until_its_name_is_typed(
    tmp_path: Path, nvml: NvmlBox, state: ContainerState, detailed: bool
) -> None:
    app, done = console(f"unix://{tmp_path}/none.sock", tmp_path), Done()
    done.take_the_place_of(app)
    async with app.run_test(size=(80, 24)) as pilot:
        view = container("mei", state)
        see(app, view)
        await pilot.pause()
        if detailed:
            open_details(app, view)
            await until(pilot, lambda: isinstance(app.screen, ContainerDetails))
        for action in (each for each in actions.CONTAINER if each.id in ACTS):
            if not fits(state, action.id):
                continue
            await pilot.press(action.key)
            await until(pilot, lambda: isinstance(app.screen, QuestionScreen), what=action.id)
            await pilot.pause()
            assert "It belongs to mei." in shown(app)
            assert not done, action.id
            await pilot.press("escape")
            await until(pilot, lambda: not isinstance(app.screen, QuestionScreen))
            assert not done, action.id
            await pilot.press(action.key)
            await answer(pilot, "train")
            await until(pilot, lambda: done, what=action.id)
            does = ACTS[action.id]
            started = does == "restart_container" and fits(state, "container.start")
            assert done == ["start_container" if started else does]
            done.clear()


@pytest.mark.parametrize("state", STATES)
async def test_ones_own_is_done_at_once_or_after_a_plain_question(
    tmp_path: Path, nvml: NvmlBox, state: ContainerState
) -> None:
    app, done = console(f"unix://{tmp_path}/none.sock", tmp_path), Done()
    done.take_the_place_of(app)
    async with app.run_test(size=(80, 24)) as pilot:
        see(app, container(caller_name(), state))
        await pilot.pause()
        for action in (each for each in actions.CONTAINER if each.id in ACTS and fits(state, each.id)):
            await pilot.press(action.key)
            starts = action.id == "container.restart" and fits(state, "container.start")
            if action.id not in UNASKED and not starts:
                await until(pilot, lambda: isinstance(app.screen, QuestionScreen), what=action.id)
                assert not app.screen.query("#word")
                assert not done
                await pilot.press("y")
            await until(pilot, lambda: done, what=action.id)
            assert done == ["start_container" if starts else ACTS[action.id]]
            done.clear()


# --- processes on GPUs ---


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    """Real processes that wait: one's own, and another user's where the tests may start one."""
    monkeypatch.delenv("SUDO_USER", raising=False)
    started = {"mine": subprocess.Popen(["sleep", "600"])}
    if os.geteuid() == 0:
        started["theirs"] = subprocess.Popen(["sleep", "600"], user=OTHER_UID)
    yield started
    for process in started.values():
        process.kill()
        process.wait()


def held_by(pid: int, **changes: Any) -> Holder:
    process = psutil.Process(pid)
    uid = process.uids().real
    holder = Holder(pid=pid, gpu_index=0, gpu_uuid="GPU-1", memory_bytes=1, user=user_name(uid), uid=uid,
                    command="sleep 600", started_at=process.create_time())  # fmt: skip
    return replace(holder, **changes)


async def ask_to_end(pilot: Pilot[Any], app: ConsoleApp, holder: Holder) -> None:
    await looks_no_more(pilot, app)  # the driver has other processes
    assert app.host_view is not None
    view = app.host_view.gpus[0]
    app.host_view = HostView(GpuSnapshot(app.host_view.snapshot.taken_at + 1, gpus=(view.gpu,)), gpus=(
        GpuView(view.gpu, (holder,)),))  # fmt: skip
    await pilot.press("3")
    await pilot.pause()
    await pilot.press("K")
    await until(pilot, lambda: isinstance(app.screen, QuestionScreen), what="the question")
    await pilot.pause()


async def test_a_process_of_ones_own_is_ended_after_a_plain_question(
    tmp_path: Path, nvml: NvmlBox, processes: dict[str, subprocess.Popen[bytes]]
) -> None:
    app = console(f"unix://{tmp_path}/none.sock", tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.host_view)
        await ask_to_end(pilot, app, held_by(processes["mine"].pid))
        assert not app.screen.query("#word")
        await pilot.press("y")
        await until(pilot, lambda: processes["mine"].poll() == -15)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start processes of others")
@pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
async def test_a_process_of_another_user_is_left_until_its_number_is_typed(
    tmp_path: Path, nvml: NvmlBox, processes: dict[str, subprocess.Popen[bytes]], known: bool
) -> None:
    process = processes["theirs"]
    app = console(f"unix://{tmp_path}/none.sock", tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.host_view)
        await ask_to_end(pilot, app, held_by(process.pid, **({} if known else {"user": None, "uid": None})))
        assert f"It belongs to {OTHER_UID if known else 'an unknown user'}." in shown(app)
        await answer(pilot, str(process.pid))
        await until(pilot, lambda: process.poll() == -15)


async def test_a_process_in_another_users_container_is_another_users(
    tmp_path: Path, nvml: NvmlBox, processes: dict[str, subprocess.Popen[bytes]]
) -> None:
    app = console(f"unix://{tmp_path}/none.sock", tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.host_view)
        view = container("mei", ContainerState.RUNNING)
        see(app, view)
        inside = {"container_id": view.container.id, "container_name": "train"}
        await ask_to_end(pilot, app, held_by(processes["mine"].pid, **inside))
        assert "It belongs to mei." in shown(app)
        assert "in train" in shown(app)
        await answer(pilot, str(processes["mine"].pid))
        await until(pilot, lambda: processes["mine"].poll() == -15)


async def test_the_command_line_of_a_process_is_short_and_without_secrets_in_the_question(
    tmp_path: Path, nvml: NvmlBox, processes: dict[str, subprocess.Popen[bytes]]
) -> None:
    app = console(f"unix://{tmp_path}/none.sock", tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.host_view)
        command = "python [/red] train.py --token=abc123 " + "x" * 60_000
        await ask_to_end(pilot, app, held_by(processes["mine"].pid, command=command))
        text = shown(app)
        assert "abc123" not in text
        assert "python [/red] train.py" in text
        assert "Cancel" in text


# --- Docker's own files ---


@pytest.mark.parametrize("broken", ["malformed", "a context that is gone"])
async def test_with_a_docker_configuration_that_cannot_be_read_every_key_is_heeded(
    tmp_path: Path, nvml: NvmlBox, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.delenv("DOCKER_CONTEXT", raising=False)
    text = "{" if broken == "malformed" else json.dumps({"currentContext": "gone"})
    (tmp_path / "config.json").write_text(text)
    app = console(None, tmp_path)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        await until(pilot, lambda: app.link and not app.link.connected)
        for state in (ContainerState.RUNNING, ContainerState.EXITED):
            for owner in (caller_name(), "mei"):
                see(app, container(owner, state))
                await pilot.pause()
                for action in (each for each in actions.CONTAINER if each.id in ACTS and fits(state, each.id)):
                    await pilot.press(action.key)
                    await pilot.pause()
                    if isinstance(app.screen, QuestionScreen):
                        await pilot.press("escape")
        assert app.is_running
        assert app.failure is None


async def test_a_fault_after_a_question_is_told_and_the_console_goes_on(
    tmp_path: Path, nvml: NvmlBox, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = console(f"unix://{tmp_path}/none.sock", tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        see(app, container("mei", ContainerState.RUNNING))
        await pilot.pause()

        def broken(container: Container) -> str:
            raise ValueError("a fault of ours")

        monkeypatch.setattr(app.desk, "check_container", broken)
        await pilot.press("c")
        await answer(pilot, "train")
        await until(pilot, lambda: "a fault of ours" in shown(app))
        assert app.is_running
        assert app.failure is None
