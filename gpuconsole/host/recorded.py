"""The memory samples of a recording: what a forecaster is given of it. Events, the truth, are never read here."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from gpuconsole.core.text import plain_line
from gpuconsole.gpu.forecast_model import (
    HOST_ID,
    SHM_OF,
    GpuMemory,
    MemorySample,
    PoolMemory,
    ProcessMemory,
    Subject,
)
from gpuconsole.host.recording import malformed, read_recording

_Object = Mapping[str, Any]


def memory_samples(path: Path) -> Iterator[MemorySample]:
    """The samples of the recording at ``path``, one after the other.

    Raises:
        NotFound: There is no such file.
        BadFile: It is no recording, or a sample in it is not what it must be.
    """
    reader = SampleReader()
    for number, line in read_recording(path):
        try:
            sample = reader.take(line)
        except (KeyError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
            raise malformed(path, number, f"it is no {plain_line(line['type'], limit=20)} ({error})") from error
        if sample is not None:
            yield sample


class SampleReader:
    """Makes samples of a recording's lines, which are given to it in their order, the header first."""

    def __init__(self) -> None:
        self._totals: dict[int, int] = {}
        self._console = _Console()

    def take(self, line: _Object) -> MemorySample | None:
        """The sample that ``line`` is; None for every other line, which may tell what the next ones need.

        Raises:
            KeyError, TypeError, ValueError, ArithmeticError, AttributeError: It is not what such a line must be.
        """
        if line["type"] == "header":
            self._totals = {gpu["index"]: gpu["memory_total_bytes"] for gpu in line.get("gpus") or ()}
        elif line["type"] == "sample":
            sample = memory_sample(line, self._totals)
            return sample if "containers" in line else replace(sample, pools=(*sample.pools, *self._console.pools()))
        else:
            self._console.take(line)
        return None


class _Console:
    """Containers as the console records them: in lines of their own, whenever their figures change."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._views: list[_Object] = []

    def take(self, line: _Object) -> None:
        """Keep what a line says of containers."""
        if line["type"] == "container":
            self._names[str(line["container"]["id"])] = str(line["container"].get("name") or "")
        elif line["type"] == "containers":
            self._views = list(line.get("views") or ())

    def pools(self) -> Iterator[PoolMemory]:
        """The RAM of each that has figures."""
        for view in self._views:
            usage = view.get("usage") or {}
            used, limit = _whole(usage.get("memory_bytes")), _whole(usage.get("memory_limit_bytes"))
            if used is not None:
                ident = plain_line(str(view["id"]), limit=200)
                name = plain_line(self._names.get(str(view["id"])) or ident, limit=200)
                yield PoolMemory(Subject.CONTAINER, ident, name, used, limit)


def memory_sample(line: _Object, totals: Mapping[int, int]) -> MemorySample:
    """One ``sample`` line.

    Args:
        line: As JSON has it.
        totals: GPU index → its memory, from the header.

    Raises:
        KeyError, TypeError, ValueError, ArithmeticError, AttributeError: It is not what a sample must be.
    """
    t = float(line["t"])
    if not math.isfinite(t):
        raise ValueError("its time is no number")
    gpus = tuple(_gpu(gpu, totals) for gpu in line.get("gpus") or () if not gpu.get("divided"))
    return MemorySample(t, gpus, (*_host_pools(line.get("host") or {}), *_container_pools(line)))


def _gpu(gpu: _Object, totals: Mapping[int, int]) -> GpuMemory:
    index = int(gpu["index"])
    listed = gpu.get("processes")
    total = gpu.get("memory_total_bytes")
    return GpuMemory(
        index=index,
        total_bytes=_whole(totals.get(index) if total is None else total),
        used_bytes=_whole(gpu.get("memory_used_bytes")),
        free_bytes=_whole(gpu.get("memory_free_bytes")),
        utilization_pct=_whole(gpu.get("gpu_util_pct")),
        processes=None
        if listed is None
        else tuple(ProcessMemory(int(each["pid"]), _whole(each.get("memory_bytes"))) for each in listed),
    )


def _host_pools(host: _Object) -> Iterator[PoolMemory]:
    used, total = _whole(host.get("memory_used_bytes")), _whole(host.get("memory_total_bytes"))
    if total is not None:
        yield PoolMemory(Subject.HOST, HOST_ID, "this machine's memory", used, total)
    shm, shm_total = _whole(host.get("shm_used_bytes")), _whole(host.get("shm_total_bytes"))
    if shm is not None or shm_total is not None:
        yield PoolMemory(Subject.SHM, HOST_ID, "/dev/shm", shm, shm_total)  # noqa: S108  # a name


def _container_pools(line: _Object) -> Iterator[PoolMemory]:
    for each in line.get("containers") or ():
        ident = plain_line(str(each["id"]), limit=200)
        name = plain_line(str(each.get("name") or ident), limit=200)
        used, limit = _whole(each.get("memory_used_bytes")), _whole(each.get("memory_limit_bytes"))
        if used is not None or limit is not None:
            yield PoolMemory(Subject.CONTAINER, ident, name, used, limit)
        shm, size = _whole(each.get("shm_used_bytes")), _whole(each.get("shm_total_bytes"))
        if size is not None:
            yield PoolMemory(Subject.SHM, ident, f"{SHM_OF}{name}", shm, size)


def _whole(value: object) -> int | None:
    """A number that is no negative one, or None.

    Raises:
        TypeError: It is something else.
    """
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{plain_line(str(value), limit=40)} is no number")
    return max(0, int(value))
