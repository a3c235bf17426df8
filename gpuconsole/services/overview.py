"""The GPUs of this machine and who holds them: what ``status`` prints and the console's strip shows."""

from __future__ import annotations

from gpuconsole.core.records import replace
from gpuconsole.host.holders import HolderTable
from gpuconsole.host.processes import ProcessTable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpuconsole.gpu.model import GpuSnapshot
    from gpuconsole.host.model import GpuView, Holder, HostView
    from gpuconsole.services.session import Session
    from gpuconsole.services.shared import Shared


class Overview:
    """Looks at the GPUs again and again; from the second look on it knows the CPU use of their holders by itself.

    Args:
        session: The GPUs.
        remembering: Without the engine's list, take the names of containers and the GPUs they were given from what
            this user's consoles share, else from the launches that are remembered; and what is ahead from the former.
    """

    def __init__(self, session: Session, *, remembering: bool = False) -> None:
        self._session = session
        self._remembering = remembering
        self.shared: Shared | None = None
        """What consoles shared at the last look."""
        # Masked where they are read, so that no front end can show what it should not.
        self._processes = ProcessTable(mask=_masked)
        self._holders = HolderTable(self._processes)

    def look(self, *, details: bool = False, names: Mapping[str, str] | None = None) -> HostView:
        """Every GPU and its holders now; no driver and no GPU are a view whose snapshot has a ``problem``.

        Args:
            details: Also take the readings anew that are slow or seldom change.
            names: Container names by full id, as far as the caller knows them.
        """
        return self._view(self._session.gpus.snapshot(details=details), names)

    def averaged(self, view: HostView) -> HostView:
        """``view`` of one look with the CPU use of its holders since each of them began, as ``ps`` counts it."""
        return replace(view, gpus=tuple(self._averaged(each) for each in view.gpus))

    def _averaged(self, view: GpuView) -> GpuView:
        return replace(view, holders=tuple(self._with_average(each) for each in view.holders))

    def _with_average(self, holder: Holder) -> Holder:
        average = self._processes.average_cpu_pct(holder.pid)
        return holder if average is None else holder.with_cpu(average)

    def _view(self, snapshot: GpuSnapshot, names: Mapping[str, str] | None) -> HostView:
        if not self._remembering or not snapshot.gpus:
            return self._holders.view(snapshot, names=names)
        from gpuconsole.services.shared import read_shared

        self.shared = shared = read_shared()
        if shared is None:
            return self._remembered(snapshot, names or {})
        known = {**shared.names, **(names or {})}
        if shared.given is None:
            view = self._remembered(snapshot, known)
        else:
            from gpuconsole.services.given import with_given

            view = with_given(self._holders.view(snapshot, names=known), shared.given)
        if not shared.fresh:
            return view
        from gpuconsole.services.sharedview import with_shared

        return with_shared(view, shared)

    def _remembered(self, snapshot: GpuSnapshot, names: Mapping[str, str]) -> HostView:
        from gpuconsole.services.given import remembered, with_launches

        launched = remembered()
        view = self._holders.view(snapshot, names={one.id: one.name for one in launched} | dict(names))
        return with_launches(view, launched)


def _masked(arguments: Sequence[str]) -> Sequence[str]:
    # Imported with the first process: making the patterns takes 10 ms, which a free machine's status can do without.
    from gpuconsole.services.secrets import mask_arguments

    return mask_arguments(arguments)


def overview(session: Session, *, details: bool = False, names: Mapping[str, str] | None = None) -> HostView:
    """A single look; see :meth:`Overview.look`."""
    return Overview(session).look(details=details, names=names)
