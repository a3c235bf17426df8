"""A day of the console's memory in minutes: a recording played over and over through the real console, clock shifted.

    python -m tests.bench.day [--hours 24] [--gpus 8] [--processes 40] [--recording FILE] [--trace]

Every second of that day the console hears a look at the GPUs, the containers beside it, and the runs when they change,
as the services tell it: its handlers, its past, its strip and, for some minutes of every hour, the screen of a GPU.
What is drawn is drawn once for so many looks. Printed are resident memory after each hour, what the past holds; with
``--trace`` also what Python itself allocated, which takes three times as long. ``--gpus`` and ``--processes`` (of each
GPU) make the recorded machine larger; half of the processes that are added come and go.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import tempfile
import time
import tracemalloc
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from gpuconsole.host.model import GpuView, Holder, HostView
from gpuconsole.services.containers import ContainerView
from gpuconsole.services.replaydesk import ReplayDesk
from gpuconsole.services.replayfile import Event, Recording, load
from gpuconsole.tui import messages
from gpuconsole.tui.app import ConsoleApp
from gpuconsole.tui.screens.details import open_details

RECORDING = Path(__file__).parents[1] / "fixtures/console-h200.jsonl.gz"
_LOOKS_A_DRAWING = 20
_LIFE_S = 900
"""Half of the processes that are added live so long; the others stay."""
_OPEN_S = 120
"""So long in every hour the screen of a GPU is open."""
_STEP_S = 5.0
"""The memory of a process that is added changes so often."""
_PAGE = 4096


@dataclass(frozen=True, slots=True)
class Size:
    """How much larger the recorded machine is made."""

    gpus: int
    processes: int
    """Of each GPU."""


class StillDesk(ReplayDesk):
    """A desk of a recording that tells nothing by itself, and whose clock is set from outside."""

    clock_s = 0.0

    def start(self, listener: object, interval_s: float) -> None:
        """Somebody else plays."""

    def now(self) -> float:
        """The time of the day that is played."""
        return self.clock_s


def resident_mib() -> float:
    """Resident memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE / 2**20


def looks(recording: Recording) -> Iterator[tuple[HostView, tuple[ContainerView, ...], Event | None]]:
    """The recorded looks over and over, each with the containers and the runs that were told with it."""
    while True:
        containers: tuple[ContainerView, ...] = ()
        runs: Event | None = None
        for event in recording.events:
            if event.kind == "containers":
                containers = event.body
            elif event.kind == "runs":
                runs = event
            elif event.kind == "host":
                yield event.body, containers, runs
                runs = None


def grown(view: HostView, at: float, size: Size) -> HostView:
    """The recorded machine at another moment, with more GPUs and more processes on each."""
    views = tuple(_gpu(view.gpus[index % len(view.gpus)], index, at, size) for index in range(size.gpus))
    return replace(view, snapshot=replace(view.snapshot, taken_at=at, gpus=tuple(v.gpu for v in views)), gpus=views)


