"""A run of benchmarks: live while it runs, with all that was measured and what it means when it is over."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType

from gpuconsole.core.text import duration
from gpuconsole.tui import actions
from gpuconsole.tui.present import bench, benchpast, details
from gpuconsole.tui.present.cell import Cell
from gpuconsole.tui.screens.details import RunDetails
from gpuconsole.tui.screens.subjects import RunSubject

if TYPE_CHECKING:
    from gpuconsole.probes.benchrecords import BenchRun
    from gpuconsole.tui.app import ConsoleApp


class BenchScreen(RunDetails):
    """A benchmark under way, or its results."""

    app: ConsoleApp
    subject: RunSubject
    HELP = (
        "What limits the box stands first, then each result with its grade and the share that decided it: of sibling "
        "GPUs, of this GPU's own history, of a reference, of the datasheet, or of a rule of thumb. Noisy and disturbed "
        "results are not judged. {bench.compare} compares with an earlier run, {bench.past} shows them over time."
    )
    BINDINGS: ClassVar[list[BindingType]] = [*actions.bindings(actions.BENCH)]

    def __init__(self, subject: RunSubject) -> None:
        super().__init__(subject)
        self._asked = False
        self._result: BenchRun | None = None
        self._drawn: tuple[int, list[details.Line]] | None = None
        """The results in rows of so many cells: they change no more."""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """What needs results is there once there are some."""
        if action in ("compare", "past"):
            return self._result is not None and any(record.measured for record in self._result.benchmarks)
        return super().check_action(action, parameters)

    def look(self) -> None:
        """Take the newest of it; read its results once it is over."""
        super().look()
        run = self.subject.thing
        if run.ended and not self._asked:
            self._asked = True
            self.prepare(partial(self.app.desk.benches.result, run), self._loaded)

    def _loaded(self, result: BenchRun | None) -> None:
        self._result = result
        self._draw()
        self.refresh_bindings()

    def lines(self, width: int) -> list[details.Line]:
        """Its state, and what is known of it."""
        app, run = self.app, self.subject.thing
        if self._result is not None:
            when = f"{duration(app.now() - run.started_at)} ago, took {duration((run.ended_at or 0) - run.started_at)}"
            cut = f"  {run.state.value}" if self._result.partial else ""
            state: details.Line = (Cell(f" {when}", "dim"), Cell(cut, "watch"))
            if self._drawn is None or self._drawn[0] != width:
                self._drawn = width, bench.ended(self._result, app.glyphs, width=width)
            return [*self._drawn[1], (), state]
        live = app.desk.live(run.id)
        if run.ended or live is None:
            return super().lines(width)
        if not live.plan:
            return [(Cell(f" {part}", "info"),) for part in details.wrapped(run.headline, width - 2)]
        return bench.going(live, app.glyphs, now=app.now(), width=width, progress=run.progress)

    def action_compare(self) -> None:
        """Beside the nearest run before it."""
        if (run := self._result) is not None:
            self.prepare(partial(self._others, run), self._compare)

    def _others(self, run: BenchRun) -> tuple[BenchRun, BenchRun | None, tuple[BenchRun, ...]]:
        runs = self.app.desk.benches.all()
        return run, benchpast.nearest(runs, run), runs

    def _compare(self, found: tuple[BenchRun, BenchRun | None, tuple[BenchRun, ...]]) -> None:
        from gpuconsole.tui.screens.benchcompare import CompareScreen

        run, other, runs = found
        if other is None:
            words = "No other run is remembered yet: the next one can be compared with this one."
            self.app.notify(words, markup=False, timeout=4)
        else:
            self.app.push_screen(CompareScreen(run, other, runs))

    def action_past(self) -> None:
        """What was measured on the same GPUs."""
        from gpuconsole.tui.screens.benchpast import PastScreen

        if self._result is not None:
            gpus = tuple(gpu.uuid for gpu in self._result.machine.gpus if gpu.uuid)
            cpu = {record.id for record in self._result.benchmarks if record.measured and record.device == "cpu"}
            self.app.push_screen(PastScreen(gpus, " · ".join(self._names(self._result)), cpu=cpu))

    @staticmethod
    def _names(run: BenchRun) -> list[str]:
        names = dict.fromkeys(gpu.name for gpu in run.machine.gpus if gpu.name)
        return list(names) or [run.machine.cpu or "CPU"]
