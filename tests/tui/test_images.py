"""Images in the console, on a real engine and registry: pulled in the background, pinned, removed, pruned."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from gpuconsole.services.replaydesk import ReplayDesk
from gpuconsole.services.replayfile import load
from gpuconsole.services.runs import Run, RunKind, RunState
from gpuconsole.tui.app import ConsoleApp
from gpuconsole.tui.screens.building import BuildScreen
from gpuconsole.tui.screens.details import CatalogDetails, ImageDetails, RunDetails
from gpuconsole.tui.screens.main import MainScreen
from gpuconsole.tui.screens.pruning import PruneScreen
from gpuconsole.tui.screens.pulling import PullScreen
from gpuconsole.tui.screens.question import QuestionScreen
from tests.rig.engines import Engine
from tests.rig.fresh import fresh_image
from tests.rig.registry import Registry
from tests.tui.console import console, shown, until

pytestmark = [pytest.mark.engine, pytest.mark.usefixtures("nvml", "project")]
RECORDING = Path(__file__).parents[1] / "fixtures/console-h200.jsonl.gz"
DAY = "pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime"
"""An image of the catalog that runs on the simulated H200s."""
_STANDSTILL = 2_000
"""Bytes a second: nothing that is pulled comes to its end, however long one looks."""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder the console is started in."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def main(app: ConsoleApp) -> MainScreen:
    assert isinstance(app.screen, MainScreen), app.screen
    return app.screen


def pulls(app: ConsoleApp) -> list[Run]:
    return [run for run in app.runs if run.kind is RunKind.PULL]


def toasts(app: ConsoleApp) -> str:
    return "\n".join(each.message for each in app._notifications)


async def on_images(pilot: Pilot[Any], app: ConsoleApp) -> None:
    await pilot.press("2")
    await until(pilot, lambda: app.shelf is not None and app.images is not None, what="verdicts")


async def on_row(pilot: Pilot[Any], app: ConsoleApp, key: str) -> None:
    await until(pilot, lambda: key in [row.key for row in main(app).grid.rows], what=f"a row of {key}")
    main(app).grid.cursor = key
    await pilot.pause()


async def pull_by_name(pilot: Pilot[Any], app: ConsoleApp, name: str) -> None:
    await pilot.press("P")
    await until(pilot, lambda: isinstance(app.screen, PullScreen) and app.screen.focused is not None)
    app.screen.query_one("#reference", Input).value = name
    await pilot.pause()
    await pilot.press("enter")
    await until(pilot, lambda: isinstance(app.screen, MainScreen))


async def answered(pilot: Pilot[Any], app: ConsoleApp, key: str, words: str) -> None:
    """Wait for a question, and answer it."""
    await until(pilot, lambda: isinstance(app.screen, QuestionScreen) and words in shown(app), what=words)
    await pilot.press(key)
    await until(pilot, lambda: not isinstance(app.screen, QuestionScreen))


def image_id(engine: Engine, reference: str) -> str:
    return engine.docker("image", "inspect", "-f", "{{.Id}}", reference).stdout.strip()


def ended(app: ConsoleApp, state: RunState) -> Callable[[], bool]:
    return lambda: bool(pulls(app)) and pulls(app)[0].state is state


async def test_a_pull_goes_on_behind_and_its_image_is_pinned_unpinned_and_removed(
    engine_modern: Engine, registry: Registry, project: Path, tmp_path: Path
) -> None:
    target = registry.over_the_line(fresh_image(registry, megabytes=(3, 1)))
    engine_modern.only("small")
    registry.line.limit(bytes_per_second=400_000)
    app = console(engine_modern.host, tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await on_images(pilot, app)
        await pull_by_name(pilot, app, target)
        await pilot.press("4")
        await until(
            pilot,
            lambda: pulls(app) and "layers" in pulls(app)[0].headline and "%" in shown(app),
            what="progress in the list",
        )
        registry.line.limit(bytes_per_second=_STANDSTILL)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, RunDetails))
        await until(pilot, lambda: "Downloading" in shown(app) and " of " in shown(app), what="layers")
        await pilot.press("escape")
        await pull_again(pilot, app, target)
        assert len(pulls(app)) == 1
        await pilot.press("q")
        await answered(pilot, app, "enter", target[-20:])
        assert isinstance(app.screen, MainScreen), "Cancel has the focus"
        await pilot.press("1")
        registry.line.restore()
        await until(pilot, ended(app, RunState.OK), what=shown(app))
        await until(pilot, lambda: "unpacked)" in toasts(app), what="told wherever one is")
        whole = image_id(engine_modern, target)
        await pilot.press("2")
        await on_row(pilot, app, whole)  # it came by itself

        await pilot.press("i")
        lock = project / "gpuconsole.lock"
        await until(pilot, lambda: lock.exists() and target in lock.read_text(), what="a pin")
        await until(pilot, lambda: app.shelf and whole in app.shelf.holds, what="its mark")
        await until(pilot, lambda: f"Pinned {target}" in toasts(app) and str(lock) in toasts(app))
        await until(pilot, lambda: main(app).grid.rows[main(app).grid.cursor_index].cells[1].text == "✓")
        await pilot.press("d")
        await until(pilot, lambda: f"{target} stays: ./gpuconsole.lock pins it" in toasts(app), what="why it stays")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, ImageDetails) and "layers" in shown(app), what="its layers")
        text = shown(app)
        assert "./gpuconsole.lock" in text
        assert "3 MiB" in text or "2.9 MiB" in text
        assert "GPUs 0 1" in text
        await pilot.press("i")
        await answered(pilot, app, "y", "Take the pin away")
        await until(pilot, lambda: target not in lock.read_text(), what="no pin")
        await until(pilot, lambda: app.shelf and whole not in app.shelf.holds)
        await pilot.press("d")
        await answered(pilot, app, "y", "Remove this image?")
        await until(pilot, lambda: "It was removed" in shown(app), what="it is gone")
        await pilot.press("escape")
        await until(pilot, lambda: whole not in [row.key for row in main(app).grid.rows])
    assert engine_modern.docker("image", "inspect", target, check=False).returncode != 0


async def pull_again(pilot: Pilot[Any], app: ConsoleApp, name: str) -> None:
    await pilot.press("2")
    await pull_by_name(pilot, app, name)
    await until(pilot, lambda: "is being pulled already" in toasts(app))


async def test_pulls_that_fail_are_cancelled_or_ended_by_leaving(
    engine_modern: Engine, registry: Registry, tmp_path: Path
) -> None:
    fresh = fresh_image(registry, megabytes=(4,))
    target, other = registry.over_the_line(fresh), registry.over_the_line(fresh_image(registry, megabytes=(4,)))
    missing = f"{fresh.rpartition(':')[0]}:0.9"
    registry.line.limit(bytes_per_second=150_000)
    app = console(engine_modern.host, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await on_images(pilot, app)
        await pull_by_name(pilot, app, missing)
        await until(pilot, ended(app, RunState.FAILED), what="no such tag")
        await until(pilot, lambda: "→ The nearest it has: 1.0" in toasts(app), what="the nearest tag")
        await pilot.press("4", "enter")
        await until(pilot, lambda: isinstance(app.screen, RunDetails) and "what to do" in shown(app))
        assert "pulls it again" in " ".join(shown(app).split())
        await pilot.press("p")
        await until(pilot, lambda: [run.state for run in pulls(app)] == [RunState.FAILED] * 2, what="tried again")
        assert pulls(app)[0].subject == pulls(app)[1].subject
        await pilot.press("escape", "2")
        await pull_by_name(pilot, app, target)
        await pull_by_name(pilot, app, other)
        await until(pilot, lambda: len(app.desk.going) == 2, what="both at once")
        await until(pilot, lambda: [run.state for run in pulls(app)[:2]] == [RunState.RUNNING] * 2)
        await until(pilot, lambda: all(run.progress for run in pulls(app)[:2]), what="both go on")
        registry.line.limit(bytes_per_second=_STANDSTILL)
        await pilot.press("4")
        await on_row(pilot, app, pulls(app)[0].id)
        await until(pilot, lambda: "x Cancel" in shown(app).splitlines()[-1])
        await pilot.press("x")
        await until(pilot, ended(app, RunState.CANCELLED), what="cancelled")
        await until(pilot, lambda: "x Cancel" not in shown(app).splitlines()[-1], what="keys of an ended run")
        assert "p Pull" in shown(app).splitlines()[-1]
        assert "was not pulled" in pulls(app)[0].headline
        await pilot.press("ctrl+c")
        await answered(pilot, app, "ctrl+c", "Leave while this goes on?")
        assert len(app.desk.going) == 1, "ctrl+c answers no"
        await pilot.press("ctrl+c")
        await until(pilot, lambda: isinstance(app.screen, QuestionScreen))
        await pilot.press("y")
        await until(pilot, lambda: not app.is_running)
    registry.line.restore()
    assert engine_modern.docker("image", "inspect", target, check=False).returncode != 0
    assert engine_modern.docker("image", "inspect", other, check=False).returncode != 0


async def test_what_runs_here_what_could_be_pulled_and_what_nothing_needs(
    engine_modern: Engine, project: Path, tmp_path: Path
) -> None:
    engine_modern.only("cuda-env", "small")
    here, small = (engine_modern.load(name) for name in ("cuda-env", "small"))
    named, nameless = f"gpuconsole-test/left-{uuid.uuid4().hex[:8]}:1", f"left-{uuid.uuid4().hex[:8]}"
    for number in range(2):  # the second takes the name from the first
        engine_modern.docker("run", "--name", nameless, small, "sh", "-c", f"echo {number} {nameless} > /left")
        engine_modern.docker("commit", nameless, named)
        engine_modern.docker("rm", "--force", nameless)
    engine_modern.docker("create", "--name", "keeps", here, "true")
    app = console(engine_modern.host, tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: app.images is not None)
        assert app.shelf is None, "nobody pays for verdicts who does not look at images"
        await on_images(pilot, app)
        await until(pilot, lambda: "✓ runs" in shown(app) and "↓ " in shown(app), what="what could be pulled")
        await until(
            pilot,
            lambda: "1 keeps" in [row.cells[-1].text for row in main(app).grid.rows],
            what="the container that uses it",
        )
        text = shown(app)
        assert text.index(small[:20]) < text.index("↓ pytorch 2.9.1-cu128"), "what is here comes first"
        assert "? unknown" in text
        await pilot.press("f")
        await until(pilot, lambda: small[:20] not in shown(app) and "fits here" in shown(app))
        assert all(row.cells[2].text[2:] in ("runs", "with limits") for row in main(app).grid.rows)
        recommended = len(main(app).grid.rows)
        await pilot.press("a")
        await until(pilot, lambda: len(main(app).grid.rows) > 10 * recommended and "+ catalog" in shown(app))
        await pilot.press("escape")
        await until(pilot, lambda: "✖ will not run" in "".join(row.cells[2].text for row in main(app).grid.rows))
        wrong = next(row.key for row in main(app).grid.rows if "will not run" in row.cells[2].text)
        await on_row(pilot, app, wrong)
        await pilot.press("p")
        await answered(pilot, app, "n", "Pull what will not run here?")
        assert not pulls(app)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, CatalogDetails) and "p pulls it" in shown(app))
        assert "✖ will not run  on GPUs 0 1 (NVIDIA H200)" in shown(app)
        assert "→ instead" in shown(app)
        await pilot.press("escape", "a")
        await until(pilot, lambda: "↓" not in shown(app) and "here only" in shown(app))

        await pilot.press("D")
        await until(pilot, lambda: isinstance(app.screen, PruneScreen) and "1 image, " in shown(app))
        await pilot.press("a")
        await until(pilot, lambda: named in shown(app))
        assert "keeps was made from it" in shown(app)
        await pilot.press("a", "right")
        await pilot.press("enter")
        await until(pilot, lambda: "Removed " in toasts(app), what="told")
    left = engine_modern.docker("images", "--filter", "dangling=true", "-q").stdout.split()
    assert left == []
    assert engine_modern.docker("image", "inspect", named, check=False).returncode == 0


async def test_nothing_is_pulled_pinned_or_removed_where_one_only_looks(
    engine_modern: Engine, project: Path, tmp_path: Path
) -> None:
    engine_modern.only("small")
    small = engine_modern.load("small")
    app = console(engine_modern.host, tmp_path, readonly=True)
    async with app.run_test(size=(120, 36)) as pilot:
        await on_images(pilot, app)
        await on_row(pilot, app, image_id(engine_modern, small))
        await pilot.press("p", "i", "d", "D", "P", "c")
        await pilot.pause()
        assert isinstance(app.screen, MainScreen)
        assert not toasts(app)
        assert not app.runs
        last = shown(app).splitlines()[-1]
        assert "Pull" not in last
        assert "Remove" not in last
        assert "Fits" in last
        await pilot.press("question_mark")
        await until(pilot, lambda: "Only images that run on this machine" in shown(app))
        assert "Bring it here" not in shown(app)
    assert not (project / "gpuconsole.lock").exists()


async def test_a_catalog_or_lock_file_that_cannot_be_read_is_told_and_nothing_pinned_is_pruned(
    engine_modern: Engine, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine_modern.load("small")
    own = tmp_path / "team.toml"
    own.write_text("[[imagee]]\n")
    monkeypatch.setenv("GPUCONSOLE_CATALOG", str(own))
    (project / "gpuconsole.lock").write_text("[[malformed")
    app = console(engine_modern.host, tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await on_images(pilot, app)
        await until(pilot, lambda: "team.toml" in toasts(app), what="which catalog file")
        await until(pilot, lambda: "↓ pytorch" in shown(app), what="the shipped catalog all the same")
        own.write_text("")
        await pilot.press("D")
        await until(pilot, lambda: "It is not known which images are pinned" in toasts(app))
        assert isinstance(app.screen, MainScreen)
        app.desk.refresh_images()
        await until(pilot, lambda: app.shelf and "gpuconsole.lock" in app.shelf.problem, what="the next one")


async def test_a_reference_is_completed_judged_and_refused_before_it_is_pulled(
    engine_modern: Engine, tmp_path: Path
) -> None:
    app = console(engine_modern.host, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await on_images(pilot, app)
        await pilot.press("P")
        await until(pilot, lambda: isinstance(app.screen, PullScreen))
        await pilot.press(*"2.9.1", "space", *"12.8", "space", *"runtime")
        await until(pilot, lambda: DAY in shown(app), what="completion")
        await pilot.press("tab")
        line = app.screen.query_one("#reference", Input)
        assert line.value == DAY
        await until(pilot, lambda: "✓ runs" in shown(app), what="its verdict")
        line.value = "Not A Reference"
        await pilot.press("enter")
        await until(pilot, lambda: "→ Write it like" in shown(app), what="why not")
        line.value = "team/own:1"
        await until(pilot, lambda: "The catalog does not know it" in shown(app))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, MainScreen))
        assert not app.runs


async def test_a_build_is_weighed_as_one_types_and_its_failure_told_with_its_log(
    engine_modern: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = engine_modern.load("small")
    monkeypatch.setenv("GPUCONSOLE_BUILD_INDEX_URL", "http://127.0.0.1:9/")
    app = console(engine_modern.host, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await on_images(pilot, app)
        await pilot.press("B")
        await until(pilot, lambda: isinstance(app.screen, BuildScreen) and "✓ runs" in shown(app), what="a choice")
        assert "on nvidia/cuda:" in " ".join(shown(app).split())
        await pilot.press(*"2.9")
        await until(pilot, lambda: "CUDA 12.6, 12.8, 12.9, 13.0" in shown(app), what="completion")
        await pilot.press(*".1", "enter", *"11.8")
        await until(pilot, lambda: "There is no PyTorch 2.9.1 for CUDA 11.8" in shown(app))
        await until(pilot, lambda: "builds for CUDA 12.6, 12.8" in " ".join(shown(app).split()))
        await pilot.press("f5")
        assert isinstance(app.screen, BuildScreen), "what cannot be is not begun"
        await pilot.press("backspace", "backspace", "backspace", "backspace", *"12.8")
        await until(pilot, lambda: "torch 2.9.1 · CUDA 12.8" in shown(app))
        await pilot.press("tab")
        app.screen.query_one("#base", Input).value = base
        app.screen.query_one("#tag", Input).value = "gpuconsole-test/built:1"
        await until(pilot, lambda: shown(app).count("gpuconsole-test/built:1") == 2, what="weighed")
        await pilot.press("f5")
        await until(pilot, lambda: app.runs and app.runs[0].kind is RunKind.BUILD and app.runs[0].ended)
        assert app.runs[0].state is RunState.FAILED
        await until(pilot, lambda: "has no Python" in toasts(app), what="told wherever one is")
        await pilot.press("4", "enter")
        await until(pilot, lambda: isinstance(app.screen, RunDetails) and "what to do" in shown(app))
        assert f"base {base}" in " ".join(shown(app).split())
        assert app.desk.going == ()


async def test_images_of_a_recording_are_judged_for_its_machine_and_nothing_is_done_to_them(project: Path) -> None:
    (project / "gpuconsole.lock").write_text("[[malformed: it is this machine's, and none of the recording's")
    app = ConsoleApp(ReplayDesk(load(RECORDING)))
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: app.images and app.host_view and app.engine_info)
        await on_images(pilot, app)
        await until(pilot, lambda: "lab/pytorch" in shown(app) and "✓ runs" in shown(app))
        assert app.shelf is not None
        assert app.shelf.problem == ""
        for key in ("p", "i", "d", "D"):
            app.clear_notifications()
            await pilot.press(key)
            await until(pilot, lambda: "This is a recording" in toasts(app), what=key)
        assert not (project / "gpuconsole.lock").read_text().startswith("#")
