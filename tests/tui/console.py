"""The console on real parts, for tests: its services on a rig engine and a simulated NVML, its screen headless."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from textual.app import App
from textual.pilot import Pilot

from gpuconsole.services.desk import Desk
from gpuconsole.services.session import Session
from gpuconsole.tui.app import ConsoleApp
from tests.tui.quiet import quiet

PATIENCE_S = 60.0
"""However much else the machine has to do."""
_THINKING = {
    "action", "build-weighing", "completion", "draft", "profile", "profile-reach", "profile-saver", "weighing",
}  # fmt: skip
"""Threads that find something out for a screen, and end."""


def console(host: str | None, tmp_path: Path, **options: Any) -> ConsoleApp:
    """A console on the engine at ``host``; None takes the one that ``docker ps`` would."""
    return ConsoleApp(Desk(Session(host=host), runs_path=tmp_path / "runs.db"), **options)


async def until(pilot: Pilot[Any], true: Callable[[], object], *, seconds: float = PATIENCE_S, what: str = "") -> None:
    """Wait until ``true`` holds, and then until what follows from it is done and drawn too."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"not within {seconds} s: {what or true}\n{shown(pilot.app)}"
        await pilot.pause(0.05)
    await quiet(pilot.app)


async def sees(pilot: Pilot[Any], app: App[Any], *words: str) -> str:
    """Wait until the screen shows all the words, however its lines are broken; what it shows, in one line."""

    def text() -> str:
        return " ".join(shown(app).split())

    await until(pilot, lambda: all(word in text() for word in words), what=f"{words}")
    return text()


async def looks_no_more(pilot: Pilot[Any], app: ConsoleApp) -> None:
    """Have the console look at the GPUs no more, and wait until it has heard of a look that was under way."""
    await until(pilot, lambda: app.host_view, what="a look")
    assert app.desk._feed is not None
    sampler = app.desk._feed._sampler
    app.desk.pause()
    sampler._wake.set()
    await until(pilot, lambda: not sampler._wake.is_set(), what="the end of a look")


async def thought(pilot: Pilot[Any]) -> None:
    """Wait until nobody finds anything out behind the screen, and what was found out is shown."""
    await until(pilot, lambda: not {each.name for each in threading.enumerate()} & _THINKING, what="who finds out")


def shown(app: App[Any]) -> str:
    """The text on the screen, line by line."""
    width, height = app.size
    # Reading what is on the screen while a layout is due would keep that layout from being seen as a change.
    app.screen._refresh_layout()
    lines = app.screen._compositor.render_strips() if height else []
    return "\n".join("".join(segment.text for segment in strip) for strip in lines)[: (width + 1) * height]
