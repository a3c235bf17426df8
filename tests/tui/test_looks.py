"""How every screen looks, at every size, in every theme: pictures that a person looked at, kept beside this file.

After a change that is meant: ``pytest tests/tui/test_looks.py --snapshot-update``, and look at the pictures.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.segment import Segment
from textual.color import Color
from textual.pilot import Pilot
from textual.strip import Strip
from textual.widgets import Input

from gpuconsole.core.config import Config
from gpuconsole.engine.model import EngineInfo, GpuPath
from gpuconsole.launch.fields import Surroundings
from gpuconsole.launch.gpupath import GpuRoute
from gpuconsole.launch.gpus import GpuChoice
from gpuconsole.launch.options import LaunchOptions, read_options
from gpuconsole.launch.preflight import Facts, Said, examine
from gpuconsole.launch.request import build_request
from gpuconsole.services.feed import EngineLink
from gpuconsole.services.planning import LaunchPlan
from gpuconsole.services.preflight import _secrets
from gpuconsole.services.session import Session
from gpuconsole.services.weighing import Weight
from gpuconsole.tui import theme
from gpuconsole.tui.app import ConsoleApp
from gpuconsole.tui.asciifilter import AsciiFilter
from gpuconsole.tui.screens.details import open_details
from gpuconsole.tui.screens.launch import LaunchScreen
from gpuconsole.tui.screens.logs import LogScreen
from gpuconsole.tui.screens.question import QuestionScreen
from tests.tui import looking
from tests.tui.console import shown, thought, until
from tests.tui.formseen import weighed
from tests.tui.looking import feed, still

__all__ = ["still"]
Make = Callable[..., ConsoleApp]
Compare = Callable[..., bool]
SIZES = [(80, 24), (120, 36), (200, 50)]


async def main(pilot: Pilot[Any]) -> None:
    """The main screen, all known, one thing marked."""
    app = pilot.app
    assert isinstance(app, ConsoleApp)
    await feed(pilot)
    await settled(pilot)


async def settled(pilot: Pilot[Any]) -> None:
    """Everything found out that is looked up, and everything drawn that is to be drawn."""
    await pilot.pause()
    await thought(pilot)
    for _ in range(2):
        await pilot.pause()
    await pilot.wait_for_scheduled_animations()


def opened(key: str) -> Callable[[Pilot[Any]], Awaitable[None]]:
    """The main screen, then ``key``."""

    async def act(pilot: Pilot[Any]) -> None:
        await main(pilot)
        await pilot.press(key)
        await settled(pilot)

    return act


async def question(pilot: Pilot[Any]) -> None:
    """Whether a container is to be stopped."""
    await opened("x")(pilot)
    await until(pilot, lambda: isinstance(pilot.app.screen, QuestionScreen), what="the question")
    await settled(pilot)


async def gpu(pilot: Pilot[Any]) -> None:
    """The first GPU."""
    await main(pilot)
    app: Any = pilot.app
    open_details(app, app.host_view.gpus[0])
    await until(pilot, lambda: app.screen._past is not None, what="what was measured on it")
    await settled(pilot)


async def check(pilot: Pilot[Any]) -> None:
    """A check that failed."""
    await main(pilot)
    app: Any = pilot.app
    open_details(app, app.runs[1])
    await settled(pilot)


async def logs(pilot: Pilot[Any]) -> None:
    """Output with a search in it."""
    await main(pilot)
    await pilot.press("l")
    await until(pilot, lambda: isinstance(pilot.app.screen, LogScreen) and "710/1000" in shown(pilot.app))
    await pilot.press("slash", *"step", "enter")
    await settled(pilot)


async def launch(pilot: Pilot[Any]) -> None:
    """The form, weighed."""
    await main(pilot)
    await pilot.press("n")
    app: Any = pilot.app
    await until(pilot, lambda: isinstance(app.screen, LaunchScreen) and app.screen._weight is not None)
    await settled(pilot)


async def launch_wrong(pilot: Pilot[Any]) -> None:
    """The form with two fields that cannot be."""
    await launch(pilot)
    app: Any = pilot.app
    app.screen.fields.set("ports", "99999")
    app.screen.fields.set("shm", "much")
    await weighed(pilot, app)
    assert not app.screen._weight.plan
    await settled(pilot)


async def launch_findings(pilot: Pilot[Any]) -> None:
    """The form with a refusal, warnings and a hint, and what a key changed just now."""
    await launch(pilot)
    app: Any = pilot.app
    for key, text in (
        ("volumes", "/home/ada/llama:/workspace\n/etc:/host-etc"),
        ("ports", "0.0.0.0:8888:8888"),
        ("environment", "HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz123456"),
        ("shm", "64m"),
    ):
        app.screen.fields.set(key, text)
    await weighed(pilot, app)
    assert any(each.slug == "shm-size" for each in app.screen._remarks)
    app.screen.fields.go_to("shm")
    await pilot.press("f7")
    await weighed(pilot, app)
    assert not app.screen._mended
    await settled(pilot)


async def image(pilot: Pilot[Any]) -> None:
    """An image that is here, with its layers."""
    await main(pilot)
    app: Any = pilot.app
    open_details(app, app.images[0])
    await settled(pilot)
    app.screen._show_steps(looking.STEPS)
    await settled(pilot)


async def catalog_image(pilot: Pilot[Any]) -> None:
    """An image that is not here, and will not run."""
    await main(pilot)
    app: Any = pilot.app
    open_details(app, app.shelf.catalog[-1])
    await settled(pilot)


async def pull(pilot: Pilot[Any]) -> None:
    """A pull that is half way, layer by layer."""
    await pulling(pilot)
    app: Any = pilot.app
    open_details(app, app.runs[0])
    await settled(pilot)


async def pulling(pilot: Pilot[Any]) -> None:
    """The list of runs with a pull in it."""
    await main(pilot)
    app: Any = pilot.app
    run, state = looking.pull()
    app.runs = (run, *app.runs)
    app.desk.images.pull_state = lambda run_id: state
    await pilot.press("4")
    await settled(pilot)


async def pull_by_name(pilot: Pilot[Any]) -> None:
    """A name half typed."""
    await opened("2")(pilot)
    await pilot.press("P")
    await settled(pilot)
    await pilot.press(*"pytorch")
    await settled(pilot)


async def build(pilot: Pilot[Any]) -> None:
    """The form of a build, and what it comes to."""
    from gpuconsole.services.imagebuilds import ordered
    from gpuconsole.tui.screens.building import BuildScreen

    await opened("2")(pilot)
    await pilot.press("B")
    app: Any = pilot.app
    await until(pilot, lambda: isinstance(app.screen, BuildScreen) and "→" in shown(app), what="no engine")
    order = ordered({"torch": "2.9.1", "cuda": "12.8"}, {})
    app.screen._show(BuildScreen.Weighed(app.screen._number, order, looking.chosen(order)))
    await settled(pilot)


async def prune(pilot: Pilot[Any]) -> None:
    """What a prune would take."""
    from gpuconsole.tui.screens.pruning import PruneScreen

    await opened("2")(pilot)
    taken, kept = looking.prunable()
    pilot.app.push_screen(PruneScreen(taken, kept))
    await settled(pilot)
    await pilot.press("a")
    await settled(pilot)


async def leaving(pilot: Pilot[Any]) -> None:
    """The question before leaving ends a pull."""
    await main(pilot)
    app: Any = pilot.app
    type(app.desk).going = property(lambda desk: (f"pull of {looking.PULLED}",))
    try:
        await pilot.press("q")
        await until(pilot, lambda: isinstance(app.screen, QuestionScreen), what="the question")
        await settled(pilot)
    finally:
        del type(app.desk).going


SCREENS = {
    "image": image,
    "catalog-image": catalog_image,
    "pull": pull,
    "pulling": pulling,
    "pull-by-name": pull_by_name,
    "build": build,
    "prune": prune,
    "leaving": leaving,
    "main": main,
    "images": opened("2"),
    "processes": opened("3"),
    "runs": opened("4"),
    "container": opened("enter"),
    "gpu": gpu,
    "check": check,
    "logs": logs,
    "launch": launch,
    "launch-wrong": launch_wrong,
    "launch-findings": launch_findings,
    "help": opened("question_mark"),
    "question": question,
    "copy": opened("y"),
}


@pytest.fixture(autouse=True)
def canned_weight(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the form amounts to is planned by the real rules, on a machine that is always the same."""
    around = Surroundings(cwd="/home/ada/llama", home="/home/ada", environment={}, uid=1000, gid=1000,
                          engine_is_local=False)  # fmt: skip

    def weigh(session: Session, options: LaunchOptions, *, name: str | None = None, taken: object = ()) -> Weight:
        from gpuconsole.launch.spec import SpecInvalid

        try:
            spec = read_options(options, around)
        except SpecInvalid as error:
            return Weight(problems=error.problems)
        info = EngineInfo("unix:///var/run/docker.sock", name="docker", version="28.5.1")
        choice = GpuChoice(reason="GPU 2 is the freest: 140.0 GiB free, nobody holds it.")
        route = GpuRoute(GpuPath.NONE, "")
        request = build_request(spec, name=name or "llama-3f", info=info)
        told = Said("llama:latest means another image with every release; name a tag, or pin it.")
        facts = Facts(spec, request, info, choice, uid=1000, home="/home/ada", moving=told if spec.shm_bytes else None)
        facts = replace(facts, secrets_written=_secrets(spec))
        findings = examine(facts) if spec.ports else ()
        plan = LaunchPlan(spec, request, info, choice, route, findings=findings)
        return Weight(findings=findings, force=spec.force, plan=plan, image=looking.images()[0])

    monkeypatch.setattr("gpuconsole.tui.screens.launchweighing.weigh", weigh)
    monkeypatch.setattr("gpuconsole.tui.present.launchform.current_folder", lambda: "/home/ada/llama")