def _gpu(view: GpuView, index: int, at: float, size: Size) -> GpuView:
    uuid = view.gpu.uuid if index == 0 else f"GPU-{index:08x}-0000-4000-8000-000000000000"
    gpu = replace(view.gpu, index=index, uuid=uuid)
    recorded = [replace(holder, gpu_index=index, gpu_uuid=uuid) for holder in view.holders]
    more = _holders(index, max(0, size.processes - len(recorded)), at // _STEP_S * _STEP_S, uuid)
    return replace(view, gpu=gpu, holders=(*recorded, *more)[: size.processes])


@lru_cache(maxsize=32)
def _holders(index: int, count: int, at: float, uuid: str | None) -> tuple[Holder, ...]:
    return tuple(_holder(index, number, at, uuid) for number in range(count))


def _holder(index: int, number: int, at: float, uuid: str | None) -> Holder:
    # Each begins at another second of the time they live, so that some come and go in every minute.
    began = ((at + number * 37) // _LIFE_S) * _LIFE_S - number * 37 if number % 2 else 0.0
    pid = 1000 * (index + 1) + number
    memory = int((1 + (at - began) % 600 / 600) * 2**30)
    return Holder(pid=pid, gpu_index=index, gpu_uuid=uuid, memory_bytes=memory, started_at=began, command="train.py")


def moved(views: tuple[ContainerView, ...], by_s: float) -> tuple[ContainerView, ...]:
    """The containers as if they had begun and ended so much later."""
    return tuple(
        replace(
            view,
            container=replace(
                view.container,
                started_at=None if view.container.started_at is None else view.container.started_at + by_s,
                finished_at=None if view.container.finished_at is None else view.container.finished_at + by_s,
            ),
        )
        for view in views
    )


async def play(recording: Recording, size: Size, hours: float, *, trace: bool = False) -> list[tuple[float, float]]:
    """Play so many hours; resident MiB after each, by hour."""
    desk = StillDesk(recording, marked=False)
    app = ConsoleApp(desk)
    app.animation_level = "none"
    taken: list[tuple[float, float]] = []
    began, passed = recording.began_at, time.perf_counter()
    if trace:
        tracemalloc.start()
    desk.clock_s = began
    async with app.run_test(size=(120, 36)) as pilot:
        for second, (view, containers, runs) in enumerate(looks(recording)):
            round_s = second // max(1, round(recording.length_s)) * recording.length_s
            desk.clock_s = at = began + second
            app._see_host(messages.HostLooked(grown(view, at, size)))
            app._see_containers(messages.ContainersListed(moved(containers, round_s)))
            if runs is not None:
                ended = [replace(run, id=f"{run.id}-{round_s:.0f}", started_at=at, ended_at=run.ended_at and at)
                         for run in runs.body]  # fmt: skip
                app._see_runs(messages.RunsChanged(tuple(ended)))
            if second % _LOOKS_A_DRAWING == 0:
                await pilot.pause()
            if second % 3600 == 3599 - _OPEN_S:
                open_details(app, view.gpus[0])
            if second % 3600 == 3599:
                hour = (second + 1) / 3600
                app.pop_screen()
                await pilot.pause()
                gc.collect()
                taken.append((hour, resident_mib()))
                print(_told(app, hour, trace, passed), flush=True)
            if second + 1 >= hours * 3600:
                break
            if second % 100 == 0:
                await asyncio.sleep(0)
    return taken


def _told(app: ConsoleApp, hour: float, trace: bool, passed: float) -> str:
    past = app.history
    python = f"{tracemalloc.get_traced_memory()[0] / 2**20:7.1f} MiB of Python, " if trace else ""
    return (f"{hour:5.0f} h  {resident_mib():6.1f} MiB resident, {python}{past.stored:9,} values of the past "
            f"(at most {past.stored_at_most:,})  {time.perf_counter() - passed:5.0f} s")  # fmt: skip


def compared(taken: Sequence[tuple[float, float]], early: float, late: float) -> str:
    """Resident memory after so many hours, as one sentence."""
    at = dict(taken)
    if early not in at or late not in at:
        return ""
    grew = at[late] - at[early]
    return f"resident at {early:.0f} h {at[early]:.1f} MiB, at {late:.0f} h {at[late]:.1f} MiB: {grew:+.1f} MiB"


def main() -> None:
    """Play and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--hours", type=float, default=24)
    parser.add_argument("--gpus", type=int, default=8, choices=range(1, 17), metavar="N")
    parser.add_argument("--processes", type=int, default=40, help="on each GPU")
    parser.add_argument("--recording", type=Path, default=RECORDING)
    parser.add_argument("--trace", action="store_true", help="also what Python allocated")
    asked = parser.parse_args()
    recording = load(asked.recording)
    with tempfile.TemporaryDirectory(prefix="gpuconsole-day-"):
        size = Size(asked.gpus, asked.processes)
        print(f"{size.gpus} GPUs, {size.processes} processes on each, {recording.name} over and over")
        taken = asyncio.run(play(recording, size, asked.hours, trace=asked.trace))
    print(compared(taken, 2, asked.hours))


if __name__ == "__main__":
    main()
