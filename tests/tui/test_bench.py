"""Benchmarks in the console: begun by two keys, followed, kept, compared; the rest on runs of an H200."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Button, Input

from gpuconsole.core.config import Config
from gpuconsole.launch.spec import GpuWishKind
from gpuconsole.probes.records import RunEnd
from gpuconsole.services.benchdesk import BenchDesk
from gpuconsole.services.benchstore import BenchStore
from gpuconsole.services.benchtargets import BenchTarget
from gpuconsole.services.checkqueue import CheckQueue
from gpuconsole.services.runs import RunKind, Runs, RunState
from gpuconsole.tui.app import ConsoleApp
from gpuconsole.tui.screens.bench import BenchScreen
from gpuconsole.tui.screens.benchask import BenchAsk
from gpuconsole.tui.screens.benchcompare import CompareScreen
from gpuconsole.tui.screens.benchpast import PastScreen
from gpuconsole.tui.screens.benchpick import PickScreen
from gpuconsole.tui.screens.details import open_details
from gpuconsole.tui.screens.gpu import GpuScreen
from gpuconsole.tui.screens.main import MainScreen
from gpuconsole.tui.screens.question import QuestionScreen
from gpuconsole.tui.widgets.lines import Lines
from gpuconsole.tui.widgets.strip import GpuStrip
from tests.rig.engines import Engine
from tests.rig.nvml import NvmlBox
from tests.tui import benchseen, looking
from tests.tui.console import console, shown, until
from tests.tui.looking import NOW, feed, still

__all__ = ["still"]
Make = Callable[..., ConsoleApp]
UUID = looking.host().gpus[0].gpu.uuid or ""


def text_in(app: ConsoleApp, widget: str = "#facts") -> str:
    """What a screen says, also below its edge, words with one space between."""
    found = app.screen.query(widget).results(Lines)  # none, while the screen is being made
    lines = [line for each in found for line in each.lines]
    return " ".join(" ".join("".join(cell.text for cell in line) for line in lines).split())


async def test_a_container_is_measured_from_its_row_to_its_record(
    engine_modern: Engine, nvml: NvmlBox, tmp_path: Path
) -> None:
    engine_modern.docker("run", "-d", "--name", "train", engine_modern.load("pytorch"), "sleep", "1000")
    app = console(engine_modern.host, tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: app.containers and any(v.container.name == "train" for v in app.containers))
        await pilot.press("b")
        await until(pilot, lambda: isinstance(app.screen, BenchAsk) and app.focused is not None)
        assert "the CPU: it has no GPU" in text_in(app, "#targets")
        app.screen.query_one("#only", Input).value = "launch"
        await until(pilot, lambda: "quick launch; 60 s at most" in text_in(app, "#plan"))
        await pilot.press("enter", "b")  # the second one has the whole plan, and waits
        await until(pilot, lambda: isinstance(app.screen, BenchAsk) and app.focused is not None)
        await pilot.press("enter", "4")
        main = app.screen
        assert isinstance(main, MainScreen)
        await until(pilot, lambda: len([run for run in app.runs if run.kind is RunKind.BENCH]) == 2)
        first = app.runs[-1]
        await until(pilot, lambda: app.runs[0].headline == "waits for the bench of train", what="the second waits")
        await until(pilot, lambda: " left · " in shown(app), what="its time left stands in the list")
        assert app.desk.cancel(app.runs[0].id)
        await until(pilot, lambda: app.runs[0].state is RunState.CANCELLED)
        open_details(app, first)
        await until(pilot, lambda: isinstance(app.screen, BenchScreen))
        screen = app.screen
        await until(pilot, lambda: "[launch]" in text_in(app), what="what it is at")
        assert "x Cancel" in shown(app)
        await pilot.press("escape")  # leaving does not end it
        assert not next(run for run in app.runs if run.id == first.id).ended
        open_details(app, first)
        await until(pilot, lambda: "B04 launch (CPU)" in text_in(app) and "GRADE" in text_in(app))
        assert app.screen is not screen
        assert text_in(app).startswith("All of it ran on the CPU: torch is a CPU build.")
        assert "x Cancel" not in shown(app)
        await pilot.press("v")
        await until(pilot, lambda: any("No other run" in str(each.message) for each in app._notifications))
        await pilot.press("escape", "1")
        open_details(app, next(view for view in app.containers or () if view.container.name == "train"))
        await until(pilot, lambda: "bench" in text_in(app) and "All of it ran on the CPU" in text_in(app))
        await pilot.press("b")
        await until(pilot, lambda: isinstance(app.screen, BenchAsk) and app.focused is not None)
        app.screen.query_one("#only", Input).value = "launch loader"
        await pilot.press("enter")
        await until(pilot, lambda: app.runs[0].headline and not app.runs[0].ended)
        last = app.runs[0].id
        await until(pilot, lambda: (live := app.desk.live(last)) and live.benchmarks, what="a result")
    # The console is left while it measures: what it has until then is kept.
    kept = BenchStore(path=tmp_path / "runs.db")
    cut, run = kept.all()
    kept.close()
    assert run.subject == cut.subject == "train"
    assert {record.id for record in run.benchmarks} == {"bench.launch"}
    assert cut.end is RunEnd.CANCELLED
    assert any(record.measured for record in cut.benchmarks)
    remembered = next(each for each in Runs(path=tmp_path / "runs.db").all() if each.id == last)
    assert remembered.state is RunState.CANCELLED
    assert remembered.headline.startswith("Cancelled before its end.")
    assert not engine_modern.docker("exec", "train", "sh", "-c", "ls /tmp").stdout.strip()


@pytest.fixture
def seen(still: Make, tmp_path: Path) -> Make:
    """Makes consoles in which an H200 was measured four times, the last time slowly."""

    def make(**options: Any) -> ConsoleApp:
        app = still(**options)
        path = tmp_path / "bench.db"
        store = BenchStore(path=path)
        runs = benchseen.made(NOW, speeds=(1.0, 0.99, 1.01, 0.8), uuid=UUID, store=store)
        store.close()
        app.desk._benches = BenchDesk(app.desk.session, app.desk._checks, path=path)
        app.desk.runs.show([benchseen.listed(run) for run in runs])
        return app

    return make


async def fed(pilot: Pilot[Any], app: ConsoleApp) -> None:
    """Everything is known."""
    await feed(pilot)
    app.runs = app.desk.runs.all()
    await pilot.pause()


async def results(pilot: Pilot[Any], app: ConsoleApp) -> None:
    """The newest run, open, its results read."""
    await fed(pilot, app)
    open_details(app, next(run for run in app.runs if run.kind is RunKind.BENCH))
    await until(
        pilot, lambda: isinstance(app.screen, BenchScreen) and "B01 mm" in text_in(app) and "Why" in text_in(app)
    )


async def test_a_run_is_compared_with_the_one_before_and_any_other(seen: Make) -> None:
    app = seen()
    async with app.run_test(size=(80, 24)) as pilot:
        await results(pilot, app)
        assert text_in(app).startswith("The GPU's arithmetic is far below what it should be.")
        await pilot.press("v")
        await until(pilot, lambda: isinstance(app.screen, CompareScreen))
        assert "A 2abc2def" in text_in(app)
        assert "▲ slower" in text_in(app)
        few = len(app.screen.query_one("#facts", Lines).lines)
        await pilot.press("a")
        assert len(app.screen.query_one("#facts", Lines).lines) > few
        await pilot.press("left_square_bracket")
        await until(pilot, lambda: "A 1abc1def" in text_in(app))
        assert "] Newer" in shown(app)
        await pilot.press("left_square_bracket", "left_square_bracket")  # there is nothing older
        await until(pilot, lambda: "A 0abc0def" in text_in(app))
        await pilot.press("o")
        await until(pilot, lambda: isinstance(app.screen, PickScreen) and "ALIKE" in shown(app))
        assert "2027-01-11 08:00" in shown(app)
        await pilot.press("up", "up", "enter")
        await until(pilot, lambda: isinstance(app.screen, CompareScreen) and "A 2abc2def" in text_in(app))
        await pilot.press("o", "escape", "escape", "h")
        await until(pilot, lambda: isinstance(app.screen, PastScreen) and "542 TFLOP/s" in text_in(app))
        assert "-20.8 %" in text_in(app)


async def test_a_gpu_tells_its_past_and_is_measured_by_what_has_it(seen: Make) -> None:
    app = seen()
    begun: list[Any] = []
    async with app.run_test(size=(80, 24)) as pilot:
        await fed(pilot, app)
        app.desk.benches.container = lambda *given: begun.append(given) or ""  # type: ignore[method-assign,func-returns-value]
        app.desk.benches.image = lambda *given: begun.append(given) or ""  # type: ignore[method-assign,func-returns-value]
        assert app.host_view is not None
        open_details(app, app.host_view.gpus[0])
        await until(pilot, lambda: isinstance(app.screen, GpuScreen) and "h shows them" in text_in(app, "#more"))
        assert "542 TFLOP/s" in text_in(app, "#more")
        await pilot.press("b", "enter")
        await until(pilot, lambda: begun)
        assert begun.pop()[0].name == "llama-ft"
        await pilot.press("escape")
        app.screen.query_one(GpuStrip).focus()
        await pilot.press("b")
        await until(pilot, lambda: isinstance(app.screen, BenchAsk))
        await pilot.press("down", "down", "left", "enter")  # an image, in full
        await until(pilot, lambda: begun)
        name, image_id, gpus, wish = begun.pop()
        assert name.startswith("nvcr.io/")
        assert image_id == looking.images()[1].id
        assert (gpus.kind, gpus.devices) == (GpuWishKind.DEVICES, (UUID,))
        assert wish.full


async def test_what_cannot_be_measured_is_not_offered(seen: Make) -> None:
    app = seen(readonly=True)
    async with app.run_test(size=(80, 24)) as pilot:
        await fed(pilot, app)
        assert not app.screen.check_action("bench", ())
        await pilot.press("b")
        assert isinstance(app.screen, MainScreen)
    app = seen(config=Config(keys={"container.bench": ("t",)}))
    async with app.run_test(size=(80, 24)) as pilot:
        await fed(pilot, app)
        await pilot.press("t")
        await until(pilot, lambda: isinstance(app.screen, BenchAsk))
        await pilot.press("escape", "down", "down")  # to one that has ended
        await until(pilot, lambda: isinstance(app.screen, MainScreen) and app.screen.listing.grid.cursor_index == 2)
        assert not app.screen.check_action("bench", ())
        assert app.engine_info is not None
        app.engine_info = replace(app.engine_info, local=False)  # its GPUs are not those of this machine
        await pilot.press("2", "b")
        await until(pilot, lambda: isinstance(app.screen, BenchAsk) and "one GPU" in text_in(app, "#targets"))
        assert "H200" not in text_in(app, "#targets")
        await pilot.press("escape")
        app.containers = ()
        await pilot.pause()
        app.screen.query_one(GpuStrip).focus()
        await pilot.press("b")
        await until(
            pilot, lambda: any("No running container has this GPU" in str(n.message) for n in app._notifications)
        )


@pytest.mark.parametrize("size", [(40, 12), (60, 16), (80, 24)])
async def test_the_question_can_be_answered_in_any_window(seen: Make, size: tuple[int, int]) -> None:
    app = seen()
    async with app.run_test(size=size) as pilot:
        await fed(pilot, app)
        app.push_screen(
            BenchAsk("Benchmark it", [BenchTarget(f"GPU {n}", "held by others", shared=True) for n in range(16)])
        )
        await until(pilot, lambda: isinstance(app.screen, BenchAsk) and app.focused is not None)
        await pilot.press(*["down"] * 9)
        await pilot.pause()
        button = app.screen.query_one("#quick", Button)
        assert app.screen.region.contains_region(button.region)
        assert "Quick" in shown(app)
        app.screen.query_one("#only", Input).value = "nonsense"
        await pilot.pause()
        app.screen.query_one("#only", Input).focus()
        await pilot.pause()
        assert "nonsense" in shown(app)
        if size[1] >= 24:
            assert "There is no benchmark nonsense." in shown(app)
            assert "GPU 9" in shown(app)


async def test_names_of_no_benchmark_are_refused_where_they_are_typed(seen: Make) -> None:
    app = seen()
    async with app.run_test(size=(80, 24)) as pilot:
        await fed(pilot, app)
        await pilot.press("b")
        await until(pilot, lambda: isinstance(app.screen, BenchAsk))
        app.screen.query_one("#only", Input).focus()
        await pilot.press(*"nonsense", "enter")
        assert isinstance(app.screen, BenchAsk)
        assert "There is no benchmark nonsense." in text_in(app, "#plan")
        app.screen.query_one("#quick", Button).focus()
        await pilot.press("enter")
        assert isinstance(app.screen, BenchAsk)


async def test_another_users_container_asks_for_its_name_and_leaving_asks_too(
    seen: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = seen()
    async with app.run_test(size=(80, 24)) as pilot:
        await fed(pilot, app)
        view = next(each for each in app.containers or () if "mei" in each.container.name)
        open_details(app, view)
        await pilot.pause()
        await pilot.press("b", "enter")
        await until(pilot, lambda: isinstance(app.screen, QuestionScreen))
        assert app.screen.query_one("#yes", Button).disabled
        begun: list[Any] = []
        app.desk.benches.container = lambda *given: begun.append(given) or ""  # type: ignore[method-assign,func-returns-value]
        await pilot.press("escape", "b", "enter")
        await until(pilot, lambda: isinstance(app.screen, QuestionScreen))
        await pilot.press("y")
        assert not begun
        app.screen.query_one("#word", Input).value = view.container.name
        await until(pilot, lambda: not app.screen.query_one("#yes", Button).disabled)
        app.screen.query_one("#yes", Button).press()
        await until(pilot, lambda: begun)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, MainScreen))
        monkeypatch.setattr(CheckQueue, "benches", property(lambda queue: ("bench of llama-ft",)))
        await pilot.press("q")
        await until(pilot, lambda: isinstance(app.screen, QuestionScreen))
        words = shown(app)
        assert "bench of llama-ft" in words
        assert "What a benchmark has measured until now is" in words
        assert "Layers" not in words


async def test_a_run_whose_record_is_gone_tells_what_the_list_knows(seen: Make, tmp_path: Path) -> None:
    app = seen()
    (tmp_path / "bench.db").unlink()
    async with app.run_test(size=(80, 24)) as pilot:
        await fed(pilot, app)
        run = next(run for run in app.runs if run.kind is RunKind.BENCH)
        open_details(app, replace(run))
        await until(pilot, lambda: isinstance(app.screen, BenchScreen) and "of datasheet" in text_in(app))
        assert "v Compare" not in shown(app)