def strips_of(app: ConsoleApp) -> list[Strip]:
    """The rows of the screen, before the filters on their way to the terminal."""
    return app.screen._compositor.render_strips()


def same(compare: Compare, app: ConsoleApp, look: Callable[..., Any], size: tuple[int, int]) -> bool:
    """The picture is the one kept, and nothing in it stands beyond the edge."""

    async def before(pilot: Pilot[Any]) -> None:
        await look(pilot)
        for field in app.screen.query(Input):
            field.cursor_blink = False  # a cursor that blinks is in one picture and not in the next
        await pilot.pause()
        assert all(len(line.rstrip()) <= size[0] for line in shown(app).splitlines())

    return compare(app, terminal_size=size, run_before=before)


@pytest.mark.parametrize("name", [
    "processes", "runs", "check", "launch-wrong", "launch-findings", "copy", "image", "catalog-image", "pull",
    "pulling", "pull-by-name", "build", "prune", "leaving",
])  # fmt: skip
def test_screen_that_scales_like_another(snap_compare: Compare, still: Make, name: str) -> None:
    assert same(snap_compare, still(), SCREENS[name], (80, 24))


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("name", ["main", "images", "container", "gpu", "logs", "launch", "help", "question"])
def test_screen(snap_compare: Compare, still: Make, name: str, size: tuple[int, int]) -> None:
    assert same(snap_compare, still(), SCREENS[name], size)


