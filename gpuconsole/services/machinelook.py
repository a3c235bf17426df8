"""One look at this machine after the other: GPUs, their holders, figures of containers, and where memory is going."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuconsole.services.overview import Overview

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpuconsole.engine.model import Container, Usage
    from gpuconsole.host.model import HostView
    from gpuconsole.host.usage import UsageReader
    from gpuconsole.services.memorywatch import MemoryWatch
    from gpuconsole.services.session import Session
    from gpuconsole.services.sharedwriting import SharedWriter


class MachineLook:
    """Looks again and again; for one thread.

    Args:
        session: The GPUs.
    """

    def __init__(self, session: Session) -> None:
        self._overview = Overview(session)
        self._reader: UsageReader | None = None
        self._memory: MemoryWatch | None = None
        self._writer: SharedWriter | None = None

    def look(
        self,
        containers: Sequence[Container],
        *,
        wanted: frozenset[str],
        watch: Callable[[], bool],
        listed: bool = True,
    ) -> tuple[HostView, dict[str, Usage]]:
        """The machine now, and figures of containers by id.

        Args:
            containers: Those of this machine.
            wanted: Ids of those whose figures somebody sees; those that have a limit of memory are read as well.
            watch: Whether to say where memory is going too, asked once the GPUs were looked at. What that needs is
                imported at the first such look.
            listed: The engine of this machine was asked for ``containers``; else there may be others.
        """
        view = self._overview.look(names={one.id: one.name for one in containers})
        if containers:
            from gpuconsole.services.given import with_containers

            view = with_containers(view, containers)
        watched = watch()
        read = [one for one in containers if one.running and (one.id in wanted or (watched and one.memory_limit_bytes))]
        usages = self._usages(read) if containers else {}
        if watched:
            view = self._watched(view, containers, usages)
            self._share(view, {one.id: one.name for one in containers} if listed else None)
        return view, usages

    def _usages(self, containers: Sequence[Container]) -> dict[str, Usage]:
        from gpuconsole.host.usage import UsageReader, pids_of

        if self._reader is None:
            self._reader = UsageReader()
        return self._reader.read(pids_of((one.id, one.pid) for one in containers))

    def _watched(self, view: HostView, containers: Sequence[Container], usages: dict[str, Usage]) -> HostView:
        from gpuconsole.services.memorywatch import MemoryWatch

        if self._memory is None:
            self._memory = MemoryWatch()
        return self._memory.look(view, containers, usages)

    def _share(self, view: HostView, names: dict[str, str] | None) -> None:
        """Let ``status`` have what is known here."""
        if self._writer is None:
            from gpuconsole.services.sharedwriting import SharedWriter

            self._writer = SharedWriter()
        self._writer.put(view, names=names)
