"""GPUs and processes as a recording of memory alone has them: samples, and nothing of who the processes are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpuconsole.core.text import plain_line
from gpuconsole.gpu.forecast_model import GpuMemory, MemorySample
from gpuconsole.gpu.model import Gpu, GpuProcess, GpuSnapshot
from gpuconsole.host.model import GpuView, Holder, HostView
from gpuconsole.host.processes import FIELDS

_NOT_RECORDED = "it was not recorded"


def bare_view(sample: MemorySample, line: Mapping[str, Any], header: Mapping[str, Any], *, taken_at: float) -> HostView:
    """What the console can show of one sample.

    Args:
        sample: What was read of the line.
        line: The line, for what a forecaster does not read.
        header: The recording's first line.
        taken_at: Seconds since the epoch.
    """
    named = {gpu.get("index"): gpu for gpu in header.get("gpus") or () if isinstance(gpu, Mapping)}
    more = {gpu.get("index"): gpu for gpu in line.get("gpus") or () if isinstance(gpu, Mapping)}
    views = tuple(_view(gpu, named.get(gpu.index, {}), more.get(gpu.index, {})) for gpu in sample.gpus)
    driver = _text(header.get("driver"))
    return HostView(GpuSnapshot(taken_at, tuple(view.gpu for view in views), driver_version=driver), views)


def _view(memory: GpuMemory, named: Mapping[str, Any], more: Mapping[str, Any]) -> GpuView:
    uuid = _text(named.get("uuid"))
    processes = memory.processes
    listed = None if processes is None else tuple(GpuProcess(each.pid, each.memory_bytes) for each in processes)
    used = _number(memory.utilization_pct)
    gpu = Gpu(
        index=memory.index,
        uuid=uuid,
        name=_text(named.get("name")),
        memory_total_bytes=memory.total_bytes,
        memory_used_bytes=memory.used_bytes,
        memory_free_bytes=memory.free_bytes,
        utilization_pct=None if used is None else int(used),
        temperature_c=None if (heat := _number(more.get("temperature_c"))) is None else int(heat),
        power_w=_number(more.get("power_w")),
        processes=listed,
    )
    unknown = dict.fromkeys(FIELDS, _NOT_RECORDED)
    holders = tuple(
        Holder(pid=each.pid, gpu_index=memory.index, gpu_uuid=uuid, memory_bytes=each.memory_bytes, unknown=unknown)
        for each in processes or ()
    )
    return GpuView(gpu, holders, gpu.unattributed_bytes)


def _text(value: object) -> str | None:
    return plain_line(value, limit=200) if isinstance(value, str) else None


def _number(value: object) -> float | None:
    """A number that a screen can show."""
    usable = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e6
    return float(value) if usable else None  # type: ignore[arg-type]
