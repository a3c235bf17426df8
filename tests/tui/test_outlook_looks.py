"""How memory that runs full looks: pictures kept beside this file, their forecast the real one of made-up growth."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from textual.pilot import Pilot

from gpuconsole.core.config import Config
from gpuconsole.gpu.forecast_model import GpuMemory, MemorySample, PoolMemory, ProcessMemory, Subject
from gpuconsole.services.memorywatch import MemoryWatch
from gpuconsole.tui.app import ConsoleApp
from tests.tui.looking import GIB, IDS, containers, feed, host, still
from tests.tui.test_looks import Compare, Make, same, settled

__all__ = ["still"]
MIB = 2**20
SECONDS = 150


def sample(second: float) -> MemorySample:
    """GPU 0 fills by 220 MiB a second up to what is shown of it, jupyter's shared memory by little."""
    rest = max(0.0, second - 20)
    held = int(min(1.0, second / 10) * 130.6 * GIB - (SECONDS - 20) * 220 * MIB + rest * 220 * MIB)
    gpu = GpuMemory(0, 140 * GIB, max(0, held), 140 * GIB - max(0, held), 98, (ProcessMemory(4211, held, "llama-ft"),))
    shm = int((8 + 0.35 * rest) * MIB)
    name = "/dev/shm of jupyter-mei"
    return MemorySample(second, (gpu,), (PoolMemory(Subject.SHM, IDS["jupyter-mei"], name, shm, 64 * MIB),))


async def full(pilot: Pilot[Any], *, gpus: int = 3) -> None:
    """The main screen while memory runs full."""
    app = pilot.app
    assert isinstance(app, ConsoleApp)
    await feed(pilot, gpus=gpus)
    watch = MemoryWatch()
    for second in range(SECONDS + 1):
        watch.take(sample(float(second)))
    view = watch.shown(host(gpus))
    app.host_view = replace(view, memory=sample(SECONDS), snapshot=replace(view.snapshot, taken_at=app.now() + 0.5))
    app.containers = tuple(replace(each, outlooks=view.outlooks_of(each.container.id)) for each in containers())
    app.clear_notifications()
    await settled(pilot)


async def processes(pilot: Pilot[Any]) -> None:
    """Those on GPUs."""
    await full(pilot)
    await pilot.press("3")
    await settled(pilot)


async def gpu(pilot: Pilot[Any]) -> None:
    """The GPU that fills."""
    await full(pilot)
    await pilot.press("shift+tab", "enter")
    await settled(pilot)


async def container(pilot: Pilot[Any]) -> None:
    """The container whose shared memory fills."""
    await full(pilot)
    await pilot.press("down", "enter")
    await settled(pilot)


async def many(pilot: Pilot[Any]) -> None:
    """Sixteen GPUs."""
    await full(pilot, gpus=16)


LOOKS: dict[str, tuple[Any, tuple[int, int], dict[str, Any]]] = {
    "main-80x24": (full, (80, 24), {}),
    "main-80x24-ascii": (full, (80, 24), {"config": Config(ascii=True)}),
    "main-120x36": (full, (120, 36), {}),
    "main-200x50": (full, (200, 50), {}),
    "processes-80x24": (processes, (80, 24), {}),
    "gpu-120x36": (gpu, (120, 36), {}),
    "container-80x24": (container, (80, 24), {}),
    "many-80x24": (many, (80, 24), {}),
}


@pytest.mark.parametrize("name", LOOKS)
def test_outlook(snap_compare: Compare, still: Make, name: str) -> None:
    look, size, options = LOOKS[name]
    assert same(snap_compare, still(**options), look, size)
