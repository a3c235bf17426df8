"""Two runs of benchmarks beside each other; another run can be taken as the one that is compared with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType

from gpuconsole.tui import actions
from gpuconsole.tui.present import benchpast
from gpuconsole.tui.screens.benchtext import BenchText
from gpuconsole.tui.widgets.lines import Line

if TYPE_CHECKING:
    from gpuconsole.probes.benchrecords import BenchRun


class CompareScreen(BenchText):
    """A run beside another.

    Args:
        run: B, what it is about.
        other: A, what it is compared with first.
        runs: All that are remembered, ``run`` too.
    """

    HELP = (
        "B is the run that was open, A the one it is compared with: at first the newest before it that has results "
        "measured the same way on the same hardware. {compare.older} and {compare.newer} take another as A, "
        "{compare.pick} lists them. B/A is above 1 where B is better, whatever the unit; what differs by less than "
        "repeats do is the same."
    )
    BINDINGS: ClassVar[list[BindingType]] = [*actions.bindings(actions.COMPARE)]

    def __init__(self, run: BenchRun, other: BenchRun, runs: Sequence[BenchRun]) -> None:
        super().__init__()
        self._run = run
        self._others = sorted((each for each in runs if each.run != run.run), key=lambda each: -each.taken_at)
        self._place = next(place for place, each in enumerate(self._others) if each.run == other.run)
        self._everything = False

    def title_words(self) -> tuple[str, str]:
        """Which of how many."""
        return f"{self._run.subject}", f"beside run {self._place + 1} of {len(self._others)}, the newest first"

    def lines(self, width: int) -> list[Line]:
        """A, B and each result of both."""
        return benchpast.comparison(
            self._others[self._place], self._run, self.app.glyphs, width=width, everything=self._everything
        )

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Nothing is older than the oldest."""
        if action == "other" and isinstance(parameters[0], int):
            return 0 <= self._place + parameters[0] < len(self._others)
        return super().check_action(action, parameters)

    def action_other(self, step: int) -> None:
        """Take an older or a newer one as A."""
        self._place = min(max(self._place + step, 0), len(self._others) - 1)
        self.draw()
        self.refresh_bindings()

    def action_pick(self) -> None:
        """Choose another one from a list."""
        from gpuconsole.tui.screens.benchpick import PickScreen

        self.app.push_screen(PickScreen(self._run, self._others, self._others[self._place].run), self._take)

    def _take(self, chosen: str | None) -> None:
        if chosen is not None:
            self._place = next(place for place, each in enumerate(self._others) if each.run == chosen)
            self.draw()
            self.refresh_bindings()

    def action_all(self) -> None:
        """All results, or those that say most."""
        self._everything = not self._everything
        self.draw()
