"""``status --watch``: look after look with what is ahead, written for the others to read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuconsole.services.memorywatch import MemoryWatch
from gpuconsole.services.sharedview import with_shared
from gpuconsole.services.sharedwriting import SharedWriter

if TYPE_CHECKING:
    from gpuconsole.host.model import HostView
    from gpuconsole.services.overview import Overview


class SharedWatch:
    """Looks again and again; for one thread.

    Args:
        overview: Gives the looks.
        every_s: Seconds between them.
    """

    def __init__(self, overview: Overview, *, every_s: float) -> None:
        self._overview = overview
        self._memory = MemoryWatch()
        self._writer = SharedWriter(pace_s=every_s)

    def look(self) -> HostView:
        """The GPUs now. A console that has watched for longer is believed before what was seen here."""
        seen = self._overview.look()
        mine = self._memory.look(seen)
        self._writer.put(mine)
        shared = self._overview.shared
        if shared is None or shared.writer == self._writer.name or shared.since > self._writer.since:
            return mine
        return with_shared(mine, shared)
