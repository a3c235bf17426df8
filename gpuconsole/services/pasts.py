"""What the console remembers of GPUs, processes and containers: figures of a day, and what happened.

Room is bounded however long the console is open. What is gone is kept for a while. For one thread.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from gpuconsole.gpu.model import GpuStatus
from gpuconsole.gpu.state import MemoryState
from gpuconsole.host.state import memory_state
from gpuconsole.services.pastevents import QUIET_S, EventKind, Events, PastEvent, PeakWatch, Spell
from gpuconsole.services.ringing import gpu_key, process_key
from gpuconsole.services.runs import RunKind
from gpuconsole.services.series import Peak, Point, Tier
from gpuconsole.services.track import Column, Track

if TYPE_CHECKING:
    from gpuconsole.host.model import GpuView, HostView
    from gpuconsole.services.containers import ContainerView
    from gpuconsole.services.runs import Run

DAY_S = 86_400.0
USE, MEMORY = "use", "memory"
"""Of a GPU: utilization in %, memory in bytes."""
GPU_MEMORY, RAM, CPU = "gpu-memory", "ram", "cpu"
"""Of a container: GPU memory and RAM in bytes, CPU in %."""
PROCESS = "process"
"""Of a process: GPU memory in bytes."""
_FINE = (Tier(15.0, 480), Tier(120.0, 720))
"""Of a GPU: two hours, and a day."""
_COARSE = (Tier(300.0, 288),)
"""Of a process and a container: a day."""
MOST_GPUS = 32
MOST_PROCESSES = 512
MOST_CONTAINERS = 128
_GONE_S = 1800.0
_STEP_BACK_S = 2.0
"""A clock that goes back by less was not set, it is only made to go well."""
_UUID = re.compile(r"GPU-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_RUNS = {RunKind.CHECK: EventKind.CHECKED, RunKind.BENCH: EventKind.MEASURED}
_HUGE, _NEVER = 1e18, -1.0


class Pasts:
    """The past as far as it is remembered. All times given and told are seconds since the epoch.

    Within, time never goes back: when the machine's clock is put back, what was before is told by the new clock. When
    it is put forward there is a gap, as after a suspend.
    """

    def __init__(self) -> None:
        self._gpus = Track(_FINE, most=2 * MOST_GPUS, gone_s=DAY_S)
        self._processes = Track(_COARSE, most=MOST_PROCESSES, gone_s=_GONE_S)
        self._containers = Track(_COARSE, most=3 * MOST_CONTAINERS, gone_s=_GONE_S)
        self._events = Events()
        self._ahead = 0.0
        """By how much the machine's clock is ahead of the one within."""
        self._newest: dict[str, float] = {}
        """Of each source, by the machine's clock."""
        self._slowed: dict[str, Spell] = {}
        self._lost: dict[str, Spell] = {}
        self._peaks: dict[str, PeakWatch] = {}
        self._running: set[str] | None = None
        """Containers that ran at the newest list; None before the first."""
        self._names: dict[str, str] = {}
        self._began: dict[str, float | None] = {}
        """Of each container, the beginning that was told."""
        self._ended: dict[str, float | None] = {}
        """The same of ends."""
        self._gpus_of: dict[str, tuple[str, ...]] = {}
        """Keys of the GPUs of each container, or those it had."""
        self._told_runs: set[str] = set()
        self._waiting: tuple[Run, ...] = ()
        """Those that wait for the first list of containers."""

    # --- what is taken in ---

    def host_looked(self, host: HostView) -> None:
        """One look at the GPUs; one that failed is none."""
        if host.snapshot.problem is not None:
            return
        at = self._placed("host", host.snapshot.taken_at)
        figures: dict[str, float | None] = {}
        for view in host.gpus:
            key = gpu_key(view)
            figures[f"{USE} {key}"] = _number(view.gpu.utilization_pct)
            figures[f"{MEMORY} {key}"] = _number(view.gpu.memory_used_bytes)
        if not self._gpus.look(at, figures):
            return
        self._processes.look(
            at,
            {
                f"{PROCESS} {process_key(holder)}": _number(holder.memory_bytes)
                for view in host.gpus
                for holder in view.holders
            },
        )
        self._watch_gpus(at, host.gpus)

    def containers_listed(self, views: Iterable[ContainerView], *, at: float) -> None:
        """The engine's containers are these at that moment."""
        at = self._placed("containers", at)
        figures: dict[str, float | None] = {}
        seen = tuple(views)
        for view in seen:
            if not view.container.running:
                continue
            of = view.container.id
            figures[f"{GPU_MEMORY} {of}"] = _number(view.gpu_memory_bytes)
            if view.usage is not None:
                figures[f"{RAM} {of}"] = _number(view.usage.memory_bytes)
                figures[f"{CPU} {of}"] = _number(view.usage.cpu_pct)
        self._containers.look(at, figures)
        self._watch_containers(at, seen)

    def runs_changed(self, runs: Iterable[Run], *, at: float) -> None:
        """The runs are these at that moment, in progress or ended."""
        ended = {run.id: run for run in runs if run.ended_at is not None and run.kind in _RUNS}
        self._told_runs &= ended.keys()
        self._waiting = tuple(run for run in ended.values() if not self._tell_run(run, at))

    def _tell_run(self, run: Run, at: float) -> bool:
        """Tell it once, where its GPUs are known; False while it may be of a container that is not listed yet."""
        happened = run.ended_at or 0.0
        if run.id in self._told_runs or at - happened >= DAY_S:
            return True
        gpus = self._gpus_of.get(run.subject_id) or tuple(dict.fromkeys(_UUID.findall(run.document or "")))
        if not gpus and self._running is None:
            return False
        self._told_runs.add(run.id)
        if gpus:
            self._events.add(PastEvent(happened - self._ahead, _RUNS[run.kind], run.subject, run.state.value), gpus)
        return True

    # --- what is told ---

    def points(self, measure: str, key: str, since: float, until: float) -> list[Point]:
        """All that is kept of a GPU, a container or a process in a time; gaps are left out."""
        ahead = self._ahead
        found = self._track(measure).points(f"{measure} {key}", since - ahead, until - ahead)
        return [point._replace(since=point.since + ahead, until=point.until + ahead) for point in found]

    def columns(self, measure: str, key: str, begins: float, each_s: float, count: int) -> list[Column | None]:
        """The same in ``count`` parts of ``each_s`` seconds; None where nothing is known."""
        return self._track(measure).columns(f"{measure} {key}", begins - self._ahead, each_s, count)

    def highest(self, measure: str, key: str, since: float, until: float) -> Peak | None:
        """The highest it was in a time, and when; of what is thinned, when that part began."""
        found = self._track(measure).highest(f"{measure} {key}", since - self._ahead, until - self._ahead)
        return None if found is None else Peak(found.value, found.at + self._ahead)

    def peak(self, measure: str, key: str) -> Peak | None:
        """The highest it ever was, and when."""
        found = self._track(measure).peak(f"{measure} {key}")
        return None if found is None else Peak(found.value, found.at + self._ahead)

    def _track(self, measure: str) -> Track:
        if measure == PROCESS:
            return self._processes
        return self._gpus if measure in (USE, MEMORY) else self._containers

    def full_since(self, gpu: str) -> float | None:
        """From when on every look at a GPU is kept, half an hour at most; None for one that was not looked at."""
        found = [self._gpus.full_since(f"{measure} {gpu}") for measure in (USE, MEMORY)]
        return min((at + self._ahead for at in found if at is not None), default=None)

    @property
    def happened(self) -> int:
        """Grows with every event that is new or known better."""
        return self._events.changes

    def events(self, gpu: str, since: float) -> list[PastEvent]:
        """What happened on a GPU from ``since`` on, oldest first; what lasted into that time too."""
        ahead = self._ahead
        found = (
            replace(event, at=event.at + ahead, until=None if event.until is None else event.until + ahead)
            for event in self._events.of(gpu)
        )
        lasting = (EventKind.SLOWED, EventKind.LOST)
        return [e for e in found if e.at >= since or (e.kind in lasting and (e.until is None or e.until >= since))]

    @property
    def stored(self) -> int:
        """Numbers and events held."""
        return self._gpus.stored + self._processes.stored + self._containers.stored + self._events.stored

    @property
    def stored_at_most(self) -> int:
        """What :attr:`stored` never exceeds."""
        from gpuconsole.services import pastevents

        tracks = (self._gpus, self._processes, self._containers)
        return sum(track.stored_at_most for track in tracks) + pastevents.KEPT * pastevents.MOST_GPUS

    # --- clocks ---

    def _placed(self, source: str, at: float) -> float:
        """A moment by the clock within; what comes from one source comes in order."""
        newest = self._newest.get(source, at)
        if at < newest - _STEP_BACK_S:
            self._ahead -= newest - at
            self._newest = {other: when - (newest - at) for other, when in self._newest.items()}
        self._newest[source] = max(self._newest.get(source, at), at)
        return at - self._ahead

    # --- what happened ---

    def _watch_gpus(self, at: float, views: tuple[GpuView, ...]) -> None:
        here = {gpu_key(view): view for view in views[:MOST_GPUS]}
        for key, view in here.items():
            gpu = view.gpu
            if key not in self._peaks:
                self._slowed[key] = Spell(EventKind.SLOWED, QUIET_S)
                self._lost[key] = Spell(EventKind.LOST, QUIET_S)
                self._peaks[key] = PeakWatch()
            well = gpu.status is GpuStatus.OK
            self._lost[key].look(at, "" if well else gpu.problem or "it does not answer", key, self._events)
            reasons = gpu.throttle_reasons
            self._slowed[key].look(at, None if reasons is None else ", ".join(reasons), key, self._events)
            self._peaks[key].look(at, _number(gpu.memory_used_bytes), _number(gpu.memory_total_bytes),
                                  free=well and memory_state(view) is MemoryState.FREE, gpu=key,
                                  events=self._events)  # fmt: skip
        for gone in [key for key in self._peaks if key not in here]:
            self._lost[gone].look(at, "it is not there", gone, self._events)
            if len(self._peaks) > MOST_GPUS:
                del self._peaks[gone], self._slowed[gone], self._lost[gone]

    def _watch_containers(self, at: float, views: tuple[ContainerView, ...]) -> None:
        """Tell the beginnings and ends; of the first list also those of the day before.

        What cannot be told yet, since the GPUs of a container are not known or no process of it is on one, comes later.
        """
        listed = {view.container.id: view for view in views}
        for gone in (self._running or set()) - listed.keys():
            self._container_event(self._names[gone], gone, None, at, EventKind.ENDED, "removed")
        for of, view in listed.items():
            self._names[of] = view.container.name
            if view.gpus:  # one that has ended is on none any more
                known = tuple(
                    gpu.uuid or f"index-{gpu.index}" for gpu in view.gpus if gpu.uuid or gpu.index is not None
                )
                self._gpus_of[of] = tuple(dict.fromkeys(known))
            self._watch_container(view, at)
        self._running = {of for of, view in listed.items() if view.container.running}
        for told in (self._names, self._gpus_of, self._began, self._ended):
            for gone in told.keys() - listed.keys():
                del told[gone]
        self._waiting = tuple(run for run in self._waiting if not self._tell_run(run, at + self._ahead))

    def _watch_container(self, view: ContainerView, at: float) -> None:
        container = view.container
        of, began, ended = container.id, container.started_at, container.finished_at
        over = not container.running and ended is not None and self._ended.get(of) != ended
        if self._gpus_of.get(of):
            if (container.running or over) and self._began.get(of, _NEVER) != began:
                self._container_event(container.name, of, began, at, EventKind.STARTED)
                self._began[of] = began
            if over:
                from gpuconsole.services.endings import state_words

                words = state_words(replace(container, finished_at=None), now=at)
                self._container_event(container.name, of, ended, at, EventKind.ENDED, words)
        if over and view.gpus is not None:
            self._ended[of] = ended

    def _container_event(
        self, name: str, of: str, when: float | None, at: float, kind: EventKind, words: str = ""
    ) -> None:
        """A container's event: ``when`` by the machine's clock, else now; of one without GPUs nothing is told."""
        happened = at if when is None else when - self._ahead
        if self._gpus_of.get(of) and at - happened < DAY_S:
            self._events.add(PastEvent(happened, kind, name, words), self._gpus_of[of])


def _number(value: float | None) -> float | None:
    """A figure as arrays can hold it."""
    return None if value is None else float(min(max(value, 0), _HUGE))
