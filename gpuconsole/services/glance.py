"""The GPUs at a glance: their figures and states, for what is asked every few seconds and shows nothing else.

No process is looked at: that somebody holds a GPU, the driver's list says by itself.
"""

from __future__ import annotations

from gpuconsole.core.records import dataclass, replace
from gpuconsole.gpu.state import MemoryState
from gpuconsole.host.state import state_of_one_look
from gpuconsole.services.shared import read_shared

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpuconsole.gpu.model import Gpu, GpuProcess, GpuSnapshot
    from gpuconsole.services.session import Session
    from gpuconsole.services.shared import Ahead


@dataclass(frozen=True, slots=True)
class GpuGlance:
    """One GPU."""

    gpu: Gpu
    holders: tuple[GpuProcess, ...]
    given_to: tuple[str, ...] = ()
    outlook: Ahead | None = None


@dataclass(frozen=True, slots=True)
class HostGlance:
    """All of them."""

    snapshot: GpuSnapshot
    gpus: tuple[GpuGlance, ...] = ()


def glance(session: Session) -> HostGlance:
    """The GPUs now, and what consoles and watches share of them."""
    snapshot = session.gpus.snapshot()
    gpus = tuple(GpuGlance(gpu, _listed(gpu)) for gpu in snapshot.gpus)
    if not gpus:
        return HostGlance(snapshot)
    shared = read_shared(only_fresh=True)
    given = shared.given if shared is not None else None
    if given is None:
        given = _launched(gpus)
    ahead = shared.gpus if shared is not None else {}
    return HostGlance(snapshot, tuple(_known(each, given, ahead) for each in gpus))


def _listed(gpu: Gpu) -> tuple[GpuProcess, ...]:
    """The processes of a GPU and of its MIG instances."""
    return (*(gpu.processes or ()), *(process for mig in gpu.migs for process in mig.processes or ()))


def _launched(gpus: tuple[GpuGlance, ...]) -> Mapping[str, tuple[str, ...]]:
    """Who was given which GPU by launches that are remembered; of no account where each of them is held anyway."""
    if not any(state_of_one_look(each) is MemoryState.FREE for each in gpus):
        return {}
    from gpuconsole.services.given import names_of, remembered

    return names_of(remembered())


def _known(seen: GpuGlance, given: Mapping[str, tuple[str, ...]], ahead: Mapping[str, Ahead]) -> GpuGlance:
    from gpuconsole.services.given import of_gpu

    uuid = seen.gpu.uuid
    return replace(seen, given_to=of_gpu(seen.gpu, given), outlook=ahead.get(uuid) if uuid else None)
