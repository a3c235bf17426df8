"""Text from outside is inert wherever the console shows it: no escapes, markup is only text, length does no harm."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpuconsole.core.errors import EngineRefused
from gpuconsole.host.model import Holder
from gpuconsole.services.runs import RunKind, RunState
from gpuconsole.tui.app import ConsoleApp
from gpuconsole.tui.messages import ActionDone, ActionFailed
from gpuconsole.tui.screens.main import MainScreen
from gpuconsole.tui.widgets.grid import Grid
from tests.cli.engines import OBEYED
from tests.rig.nvml import NvmlBox
from tests.tui.console import console, looks_no_more, shown, until
from tests.unit.canned import CannedEngine, Reply, answer
from tests.unit.test_engine_text import CONTAINER, HISTORY, ID, IMAGE, INFO, PICTURE, POISON, SUMMARY, poisoned

MARKUP = "[red][/][bold][@click=app.leave]x[/]"
LONG = "漢" + "y" * 4096
"""What is left of hostile text when nothing of it can be obeyed any more."""


def worse(value: Any, *, name: str = "") -> Any:
    """``value`` with markup and great length in every text that is no name to find things by."""
    if isinstance(value, dict):
        return {key: worse(item, name=key) for key, item in value.items()}
    if isinstance(value, list):
        return [worse(item, name=name) for item in value]
    return f"{value}{MARKUP}{LONG}" if isinstance(value, str) and POISON in value else value


def hostile(value: Any) -> bytes:
    return answer(worse(poisoned(value)))


@pytest.fixture
def engine_url(tmp_path: Path) -> Iterator[str]:
    """An engine of which every text is hostile."""
    log = f"{POISON}{MARKUP}{LONG}\n".encode()
    frame = b"\x01\0\0\0" + len(log).to_bytes(4, "big") + log
    replies: dict[str, Reply] = {
        "/containers/json": answer([worse(poisoned(SUMMARY))]),
        f"/containers/{ID}/json": hostile(CONTAINER),
        f"/containers/{ID}/logs": answer(None)[: answer(None).index(b"\r\n\r\n") + 4] + frame,
        "/start": answer({"message": worse(poisoned("it is broken"))}, status="500 Internal Server Error"),
        "/images/json": answer([{"Id": IMAGE, **worse(poisoned({"RepoTags": ["pytorch:1"], "Labels": {"k": "v"}}))}]),
        "/history": hostile(HISTORY),
        "/images/": hostile(PICTURE),
        "/info": hostile(INFO),
        "/volumes": answer({"Volumes": []}),
        "/events": b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n",
    }
    server = CannedEngine(tmp_path, replies)
    yield server.url
    server.close()


def inert(app: ConsoleApp, where: str) -> str:
    """What the screen shows, with nothing in it that a terminal would obey."""
    text = shown(app)
    assert not OBEYED & set(text.replace("\n", "")), f"{where}: {OBEYED & set(text)!r}"
    assert "pwned" not in text
    return text


@pytest.mark.parametrize("size", [(80, 24), (200, 50)])
async def test_a_hostile_engine_on_every_screen(
    engine_url: str, nvml: NvmlBox, tmp_path: Path, size: tuple[int, int]
) -> None:
    app = console(engine_url, tmp_path)
    async with app.run_test(size=size, notifications=True) as pilot:
        await until(pilot, lambda: app.containers and app.host_view and app.images)
        (view,) = app.containers or ()
        await pilot.pause(1.0)  # what looks at it in the background, for why it ended, must not fail either
        main = app.screen
        assert isinstance(main, MainScreen), shown(app)
        await until(pilot, lambda: main.query_one("#containers", Grid).rows)
        inert(app, "main")
        for key, what in (("enter", "details"), ("y", "copying"), ("d", "question"), ("l", "logs"), ("n", "form")):
            await pilot.press(key)
            await until(pilot, lambda: app.screen is not main, what=what)
            await pilot.pause()
            inert(app, what)
            while app.screen is not main:
                await pilot.press("escape")
                await pilot.pause()
        for key in ("2", "4"):
            await pilot.press(key)
            await pilot.pause()
            inert(app, f"list {key}")
        await pilot.press("2", "enter")
        await until(pilot, lambda: app.screen is not main)
        await pilot.pause()
        inert(app, "image")
        await pilot.press("escape")
        app.post_message(ActionFailed(EngineRefused(f"{view.container.error}{MARKUP}", hint=view.container.name)))
        app.post_message(ActionDone(f"Started {view.container.name}{MARKUP}"))
        await until(pilot, lambda: "[red]" in shown(app), what="the notice, its markup as text")
        inert(app, "notice")
        assert app.is_running


async def test_hostile_names_of_processes_and_runs(nvml: NvmlBox, tmp_path: Path) -> None:
    app = console(f"unix://{tmp_path}/none.sock", tmp_path)
    async with app.run_test(size=(120, 36)) as pilot:
        await looks_no_more(pilot, app)
        assert app.host_view is not None
        first, *rest = app.host_view.gpus
        holder = Holder(
            pid=1, gpu_index=0, gpu_uuid=first.gpu.uuid, memory_bytes=2**30, user=f"u{MARKUP}", command=MARKUP + LONG
        )
        run_id = app.desk.runs.begin(RunKind.CHECK, MARKUP + LONG, ID, MARKUP + LONG)
        app.desk.runs.end(run_id, RunState.FAILED, MARKUP + LONG, document=MARKUP)
        main = app.screen
        assert isinstance(main, MainScreen)
        for key in ("3", "4"):
            app.host_view = replace(app.host_view, gpus=(replace(first, holders=(holder,)), *rest))
            await pilot.press(key)
            await until(pilot, lambda: main.grid.rows and "[red]" in shown(app), what=f"list {key}")
            inert(app, f"list {key}")
            await pilot.press("enter")
            await until(pilot, lambda: app.screen is not main)
            await until(pilot, lambda: "[red]" in shown(app), what=f"details from list {key}")
            inert(app, f"details from list {key}")
            await pilot.press("escape")
            await until(pilot, lambda: app.screen is main)
