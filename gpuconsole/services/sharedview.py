"""A look at the GPUs with what consoles and watches told of them before: names, who was given them, what is ahead."""

from __future__ import annotations

from gpuconsole.core.records import replace
from gpuconsole.gpu.forecast_model import Assessment, Subject

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpuconsole.host.model import GpuView, Holder, HostView
    from gpuconsole.services.shared import Ahead, Shared, SharedProcess

_LEEWAY_S = 2.0
"""The kernel's second of the machine's start wanders with its clock, and the beginnings of processes with it."""


def with_shared(view: HostView, shared: Shared) -> HostView:
    """``view`` with what is fresh of ``shared``; what the view itself knows better stays."""
    if not shared.gpus and not shared.processes and not shared.cpu:
        return view
    processes = {(one.gpu_uuid, one.pid): one for one in shared.processes}
    gpus = tuple(_gpu(each, shared.gpus, processes) for each in view.gpus)
    return replace(view, gpus=tuple(_with_cpu(each, shared.cpu) for each in gpus) if shared.cpu else gpus)


def _gpu(view: GpuView, gpus: Mapping[str, Ahead], processes: Mapping[tuple[str, int], SharedProcess]) -> GpuView:
    uuid = view.gpu.uuid
    if uuid is None or view.gpu.problem is not None:
        return view
    ahead = gpus.get(uuid)
    said = view.outlook if ahead is None else _said(ahead, Subject.GPU, view.gpu.index, None)
    holders = tuple(_holder(each, processes.get((uuid, each.pid))) for each in view.holders)
    return replace(view, outlook=said, holders=holders)


def _holder(holder: Holder, known: SharedProcess | None) -> Holder:
    if known is None or not _is_same(holder, known.started_at):
        return holder
    return replace(holder, outlook=_said(known.ahead, Subject.PROCESS, holder.gpu_index, holder.pid))


def _with_cpu(view: GpuView, cpu: Mapping[int, tuple[float, float]]) -> GpuView:
    return replace(view, holders=tuple(_using(each, cpu.get(each.pid)) for each in view.holders))


def _using(holder: Holder, known: tuple[float, float] | None) -> Holder:
    """``holder`` with its CPU use at somebody else's last look, where this look cannot tell it."""
    if known is None or holder.cpu_pct is not None or not _is_same(holder, known[0]):
        return holder
    return holder.with_cpu(known[1])


def _is_same(holder: Holder, started_at: float) -> bool:
    """Whether it is not another process of the same number."""
    return holder.started_at is not None and abs(holder.started_at - started_at) <= _LEEWAY_S


def _said(ahead: Ahead, subject: Subject, gpu: int, pid: int | None) -> Assessment:
    name = str(gpu) if pid is None else f"{gpu}/{pid}"
    return Assessment(subject, name, gpu, pid, ahead.state, ahead.eta_s, ahead.why, ahead.rate_bytes_s)
