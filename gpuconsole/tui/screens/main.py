"""The main screen: GPUs above, containers, images, processes and runs below."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.reactive import reactive
from textual.screen import Screen
from textual.widgets import Input

from gpuconsole.tui import actions
from gpuconsole.tui.present import notice, top
from gpuconsole.tui.screens.doing import Doing
from gpuconsole.tui.screens.filtering import Filtering
from gpuconsole.tui.screens.imagetab import ImageTab
from gpuconsole.tui.screens.listing import LISTS, Listing
from gpuconsole.tui.widgets.grid import Grid
from gpuconsole.tui.widgets.keyline import KeyLine
from gpuconsole.tui.widgets.lines import Lines
from gpuconsole.tui.widgets.pane import DetailPane
from gpuconsole.tui.widgets.strip import GpuStrip

if TYPE_CHECKING:
    from gpuconsole.tui.app import ConsoleApp
    from gpuconsole.tui.screens.subject import Thing

_STILL_S = 0.9
"""When nothing is new for so long, it is drawn anew for the clock and the ages."""


class MainScreen(Filtering, ImageTab, Doing, Screen[None]):
    """What one keeps open all day."""

    app: ConsoleApp
    AUTO_FOCUS = "#containers"
    BINDINGS: ClassVar[list[BindingType]] = [
        # Heard before the focus is asked: keys that come in one piece with it, as over a slow line, are typed then.
        *(replace(each, priority=each.action == "filter") for each in actions.bindings(actions.MAIN)),
        *actions.bindings(actions.CONTAINER),
        *actions.bindings(actions.IMAGE),
        *actions.bindings(actions.IMAGES),
        *actions.bindings(actions.PROCESS),
        *actions.bindings(actions.RUN),
        *actions.bindings(action for action in actions.GPU if action.method == "bench"),
        Binding("enter", "open", "Open", tooltip="All about it", id="thing.open"),
        Binding("escape", "unfilter", "All", tooltip="Show every row again", show=False),
    ]

    tab: reactive[str] = reactive("containers", init=False, repaint=False)
    """The list that is shown."""
    mine: reactive[bool] = reactive(False, init=False, repaint=False)
    """Only what belongs to the user."""

    def __init__(self) -> None:
        super().__init__()
        self._drawn_soon = False
        self._drawn_at = 0.0

    def compose(self) -> ComposeResult:
        """The parts, top to bottom."""
        yield Lines(id="top")
        yield GpuStrip(self.app.glyphs, id="gpus")
        yield Lines(id="gpu-notice", classes="notice")
        yield Lines(id="tabs")
        self.lists = {name: Listing(self, name) for name in LISTS}
        with Horizontal(id="middle"):
            with Vertical(id="lists"):
                for listing in self.lists.values():
                    yield listing.grid
                yield Lines(id="notice", classes="notice")
            yield DetailPane(self.app.glyphs, id="pane")
        yield Input(id="filter", placeholder="words to look for; enter keeps, esc shows all", compact=True)
        yield KeyLine(id="keys")

    def on_mount(self) -> None:
        """Follow the app's state."""
        for name in ("host_view", "containers", "link", "engine_info", "images", "shelf", "runs", "pace_s", "marks"):
            self.watch(self.app, name, self._changed, init=False)
        self.query_one("#filter", Input).display = False
        self._show_tab()
        self.set_interval(1.0, self._tick)
        self.query_one(GpuStrip).fit(self.app.size.height)
        self._draw_news()  # with the GPUs, where they were quick: so the first screen is drawn once

    @property
    def listing(self) -> Listing:
        """The list that is shown."""
        return self.lists[self.tab]

    @property
    def grid(self) -> Grid:
        """Its grid."""
        return self.listing.grid

    @property
    def help_words(self) -> str:
        """What this screen is, with the list that is shown, or the GPUs while they have the focus."""
        from gpuconsole.tui.screens.tabhelp import words_of

        return words_of("gpus" if self.query_one(GpuStrip).has_focus else self.tab, self.app.glyphs)

    @property
    def list_width(self) -> int:
        """Cells a line of the lists has."""
        return self.query_one("#lists").size.width or self.size.width or self.app.size.width

    @property
    def thing(self) -> Thing | None:
        """What the cursor is on: of the GPUs while they have the focus, else of the list."""
        strip = self.query_one(GpuStrip)
        return strip.chosen if strip.has_focus else self.listing.chosen

    def _changed(self) -> None:
        """Something is new: draw it soon, once for all that comes at the same time."""
        if not self._drawn_soon:
            self._drawn_soon = True
            self.call_later(self._draw_news)

    def _draw_news(self) -> None:
        self._drawn_soon = False
        app, strip = self.app, self.query_one(GpuStrip)
        strip.marks = app.marks
        if app.host_view is not None:
            strip.look(app.host_view, draw=self.is_seen)
        if self.is_seen:  # nobody sees what another screen covers
            self._draw()

    def _tick(self) -> None:
        """Time went on: ages change even when nothing else does."""
        if self.is_seen and self.app.now() - self._drawn_at >= _STILL_S:
            self._draw()

    def on_screen_resume(self) -> None:
        """Nothing covers it any more: draw what was missed."""
        if self.is_mounted:
            self.query_one(GpuStrip).draw()
            self._changed()

    def on_screen_suspend(self) -> None:
        """Another screen covers it, and has its own to look at."""
        if not self.is_seen:
            self.app.desk.look_at(frozenset())

    def _draw(self) -> None:
        app, width = self.app, self.size.width or self.app.size.width
        now = self._drawn_at = app.now()
        self.query_one("#top", Lines).show([top.line(app.host_view, app.engine_info, host_name=app.desk.host_name,
                                                      width=width, now=now, pace_s=app.pace_s,
                                                      readonly=app.readonly)])  # fmt: skip
        gpu_notice = notice.of_gpus(app.host_view, now=now, width=width)
        strip = self.query_one(GpuStrip)
        strip.set_class(strip.is_blank, "-hidden")
        self._show_notice("#gpu-notice", gpu_notice)
        counts = {name: listing.count() for name, listing in self.lists.items()}
        going = sum(not run.ended for run in app.runs)
        tabs = top.tabs(counts, self.tab, words=self.words, marks=self.marks_shown(), width=width, going=going,
                        glyphs=app.glyphs)  # fmt: skip
        self.query_one("#tabs", Lines).show([tabs])
        self.listing.draw(now)
        self._show_notice("#notice", self.listing.notice(now))
        self._draw_pane()
        self.follow_stage()
        app.desk.look_at(self.lists["containers"].visible_ids() if self.tab == "containers" else frozenset())

    @on(DetailPane.Resized)
    @on(events.DescendantFocus)
    def _draw_pane(self) -> None:
        """All about the thing under the cursor, where the window is wide enough for both."""
        pane, thing = self.query_one(DetailPane), self.thing
        if not pane.display:
            return
        if thing is None:
            pane.empty()
            return
        from gpuconsole.tui.screens.subjects import subject_of

        subject = subject_of(self.app, thing)
        pane.fill(subject.headline(), subject.KIND, subject.lines)

    def _show_notice(self, where: str, lines: notice.Notice) -> None:
        panel = self.query_one(where, Lines)
        panel.set_class(not lines, "-hidden")
        panel.show(lines)

    def on_resize(self, event: events.Resize) -> None:
        """Fit the strip."""
        self.query_one(GpuStrip).fit(event.size.height)
        self._draw()

    # --- which list, which rows ---

    def watch_tab(self) -> None:
        """Another list."""
        self._show_tab()
        if self.tab == "images":
            self.app.desk.judge_images()
        self._draw()
        self.refresh_bindings()

    def _show_tab(self) -> None:
        for name, listing in self.lists.items():
            listing.grid.display = name == self.tab
        self.grid.focus()

    def watch_mine(self) -> None:
        """Other rows."""
        self._draw()

    def show_container(self, container_id: str) -> None:
        """Take the cursor to a container, now or as soon as it is listed."""
        self.tab = "containers"
        self.lists["containers"].wanted = container_id

    def action_show_tab(self, name: str) -> None:
        """Show a list."""
        self.tab = name

    def action_tab(self, step: int) -> None:
        """Show the next or the previous list."""
        names = list(LISTS)
        self.tab = names[(names.index(self.tab) + step) % len(names)]

    def action_sort(self) -> None:
        """Sort by the next column."""
        self.listing.sort_by_next()
        self._draw()

    def action_reverse(self) -> None:
        """Turn the order round."""
        self.listing.reverse()
        self._draw()

    def action_mine(self) -> None:
        """Mine only, or everybody's."""
        self.mine = not self.mine

    def action_pace(self, step: int) -> None:
        """Look more or less often."""
        from gpuconsole.tui.app import PACES_S

        pace_s = self.app.pace_s
        others = [each for each in PACES_S if (each > pace_s if step > 0 else each < pace_s)]
        if others:
            self.app.pace_s = min(others) if step > 0 else max(others)
        self.app.notify(f"A look every {self.app.pace_s:g} s.", markup=False, timeout=2)

    @on(Grid.Moved)
    @on(GpuStrip.Moved)
    def _cursor_moved(self) -> None:
        self.refresh_bindings()
        self._draw_pane()

    @on(Grid.Chosen)
    def _open_row(self, event: Grid.Chosen) -> None:
        self.action_open()

    @on(GpuStrip.Chosen)
    def _open_gpu(self, event: GpuStrip.Chosen) -> None:
        from gpuconsole.tui.screens.details import open_details

        open_details(self.app, event.view)
