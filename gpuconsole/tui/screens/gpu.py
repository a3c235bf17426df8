"""One GPU: how it is now, how it was, who holds it, and every fact."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll

from gpuconsole.gpu.forecast_words import about
from gpuconsole.host.model import GpuView, Holder
from gpuconsole.services.ringing import process_key
from gpuconsole.services.runs import RunKind
from gpuconsole.tui import actions, sheets
from gpuconsole.tui.present import benchpast, details, gpupast, process
from gpuconsole.tui.present.cell import Cell
from gpuconsole.tui.screens.detailing import DetailsScreen
from gpuconsole.tui.screens.subjects import GpuSubject
from gpuconsole.tui.widgets.grid import Grid
from gpuconsole.tui.widgets.keyline import KeyLine
from gpuconsole.tui.widgets.lines import Lines

if TYPE_CHECKING:
    from gpuconsole.services.benchhistory import Past
    from gpuconsole.tui.app import ConsoleApp


class GpuScreen(DetailsScreen):
    """A GPU, with its history and the processes on it."""

    CSS_PATH = sheets.of("details", "gpu")
    app: ConsoleApp
    subject: GpuSubject
    HELP = "Enter opens the process under the cursor; page keys scroll; {gpu.span} shows a longer or shorter past."
    AUTO_FOCUS = "#holders"
    BINDINGS: ClassVar[list[BindingType]] = [
        *actions.bindings(actions.GPU),
        *actions.bindings(actions.PROCESS),
        *actions.bindings(action for action in actions.CONTAINER if action.method in ("copy", "ring")),
        Binding("pagedown,space", "scroll_page(1)", "Page down", show=False, priority=True),
        Binding("pageup", "scroll_page(-1)", "Page up", show=False, priority=True),
    ]

    def __init__(self, subject: GpuSubject) -> None:
        super().__init__(subject)
        self._span_s = gpupast.SPANS_S[0]
        self._span_chosen = False
        """By a person; else it grows with what is to be seen."""
        self._charted: object = None
        """What the charts on the screen were made from."""
        self._holders: dict[str, Holder] = {}
        self._grid = Grid(process.COLUMNS, id="holders")
        self._past: tuple[Past, ...] | None = None
        """What was measured on it; None before that is known."""
        self._past_of: str | None = ""
        """Id of the newest benchmark that is in it."""

    def compose(self) -> ComposeResult:
        """The parts, top to bottom."""
        yield Lines(id="top")
        with VerticalScroll(id="body"):
            yield Lines(id="facts")
            yield Lines(id="charts")
            yield self._grid
            yield Lines(id="more")
        yield KeyLine(id="keys")

    @property
    def thing(self) -> Holder | None:
        """The process under the cursor."""
        key = self._grid.cursor
        return self._holders.get(key) if key is not None else None

    @property
    def copyable(self) -> GpuView:
        """The GPU itself, also when no process is on it."""
        return self.subject.thing

    @property
    def benchable(self) -> GpuView | None:
        """The GPU, until it is gone."""
        return None if self._gone else self.subject.thing

    @property
    def ringable(self) -> GpuView | None:
        """The GPU, until it is gone."""
        return None if self._gone else self.subject.thing

    def lines(self, width: int) -> list[details.Line]:
        """How it is now; the other facts stand below."""
        return self.subject.lines_now(width, gone=self._gone)

    def _draw(self) -> None:
        super()._draw()
        if not self.is_mounted or not self.size.width:
            return
        view = self.subject.thing
        width = self.size.width - 1
        self._draw_charts(view, width)
        self._holders = {process_key(holder): holder for holder in view.holders}
        grid = self._grid
        rows = (process.row(holder, now=self.app.now(), glyphs=self.app.glyphs) for holder in view.holders)
        grid.show(tuple(rows))
        if grid.display is not bool(view.holders):
            grid.display = bool(view.holders)
            self.query_one("#holders" if view.holders else "#body").focus()
        none = [] if view.holders else [details.field("processes", self._nobody(view))]
        highest = gpupast.highest_field(view, self.app.history, now=self.app.now())
        memory, *facts = self.subject.fact_fields(width) or [details.Field("memory", ())]
        more = [*none, memory, highest, *self._measured(), *facts]
        self.query_one("#more", Lines).show(details.laid_out(more, width))

    def _draw_charts(self, view: GpuView, width: int) -> None:
        """Its past and what is ahead; several news of one moment draw it once."""
        app, now = self.app, self.app.now()
        if not self._span_chosen:
            since = app.history.full_since(self.subject.key(view))
            eta_s = view.outlook.eta_s if view.outlook is not None else None
            self._span_s = max(self._span_s, gpupast.fitting_span(0.0 if since is None else now - since, eta_s))
        ahead = "" if view.outlook is None or view.outlook.eta_s is None else about(view.outlook.eta_s)
        state = (view.gpu.problem, view.outlook and view.outlook.state, ahead)
        made_from = (
            int(now / gpupast.pace_s(self._span_s, width)),
            app.history.happened,
            self._span_s,
            self.size,
            state,
        )
        if made_from == self._charted:
            return
        self._charted = made_from
        look = gpupast.Look(now, self._span_s, width, self.size.height, app.glyphs, key=app.keys.name("gpu.span"))
        self.query_one("#charts", Lines).show(gpupast.charts(view, app.history, look))

    def _measured(self) -> list[details.Field]:
        """What was measured on it, asked for anew when a benchmark ends."""
        app = self.app
        newest = next((run.id for run in app.runs if run.ended and run.kind is RunKind.BENCH), None)
        if newest != self._past_of:
            self._past_of = newest
            self.prepare(self._look_back, self._show_past)
        if self._past is None:
            return []
        return [benchpast.past_field(self._past, app.glyphs, past_key=app.keys.name("gpu.past"),
                                     bench_key=app.keys.name("gpu.bench"))]  # fmt: skip

    def _look_back(self) -> tuple[Past, ...]:
        from gpuconsole.services.benchhistory import past_of

        return past_of(self.app.desk.benches.all(), [self.subject.thing.gpu.uuid or "unknown"])

    def _show_past(self, found: tuple[Past, ...]) -> None:
        self._past = found
        self._draw()

    def action_past(self) -> None:
        """What was measured on it, over time."""
        from gpuconsole.tui.screens.benchpast import PastScreen

        gpu = self.subject.thing.gpu
        self.app.push_screen(PastScreen([gpu.uuid or "unknown"], self.subject.headline()))

    @staticmethod
    def _nobody(view: GpuView) -> Cell:
        if view.gpu.processes is None:
            return details.unknown(view.gpu.unknown.get("processes"))
        return Cell("none", "dim")

    @on(Grid.Moved)
    def _cursor_moved(self) -> None:
        self.refresh_bindings()

    @on(Grid.Chosen)
    def _open_row(self) -> None:
        self.action_open()

    def action_span(self) -> None:
        """A longer history; after the longest, the shortest."""
        spans = gpupast.SPANS_S
        self._span_s = spans[(spans.index(self._span_s) + 1) % len(spans)]
        self._span_chosen = True
        self._draw()
