"""What was measured on a GPU, over time."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from gpuconsole.services.benchhistory import Past, past_of
from gpuconsole.tui.present import benchpast
from gpuconsole.tui.present.cell import Cell
from gpuconsole.tui.screens.benchtext import BenchText
from gpuconsole.tui.widgets.lines import Line


class PastScreen(BenchText):
    """The headline of each benchmark over time.

    Args:
        uuids: The GPUs; none for what ran on the CPU.
        name: What they are called.
        cpu: Benchmarks of which those of the CPU are shown too.
    """

    HELP = (
        "Each benchmark's headline on these GPUs, the newest first. The bar is the share of the best; the change is "
        "beside the result before it that can be compared. Noisy and disturbed results have no change."
    )

    def __init__(self, uuids: Sequence[str], name: str, *, cpu: Collection[str] = ()) -> None:
        super().__init__()
        self._uuids = tuple(uuids)
        self._called = name
        self._cpu = cpu
        self._found: tuple[Past, ...] | None = None

    def on_mount(self) -> None:
        """Ask for the past in the background."""
        super().on_mount()
        self.prepare(self._look, self._show)

    def _look(self) -> tuple[Past, ...]:
        return past_of(self.app.desk.benches.all(), self._uuids, cpu=self._cpu)

    def _show(self, found: tuple[Past, ...]) -> None:
        self._found = found
        self.draw()

    def title_words(self) -> tuple[str, str]:
        """Of which GPUs."""
        return self._called, "benchmarks over time"

    def lines(self, width: int) -> list[Line]:
        """The past, or that there is none."""
        if self._found is None:
            return [(Cell(" Looking …", "dim"),)]
        if not self._found:
            return [(Cell(" Nothing that was measured on it is remembered.", "dim"),)]
        return benchpast.history(self._found, self.app.glyphs, width=width)
