"""The state of a GPU's memory in one word, the same everywhere.

From a single look only five of the words can be told; the others need a history and are the forecaster's.
"""

from __future__ import annotations

from gpuconsole.gpu.model import GpuStatus
from gpuconsole.gpu.state import MemoryState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gpuconsole.host.seen import Ahead, GpuSeen

FREE_BELOW_BYTES = 512 * 2**20
"""Used memory of a GPU nobody holds: what an X server or a context left behind may take."""
IDLE_BELOW_PCT = 3
PACKED_FROM = 0.97
"""Share of the memory in use at which a steady GPU is called packed. No warning: many runs fill a card on purpose."""


def memory_state(view: GpuSeen) -> MemoryState:
    """The word for a GPU: the forecaster's where it was watched over time, else that of one look.

    Whether it answers and whether somebody holds it is seen in one look, and better there.
    """
    seen, outlook = state_of_one_look(view), view.outlook
    if outlook is None or seen in (MemoryState.FAILED, MemoryState.FREE):
        return seen
    return seen if outlook.state is MemoryState.UNKNOWN and seen is MemoryState.IDLE else outlook.state


def ahead_of(view: GpuSeen) -> Ahead | None:
    """What the forecaster says of a GPU, where its word is the one that counts; None where nobody watched it."""
    said = view.outlook
    return said if said is not None and said.state is memory_state(view) else None


def state_of_one_look(view: GpuSeen) -> MemoryState:
    """The word for one look at a GPU, whatever was seen before.

    One that a running container was given is not free, though nothing is on it: whoever is in there may begin at any
    moment.
    """
    state = _seen(view)
    return MemoryState.IDLE if state is MemoryState.FREE and view.given_to else state


def _seen(view: GpuSeen) -> MemoryState:
    gpu = view.gpu
    if gpu.status is not GpuStatus.OK:
        return MemoryState.FAILED
    used, total = gpu.memory_used_bytes, gpu.memory_total_bytes
    if not view.holders:
        if used is None:
            return MemoryState.FREE if gpu.unified_memory and gpu.processes == () else MemoryState.UNKNOWN
        works = gpu.processes is None and (gpu.utilization_pct or 0) >= IDLE_BELOW_PCT  # by somebody who is not listed
        return MemoryState.FREE if used < FREE_BELOW_BYTES and not works else _held(used, total, gpu.utilization_pct)
    return _held(used, total, gpu.utilization_pct)


def _held(used: int | None, total: int | None, utilization: int | None) -> MemoryState:
    if utilization is not None and utilization < IDLE_BELOW_PCT:
        return MemoryState.IDLE
    if used is not None and total and used / total >= PACKED_FROM:
        return MemoryState.PACKED
    if utilization is None and used is None:
        return MemoryState.UNKNOWN
    return MemoryState.STEADY
