"""The line under the GPUs that says whose memory is running full: there while something is, and a moment longer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuconsole.gpu.state import MemoryState
from gpuconsole.tui.widgets.lines import Line

if TYPE_CHECKING:
    from gpuconsole.gpu.forecast_model import Assessment
    from gpuconsole.host.model import HostView
    from gpuconsole.tui.theme import Glyphs

_STAYS_LOOKS = 10
"""Looks that it stays when nothing is alarming any more, so that what is below does not jump up and down."""
_FAILED_LOOKS = 30
"""Looks that it tells of a process that ended for want of memory, while nothing else is alarming."""


class OutlookLine:
    """What the line is about, look by look."""

    def __init__(self) -> None:
        self._said: Assessment | None = None
        self._left = 0

    def look(self, host: HostView) -> None:
        """Take what was seen."""
        if not host.outlooks and self._said is None:
            return  # what makes the line is imported when there is one
        from gpuconsole.tui.present.outlook import worst

        said = worst(host.outlooks)
        if said is not None and said.pid is not None:
            said = next((each for each in host.outlooks if each.gpu == said.gpu and each.pid is None), said)
        failed = next((each for each in host.outlooks if each.state is MemoryState.FAILED), None)
        if said is not None:
            self._said, self._left = said, _STAYS_LOOKS
        elif failed is not None:
            self._said, self._left = failed, _FAILED_LOOKS
        elif self._left > 0:
            self._left -= 1
            if self._said is not None and self._said.state is not MemoryState.FAILED:
                self._said = next((each for each in host.outlooks if each.key == self._said.key), self._said)
        else:
            self._said = None

    def lines(self, host: HostView, width: int, glyphs: Glyphs) -> list[Line]:
        """The line, if there is one."""
        if self._said is None:
            return []
        from gpuconsole.tui.present.outlook import line

        return [line(host, self._said, width, glyphs)]
