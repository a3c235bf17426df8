"""What was opened and closed again leaves nothing behind: a console is open for days."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from dataclasses import replace

import pytest
from textual.screen import Screen
from textual.strip import Strip

from gpuconsole.tui import messages
from gpuconsole.tui.app import ConsoleApp
from gpuconsole.tui.screens.details import open_details
from tests.tui.console import until
from tests.tui.looking import feed, still

__all__ = ["still"]
OPENED: dict[str, Callable[[ConsoleApp], object]] = {
    "gpu": lambda app: app.host_view and app.host_view.gpus[0],
    "process": lambda app: app.host_view and app.host_view.gpus[0].holders[0],
    "container": lambda app: app.containers and app.containers[0],
    "image": lambda app: app.images and app.images[0],
    "run": lambda app: app.runs[1],
}
KEYS = {"launch": "n", "log": "l", "help": "question_mark"}


@pytest.mark.parametrize("name", [*OPENED, *KEYS])
async def test_a_screen_that_was_closed_is_let_go_of(still: Callable[..., ConsoleApp], name: str) -> None:
    app = still()
    async with app.run_test(size=(120, 36)) as pilot:
        await feed(pilot)
        await pilot.pause()
        closed: list[weakref.ref[Screen[object]]] = []
        for _ in range(2):
            if name in OPENED:
                open_details(app, OPENED[name](app))  # type: ignore[arg-type]
            else:
                await pilot.press(KEYS[name])
            await until(pilot, lambda: len(app.screen_stack) > 1)
            await pilot.pause()
            closed.append(weakref.ref(app.screen))
            await pilot.press("escape")
            await until(pilot, lambda: len(app.screen_stack) == 1)
        assert app.host_view is not None

        def gone() -> bool:
            assert app.host_view is not None
            snapshot = replace(app.host_view.snapshot, taken_at=app.host_view.snapshot.taken_at + 1)
            app.post_message(messages.HostLooked(replace(app.host_view, snapshot=snapshot)))
            gc.collect()
            # Textual itself remembers the newest one, as what the mouse was over or had the focus.
            return sum(one() is not None for one in closed) <= 1

        await until(pilot, gone, what=f"still there: {[one() for one in closed]}")


async def test_what_was_drawn_of_a_closed_screen_is_let_go_of_too(still: Callable[..., ConsoleApp]) -> None:
    app = still()
    async with app.run_test(size=(120, 36)) as pilot:
        await feed(pilot)
        assert app.host_view is not None
        kept = []
        for number in range(6):
            open_details(app, app.host_view.gpus[0])
            await pilot.pause()
            await pilot.press("escape")
            await until(pilot, lambda: len(app.screen_stack) == 1)
            snapshot = replace(app.host_view.snapshot, taken_at=app.host_view.snapshot.taken_at + number + 1)
            app.post_message(messages.HostLooked(replace(app.host_view, snapshot=snapshot)))
            await pilot.pause()
            gc.collect()
            kept.append(sum(type(each) is Strip for each in gc.get_objects()))
        # What is still on its way to be drawn may stand in one count; a screen that is kept stands in every later one.
        assert min(after - before for before, after in zip(kept, kept[2:], strict=False)) < 50, kept
