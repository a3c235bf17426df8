"""What stands on the terminal after whatever happened is what a console that draws all of it anew would write."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from textual._compositor import CompositorUpdate
from textual.pilot import Pilot
from textual.screen import Screen

from gpuconsole.gpu.model import GpuSnapshot
from gpuconsole.host.model import HostView
from gpuconsole.services.replay import Clock
from gpuconsole.services.replaydesk import ReplayDesk
from gpuconsole.services.replayfile import load
from gpuconsole.tui import theme
from gpuconsole.tui.app import ConsoleApp
from gpuconsole.tui.replaying import ReplayApp
from gpuconsole.tui.widgets.bare import Bare
from gpuconsole.tui.widgets.replayline import ReplayLine
from tests.tui import looking
from tests.tui.console import until
from tests.tui.looking import NOW, feed, still

__all__ = ["still"]
Make = Callable[..., ConsoleApp]
TWO = Path(__file__).parents[1] / "fixtures/two-tenants-h200.jsonl.gz"
_PARTS = re.compile(r"\x1b\[(\d+);(\d+)H|\x1b\[([\d;]*)m|(\n)|([^\x1b\n]+)")
KEYS = (
    "tab", "shift+tab", "down", "up", "j", "k", "end", "home", "pagedown", "left", "right", "o", "O", "m", "1", "2",
    "3", "4", "right_square_bracket", "f2", "f2", "r", "question_mark", "escape", "escape", "enter", "x", "y", "l", "n",
    "space", "z", "w", "t", "slash", "a", "p", "exclamation_mark", "colon", "f", "i", "h", "f4",
)  # fmt: skip
SIZES = ((80, 24), (120, 36), (200, 50), (81, 23), (60, 14), (30, 8))


class Glass:
    """What a terminal shows of all that was written to it: each cell's sign and how it looks."""

    def __init__(self, app: ConsoleApp) -> None:
        self._app = app
        self.cells: dict[tuple[int, int], tuple[str, str]] = {}

    def take(self, update: object) -> None:
        """Obey what is written."""
        if isinstance(update, CompositorUpdate):
            write(self.cells, update.render_segments(self._app.console))


def write(cells: dict[tuple[int, int], tuple[str, str]], text: str) -> None:
    """Write as a terminal does."""
    x = y = 0
    look = ""
    for row, column, style, line, words in _PARTS.findall(text):
        if row:
            x, y = int(column) - 1, int(row) - 1
        elif line:
            x, y = 0, y + 1
        elif words:
            for sign in words:
                cells[x, y] = sign, look
                for more in range(1, cell_len(sign)):
                    cells[x + more, y] = "", look
                x += cell_len(sign)
        else:
            look = "" if style == "0" else style


def anew(app: ConsoleApp) -> dict[tuple[int, int], tuple[str, str]]:
    """All of the screen, of which nothing is kept."""
    for screen in app.screen_stack:
        for widget in screen.walk_children(with_self=True):
            if isinstance(widget, Bare):
                widget._tones.forget()
                widget._kept_for = (-1, ())
            if hasattr(widget, "_styles_cache"):
                widget._styles_cache.clear()
    cells: dict[tuple[int, int], tuple[str, str]] = {}
    update = app.screen._compositor.render_full_update()
    write(cells, update.render_segments(app.console))
    return cells


def differing(app: ConsoleApp, seen: Glass) -> list[str]:
    """Cells that show something else than what they would if all was drawn anew."""
    width, height = app.size
    kept = dict(seen.cells)
    fresh = anew(app)
    return [
        f"{x},{y}: {kept.get((x, y))} instead of {fresh.get((x, y))}"
        for y in range(height)
        for x in range(width)
        if kept.get((x, y)) != fresh.get((x, y))
    ]


def moved(chance: random.Random, app: ConsoleApp) -> None:
    """Data that moves: use, memory, GPUs that come and go, containers that end."""
    view = looking.host(chance.choice((1, 3, 3, 3, 9, 16)))
    gpus = tuple(
        replace(each, gpu=replace(each.gpu, utilization_pct=chance.randint(0, 100), power_w=chance.uniform(70, 700)))
        for each in view.gpus
    )
    at = NOW + chance.randint(0, 60)
    app.host_view = HostView(GpuSnapshot(at, gpus=tuple(each.gpu for each in gpus), driver_version="580"), gpus=gpus)
    seen = list(looking.containers())
    chance.shuffle(seen)
    app.containers = tuple(seen[: chance.randint(0, len(seen))])


