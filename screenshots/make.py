"""Draw the pictures of the console from a recording: every screen, at three sizes, as SVG and PNG.

    python3 screenshots/make.py                       draws all of them anew, beside this file
    python3 screenshots/make.py --only main --size 80x24 -o /tmp/look
    python3 screenshots/make.py --check               says whether the pictures here are what would be drawn now

The recording is ``console-h200.jsonl.gz`` in ``tests/fixtures``, made on a machine with an NVIDIA H200 by
``screenshots/on_gpu.sh``. The same recording gives the same bytes: the clock is the recording's. PNG needs
``rsvg-convert`` (Debian: ``apt install librsvg2-bin fonts-dejavu-core``); ``--svg`` does without. With ``pngquant`` the
files become a third.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from textual.pilot import Pilot

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from gpuconsole.core.errors import ConsoleError  # noqa: E402
from gpuconsole.services.replay import Clock  # noqa: E402
from gpuconsole.services.replaydesk import ReplayDesk  # noqa: E402
from gpuconsole.services.replayfile import Recording, load  # noqa: E402
from gpuconsole.tui import theme  # noqa: E402
from gpuconsole.tui.app import ConsoleApp  # noqa: E402
from svg import picture  # noqa: E402

RECORDING = HERE.parent / "tests/fixtures/console-h200.jsonl.gz"
SIZES = ((80, 24), (120, 36), (200, 50))
FOLDER = "/home/me/project"
_PATIENCE_S = 60.0
_WIDTH_PX = {80: 990, 120: 1100, 200: 1500}
"""Width of a PNG by the columns it shows: readable, and no larger than a page."""

Walk = Callable[[Pilot[None]], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Scene:
    """One screen."""

    name: str
    alt: str
    walk: Walk
    """How one gets there from the main screen."""
    ready: str = ""
    """Words that stand on the screen once it is complete."""


def _keys(*keys: str) -> Walk:
    async def press(pilot: Pilot[None]) -> None:
        for key in keys:
            await pilot.press(key)
            await pilot.pause()

    return press


SCENES = (
    Scene("main", "The console: GPUs with their use, memory and state above, containers below", _keys()),
    Scene("container", "All about one container: GPUs, mounts, ports, environment, last check", _keys("enter")),
    Scene("gpu", "One GPU: its history, the processes on it, every reading", _keys("tab", "enter")),
    Scene("logs", "The output of a container, followed", _keys("l")),
    Scene("launch", "The launch form with the docker command it amounts to", _keys("n"), ready="docker run"),
    Scene("check", "What a check found inside a container", _keys("4", "enter")),
)


def text_of(app: ConsoleApp) -> str:
    """What stands on the screen."""
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip) for strip in strips)


async def _until(pilot: Pilot[None], true: Callable[[], object], what: str) -> None:
    end = time.monotonic() + _PATIENCE_S
    while not true():
        if time.monotonic() > end:
            raise SystemExit(f"make: {what} did not come within {_PATIENCE_S:.0f} s.")
        await pilot.pause(0.02)


async def _play(pilot: Pilot[None], desk: ReplayDesk, recording: Recording) -> None:
    """Let the console live through the recording, moment by moment, without waiting in between."""
    app = pilot.app
    assert isinstance(app, ConsoleApp)
    await _until(pilot, lambda: desk.started, "the first screen")
    for event in recording.events:
        if event.kind == "host":
            desk.go_to(event.at)
            seen = event.body.snapshot.taken_at  # the view itself is made anew, with what lies ahead of its memory
            await _until(pilot, lambda at=seen: _seen_at(app) == at, "a look at the GPUs")
    desk.go_to(recording.length_s)
    state = desk.player.state
    await _until(pilot, lambda: app.containers is state.containers and app.images is state.images, "the lists")
    await _until(pilot, lambda: app.runs == desk.runs.all() and app.link is state.link, "the runs")
    app.launched(_busiest(desk))  # under the cursor
    await pilot.pause()


def _seen_at(app: ConsoleApp) -> float | None:
    return app.host_view.snapshot.taken_at if app.host_view is not None else None


def _busiest(desk: ReplayDesk) -> str:
    """Id of the container that holds most GPU memory."""
    return max(desk.player.state.containers, key=lambda view: view.gpu_memory_bytes or 0).container.id


async def _steady(pilot: Pilot[None], ready: str) -> None:
    """Wait until the screen holds ``ready`` and changes no more."""
    app = pilot.app
    assert isinstance(app, ConsoleApp)
    seen, same = "", 0
    end = time.monotonic() + _PATIENCE_S
    while same < 4:
        await pilot.pause(0.12)
        now = text_of(app)
        same = same + 1 if now == seen and ready in now else 0
        seen = now
        if time.monotonic() > end:
            raise SystemExit(f"make: the screen does not come to rest, or never shows {ready!r}:\n{now}")


async def draw(recording: Recording, scene: Scene, size: tuple[int, int]) -> str:
    """The SVG of one screen at one size."""
    desk = ReplayDesk(recording, clock=Clock(recording, speed=0.0), marked=False)
    app = ConsoleApp(desk)
    async with app.run_test(size=size) as pilot:
        app.theme = "gpuconsole-dark"
        await _play(pilot, desk, recording)
        await scene.walk(pilot)
        output = desk.player.state.output.get(_busiest(desk), [])
        await _steady(pilot, output[-1].text if scene.name == "logs" and output else scene.ready)
        strips = app.screen._compositor.render_strips()
        colours = app.current_theme
        lines = [list(strip) for strip in strips]
        back, fill = colours.background or "#000000", colours.foreground or "#ffffff"
        return picture(lines, size, fill=fill, back=back, alt=f"{scene.alt} ({size[0]} columns, {size[1]} rows)")


@contextmanager
def fixed_surroundings() -> Iterator[None]:
    """What the pictures must not depend on: time zone, folder, letters drawn by lot, the terminal's variables."""
    wanted = {"TZ": "UTC", "COLORTERM": "truecolor", "TERM": "xterm-256color", "LANG": "C.UTF-8"}
    cleared = ("NO_COLOR", "COLORFGBG", "GPUCONSOLE_ASCII", "TMUX", "SSH_CONNECTION", "XDG_CONFIG_HOME")
    kept = {key: value for key, value in os.environ.items() if key not in cleared} | wanted
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.dict(os.environ, kept | {"XDG_STATE_HOME": folder, "XDG_CONFIG_HOME": folder}, clear=True),
        mock.patch("gpuconsole.tui.present.launchform.current_folder", return_value=FOLDER),
        mock.patch("gpuconsole.launch.request.secrets.choice", side_effect=lambda letters: letters[7]),
        mock.patch("gpuconsole.tui.theme.glyphs", return_value=theme.UNICODE),
    ):
        time.tzset()
        yield
    time.tzset()


