"""The list of alarms: what stands, what rang, what was dismissed, and who holds a GPU for nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen

from gpuconsole.services.alarmdesk import Listed, Standing
from gpuconsole.tui import actions, sheets
from gpuconsole.tui.leaving import leave
from gpuconsole.tui.present import alarms
from gpuconsole.tui.present.cell import Cell
from gpuconsole.tui.widgets.grid import Grid
from gpuconsole.tui.widgets.keyline import KeyLine
from gpuconsole.tui.widgets.lines import Lines

if TYPE_CHECKING:
    from gpuconsole.tui.app import ConsoleApp


class AlarmsScreen(Screen[None]):
    """Every alarm, with what can be done about it."""

    app: ConsoleApp
    CSS_PATH = sheets.of("alarms")
    HELP = (
        "What stands and asks for somebody is on top. A memory that is critical rings once; a risk is listed quietly "
        "unless the configuration says otherwise. Dismissed, it is silent until it gets worse, as long as the process "
        "lives. An alarm that was wrong can be marked: what was seen of all memories in the last half hour is saved "
        "without names, to be judged by 'gpuconsole forecast'."
    )
    AUTO_FOCUS = "#alarms"
    BINDINGS: ClassVar[list[BindingType]] = [
        *actions.bindings(actions.ALARMS),
        actions.BACK.binding(),
        Binding("enter", "open", "Go there", tooltip="All about what the alarm is about", id="thing.open"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._rows: dict[str, Listed] = {}

    def compose(self) -> ComposeResult:
        """A title, the alarms, and the one under the cursor in full."""
        yield Lines(id="top")
        yield Grid(alarms.COLUMNS, id="alarms")
        yield Lines(id="none")
        yield Lines(id="full")
        yield KeyLine(id="keys")

    def on_mount(self) -> None:
        """Follow the app's state."""
        self.query_one("#top", Lines).show([(Cell(" Alarms", "strong"),)])
        for name in ("host_view", "containers"):
            self.watch(self.app, name, self._soon, init=False)
        self.set_interval(1.0, self.draw)
        self.draw()

    def on_resize(self, event: events.Resize) -> None:
        """Fit anew."""
        self.draw()

    def _soon(self) -> None:
        self.call_after_refresh(self.draw)  # what is watched changes before the alarms have heard of it

    @property
    def chosen(self) -> Listed | None:
        """The alarm under the cursor."""
        return self._rows.get(self.query_one(Grid).cursor or "")

    def draw(self) -> None:
        """Draw what is known now."""
        if not self.is_mounted or not self.size.width:
            return
        app, grid = self.app, self.query_one(Grid)
        listed = app.alarming.listed()
        self._rows = {each.key: each for each in listed}
        before = self.chosen
        grid.show(tuple(alarms.row(each, now=app.now(), glyphs=app.glyphs) for each in self._rows.values()))
        none = " No alarm stands, and none of the last half hour is left that was not dismissed."
        self.query_one("#none", Lines).show([] if listed else [(Cell(none, "dim"),)])
        self.query_one("#full", Lines).show(alarms.in_full(self.chosen, self.size.width))
        if before != self.chosen:
            self.refresh_bindings()

    @on(Grid.Moved)
    def _cursor_moved(self) -> None:
        self.query_one("#full", Lines).show(alarms.in_full(self.chosen, self.size.width))
        self.refresh_bindings()

    @on(Grid.Chosen)
    def _choose(self) -> None:
        self.action_open()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Hide what does not apply to the alarm under the cursor."""
        if action not in ("open", "silence", "wrong") or not self.is_mounted:
            return True
        chosen = self.chosen
        if chosen is None:
            return False
        if action == "wrong":
            return chosen.standing in (Standing.RINGS, Standing.QUIET, Standing.OVER, Standing.DISMISSED)
        return action != "silence" or chosen.standing is not Standing.NOTE

    def action_silence(self) -> None:
        """Dismiss it, or let it ring again."""
        if (chosen := self.chosen) is not None:
            self.app.alarming.dismiss(chosen)
            self.draw()

    def action_wrong(self) -> None:
        """Say that it is wrong: save its samples."""
        if (chosen := self.chosen) is not None:
            self.app.alarming.mark_wrong(chosen)
            self.draw()

    def action_open(self) -> None:
        """All about what it is about."""
        if (chosen := self.chosen) is not None:
            self.app.alarming.go_to(chosen.alarm)

    def action_back(self) -> None:
        """Back."""
        leave(self)