def glass_of(app: ConsoleApp) -> Glass:
    """A terminal that shows all that the console writes."""
    glass, display = Glass(app), app._display

    def seen(screen: Screen[Any], update: Any) -> None:
        if not app._batch_count:
            glass.take(update)
        display(screen, update)

    app._display = seen  # type: ignore[assignment,method-assign]
    return glass


async def settled(pilot: Pilot[Any]) -> None:
    """Everything is drawn that is to be drawn."""
    for _ in range(4):
        await pilot.pause()


async def act(chance: random.Random, pilot: Pilot[Any]) -> str:
    """Do something; what it was."""
    app: Any = pilot.app
    what = chance.choice(("key", "key", "key", "data", "data", "size", "theme", "click"))
    if what == "key":
        key = chance.choice(KEYS)
        await pilot.press(key)
        return key
    if what == "data":
        moved(chance, app)
    elif what == "size":
        size = chance.choice(SIZES)
        await pilot.resize_terminal(*size)
        return str(size)
    elif what == "theme" and not app.too_small:  # no key that does it is heard in a window that is too small
        app.theme = theme.full_name(chance.choice(theme.names()))
        return str(app.theme)
    elif what == "click":
        width, height = app.size
        x, y = chance.randrange(width), chance.randrange(height)
        await pilot.hover(offset=(x, y))
        await pilot.click(offset=(x, y))
        return f"click {x},{y}"
    return what


@pytest.mark.parametrize(("colours", "seed"), [("", 1), ("NO_COLOR", 2), ("16", 3)])
async def test_what_stands_there_is_what_would_be_drawn_anew(
    still: Make, monkeypatch: pytest.MonkeyPatch, colours: str, seed: int
) -> None:
    if colours == "NO_COLOR":
        monkeypatch.setenv("NO_COLOR", "1")
    elif colours:
        monkeypatch.setattr("textual.constants.COLOR_SYSTEM", "standard")
    chance = random.Random(f"{colours} {seed}")
    app = still()
    glass = glass_of(app)
    done: list[str] = []
    async with app.run_test(size=(120, 36)) as pilot:
        await feed(pilot)
        for _ in range(25):
            done.append(await act(chance, pilot))
            await settled(pilot)
            if not app.is_running:
                break
            wrong = differing(app, glass)
            if wrong:  # it may not have been drawn yet
                await pilot.pause(0.3)
                wrong = differing(app, glass)
            assert not wrong, "\n".join([f"after {done}", type(app.screen).__name__, *wrong[:20]])


async def test_the_mark_of_the_order_is_drawn_where_no_row_changes_place(still: Make) -> None:
    app = still()
    glass = glass_of(app)
    async with app.run_test(size=(120, 36)) as pilot:
        await feed(pilot)
        app.containers = looking.containers()[:1]
        await settled(pilot)
        for _ in range(8):
            await pilot.press("o")
            await settled(pilot)
            assert not differing(app, glass)


@pytest.mark.parametrize("theme_name", ["gpuconsole-light"])
async def test_in_a_recording_too(theme_name: str) -> None:
    recording = load(TWO)
    chance = random.Random(theme_name)
    app = ReplayApp(ReplayDesk(recording, clock=Clock(recording, speed=0.0)))
    glass = glass_of(app)
    async with app.run_test(size=(120, 36)) as pilot:
        await until(pilot, lambda: app.desk.started and app.screen.query(ReplayLine))
        app.theme = theme_name
        for _ in range(8):
            app.desk.seek(chance.uniform(0, recording.length_s))
            await until(pilot, lambda: app.desk.player.wanted_s is None)
            await pilot.press(chance.choice(("tab", "down", "o", "1", "3", "enter", "escape", "f2", "question_mark")))
            if chance.random() < 0.3:
                await pilot.resize_terminal(*chance.choice(SIZES[:3]))
            await pilot.pause(0.3)
            await until(pilot, lambda: not differing(app, glass), what="the screen as if drawn anew")