@pytest.mark.parametrize("colours", theme.names())
def test_theme(snap_compare: Compare, still: Make, colours: str) -> None:
    assert same(snap_compare, still(config=Config(theme=colours)), SCREENS["main"], (80, 24))


@pytest.mark.parametrize("name", ["main", "images", "gpu", "launch"])
def test_ascii(snap_compare: Compare, still: Make, name: str) -> None:
    async def look(pilot: Pilot[Any]) -> None:
        await SCREENS[name](pilot)
        written = [
            strip.apply_filter(each, Color(0, 0, 0)) for strip in strips_of(app) for each in app.get_line_filters()
        ]
        signs = {sign for strip in written for sign in strip.text if not sign.isascii()}
        assert not signs, signs

    app = still(config=Config(ascii=True))
    assert same(snap_compare, app, look, (80, 24))


@given(st.text())
def test_every_sign_becomes_ascii_of_the_same_width(text: str) -> None:
    (written,) = AsciiFilter().apply([Segment(text)], Color(0, 0, 0))
    assert written.text.isascii()
    assert cell_len(written.text) == sum(cell_len(sign) for sign in text)


@pytest.mark.parametrize("name", ["main", "images", "question"])
def test_without_colours(snap_compare: Compare, still: Make, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert same(snap_compare, still(), SCREENS[name], (80, 24))


def test_too_small(snap_compare: Compare, still: Make) -> None:
    assert same(snap_compare, still(), main, (20, 5))


@pytest.mark.parametrize("name", ["container", "gpu", "logs", "launch", "question"])
async def test_a_window_made_tiny_and_large_again_is_borne(still: Make, name: str) -> None:
    app = still()
    async with app.run_test(size=(80, 24)) as pilot:
        await SCREENS[name](pilot)
        before = shown(app).splitlines()[:-1]
        await pilot.resize_terminal(20, 5)
        await until(pilot, lambda: app.size == (20, 5))
        await settled(pilot)
        assert all(len(line) <= 20 for line in shown(app).splitlines())
        await pilot.resize_terminal(80, 24)
        # A question covers the keys of the screen below it, which are those of another focus meanwhile.
        await until(pilot, lambda: shown(app).splitlines()[:-1] == before, what="as it was before")


def test_many_gpus(snap_compare: Compare, still: Make) -> None:
    async def look(pilot: Pilot[Any]) -> None:
        await feed(pilot, gpus=16)
        await settled(pilot)

    app = still()
    assert same(snap_compare, app, look, (80, 24))


def test_marked(snap_compare: Compare, still: Make) -> None:
    async def look(pilot: Pilot[Any]) -> None:
        await main(pilot)
        await pilot.press("r", "shift+tab", "r")
        app.clear_notifications()
        await settled(pilot)

    app = still()
    assert same(snap_compare, app, look, (80, 24))


def test_nothing_there(snap_compare: Compare, still: Make) -> None:
    async def look(pilot: Pilot[Any]) -> None:
        app.link = EngineLink(False, "unix:///var/run/docker.sock", "No container engine answers at "
                              "unix:///var/run/docker.sock.", "Start it: sudo systemctl start docker.",
                              looking.NOW - 40)  # fmt: skip
        from dataclasses import replace

        empty = looking.host(0)
        problem = "This machine has no NVIDIA driver: libnvidia-ml.so.1 is not there."
        app.host_view = replace(empty, snapshot=replace(empty.snapshot, problem=problem, hint="Install it."))
        await settled(pilot)

    app = still()
    assert same(snap_compare, app, look, (80, 24))