def _png(svg: Path, columns: int) -> None:
    program = shutil.which("rsvg-convert")
    if program is None:
        raise SystemExit(
            "make: PNG pictures need rsvg-convert.\n  → Install it (Debian: apt install librsvg2-bin "
            "fonts-dejavu-core), or pass --svg."
        )
    png = str(svg.with_suffix(".png"))
    subprocess.run([program, "--width", str(_WIDTH_PX[columns]), "-o", png, str(svg)], check=True)
    smaller = shutil.which("pngquant")
    if smaller is not None:
        subprocess.run([smaller, "--force", "--strip", "--speed", "1", "--output", png, "48", png], check=True)


def main() -> int:
    """Draw, or compare; the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--recording", type=Path, default=RECORDING)
    parser.add_argument("-o", "--output", type=Path, default=HERE, help="folder of the pictures")
    parser.add_argument("--only", action="append", choices=[scene.name for scene in SCENES])
    parser.add_argument("--size", action="append", choices=[f"{width}x{height}" for width, height in SIZES])
    parser.add_argument("--svg", action="store_true", help="draw no PNG")
    parser.add_argument("--check", action="store_true", help="write nothing; 1 when a picture is not up to date")
    chosen = parser.parse_args()
    try:
        recording = load(chosen.recording)
    except ConsoleError as error:
        print(f"make: {error.message}\n  → {error.hint}", file=sys.stderr)
        return int(error.exit_code)
    stale = 0
    for scene in SCENES:
        for size in SIZES:
            name = f"{size[0]}x{size[1]}"
            if (chosen.only and scene.name not in chosen.only) or (chosen.size and name not in chosen.size):
                continue
            path = chosen.output / f"{scene.name}-{name}.svg"
            with fixed_surroundings():
                text = asyncio.run(draw(recording, scene, size))
            if chosen.check:
                fresh = path.is_file() and path.read_text(encoding="utf-8") == text
                stale += not fresh
                print(f"{'up to date' if fresh else 'STALE     '} {path.name}")
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            if not chosen.svg:
                _png(path, size[0])
            print(f"drew {path.name}")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
