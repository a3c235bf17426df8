"""The GPUs as the host sees them while benchmarks run: clocks, power, heat, what throttles, and who else is on them."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from gpuconsole.core.text import plain_line, shorten, size
from gpuconsole.gpu.model import Gpu, GpuSnapshot, ProcessKind
from gpuconsole.host.model import GpuView, Holder, HostView
from gpuconsole.host.processes import ENDED, REUSED
from gpuconsole.probes.benchrecords import DeviceUse, Spread
from gpuconsole.services.overview import Overview
from gpuconsole.services.sampler import Sampler
from gpuconsole.services.session import Session

INTERVAL_S = 0.1
"""Between two samples."""
_HOLDERS_EVERY = 10
"""Samples from one look at the processes and the links to the next: these cost more."""
_BUSY_PCT = 10
"""From this use on a GPU counts as used, also by what holds it for a screen."""
_MOST_NAMED = 3
_STOP_S = 2.0

IsOurs = Callable[[Holder], bool]
"""Whether a process on a GPU belongs to the benchmark."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One GPU at one moment, and who else was on it."""

    taken_at: float
    sm_mhz: float | None = None
    memory_mhz: float | None = None
    power_w: float | None = None
    temperature_c: float | None = None
    reasons: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    hidden: bool = False
    """There are processes on it of which nothing can be told."""

    @classmethod
    def of(cls, gpu: Gpu, taken_at: float, others: tuple[str, ...], *, hidden: bool) -> Sample:
        """What is kept of a look at ``gpu``: ten minutes on eight GPUs are many."""
        return cls(
            taken_at,
            gpu.sm_clock_mhz,
            gpu.memory_clock_mhz,
            gpu.power_w,
            gpu.temperature_c,
            gpu.throttle_reasons or (),
            others,
            hidden,
        )


class HostSamples:
    """Looks at this machine's GPUs from before a benchmark to its end.

    Args:
        session: Whose GPUs.
        ours: Tells the benchmark's processes from others; what was there before it is another's in any case.
        interval_s: Between two samples.
    """

    def __init__(self, session: Session, ours: IsOurs, *, interval_s: float = INTERVAL_S) -> None:
        self._session = session
        self._overview = Overview(session)
        self._is_ours = ours
        self._there: frozenset[int] = frozenset()
        self._lock = threading.Lock()
        self._samples: dict[str, list[Sample]] = {}
        self._before: dict[str, Sample] = {}
        self._links: dict[str, list[tuple[float, int, int | None]]] = {}
        self._others: dict[str, tuple[tuple[str, ...], bool]] = {}
        self._count = 0
        self.problem: str | None = None
        """Why there is nothing to sample."""
        self.snapshot = GpuSnapshot(0.0)
        """The GPUs before the benchmark, with their slow readings."""
        self._sampler = Sampler("bench-samples", self._take, interval_s=interval_s, on_result=self._keep)

    def start(self) -> None:
        """Look once, then again and again on a thread."""
        view = self._overview.look(details=True)
        self.snapshot = view.snapshot
        self.problem = view.snapshot.problem
        if self.problem is None and not view.gpus:
            self.problem = "this machine has no GPU"
        if self.problem is not None:
            return
        self._there = frozenset(holder.pid for each in view.gpus for holder in each.holders)
        for uuid, each in _units(view):
            named, hidden = others_on(each, None)
            self._before[uuid] = Sample.of(each.gpu, view.snapshot.taken_at, named, hidden=hidden)
        self._sampler.start()

    def stop(self) -> None:
        """No further samples."""
        if self.problem is None:
            self._sampler.stop(_STOP_S)

    def _ours(self, holder: Holder) -> bool:
        return holder.pid not in self._there and self._is_ours(holder)

    def _take(self) -> HostView | GpuSnapshot:
        self._count += 1
        if self._count % _HOLDERS_EVERY == 0:
            return self._overview.look(details=True)
        return self._session.gpus.snapshot()

    def _keep(self, seen: HostView | GpuSnapshot) -> None:
        with self._lock:
            if isinstance(seen, HostView):
                self._others = {uuid: others_on(view, self._ours) for uuid, view in _units(seen)}
                snapshot = seen.snapshot
                for gpu in snapshot.gpus:
                    if gpu.uuid and gpu.pcie.generation is not None:
                        look = (snapshot.taken_at, gpu.pcie.generation, gpu.pcie.width)
                        self._links.setdefault(gpu.uuid, []).append(look)
            else:
                snapshot = seen
            if snapshot.problem is not None:
                return  # what comes back then is of before
            for gpu in snapshot.gpus:
                for uuid in _names(gpu):
                    others, hidden = self._others.get(uuid, ((), False))
                    sample = Sample.of(gpu, snapshot.taken_at, others, hidden=hidden)
                    self._samples.setdefault(uuid, []).append(sample)

    def link(self, uuid: str | None, *, began: float | None, ended: float | None) -> tuple[int | None, int | None]:
        """Generation and width of a GPU's PCIe link at its best between two moments: one that idles trains it down."""
        with self._lock:
            looks = self._links.get(uuid or "", [])
            if began is None or ended is None:
                return None, None
            seen = [(generation, width) for at, generation, width in looks if began <= at <= ended]
        return max(seen, key=lambda each: (each[0], each[1] or 0), default=(None, None))

    def use(self, uuid: str | None, position: int, *, began: float | None, ended: float | None) -> DeviceUse:
        """How the GPU with ``uuid`` was from ``began`` to ``ended``, in seconds since the epoch."""
        if self.problem is not None:
            return DeviceUse(position, unknown=self.problem)
        with self._lock:
            samples = list(self._samples.get(uuid or "", ()))
        if not samples:
            return DeviceUse(position, unknown="it cannot be told which of this machine's GPUs it is")
        return use_of(samples, position, began=began, ended=ended)

    def contention(
        self, uuids: Collection[str], *, began: float | None, ended: float | None
    ) -> tuple[bool | None, tuple[str, ...]]:
        """Whether others used these GPUs before or meanwhile, and who; None when that cannot be told."""
        with self._lock:
            samples = [sample for uuid in uuids for sample in _between(self._samples.get(uuid, ()), began, ended)]
            before = [self._before[uuid] for uuid in uuids if uuid in self._before]
        named = dict.fromkeys(name for sample in (*before, *samples) for name in sample.others)
        if named:
            return True, tuple(named)[:_MOST_NAMED]
        known = self.problem is None and len(before) == len(uuids) and bool(uuids)
        return (False if known and not any(sample.hidden for sample in samples) else None), ()


def use_of(samples: Iterable[Sample], position: int, *, began: float | None, ended: float | None) -> DeviceUse:
    """The readings of one GPU between two moments."""
    found = _between(samples, began, ended)
    if not found:
        return DeviceUse(position, unknown="it was over before a sample was taken")
    reasons = Counter(reason for sample in found for reason in sample.reasons)
    return DeviceUse(
        position,
        samples=len(found),
        sm_mhz=_spread(sample.sm_mhz for sample in found),
        memory_mhz=_spread(sample.memory_mhz for sample in found),
        power_w=_spread(sample.power_w for sample in found),
        temperature_c=_spread(sample.temperature_c for sample in found),
        reasons=tuple(reasons),
        reasons_share={reason: round(seen / len(found), 3) for reason, seen in reasons.items()},
    )


def _between(samples: Iterable[Sample], began: float | None, ended: float | None) -> list[Sample]:
    if began is None or ended is None:
        return []
    return [sample for sample in samples if began <= sample.taken_at <= ended]


def _spread(readings: Iterable[float | None]) -> Spread | None:
    known = [float(each) for each in readings if each is not None]
    return Spread(min(known), round(sum(known) / len(known), 1), max(known)) if known else None


def _names(gpu: Gpu) -> list[str]:
    """The UUIDs of a GPU and of its MIG instances."""
    return [uuid for uuid in (gpu.uuid, *(mig.uuid for mig in gpu.migs)) if uuid]


def _units(view: HostView) -> Iterator[tuple[str, GpuView]]:
    """Each GPU and each MIG instance by UUID, with who is on it."""
    for each in view.gpus:
        for uuid in _names(each.gpu):
            whole = uuid == each.gpu.uuid
            inside = tuple(holder for holder in each.holders if whole or holder.mig_uuid == uuid)
            yield uuid, replace(each, holders=inside)


def others_on(view: GpuView, ours: IsOurs | None) -> tuple[tuple[str, ...], bool]:
    """Who else is on a GPU, each a short phrase, and whether there is more than can be told.

    What only draws a screen does not count while the GPU is idle: a desktop is always there. So it does count only
    before a benchmark, which keeps the GPU busy itself.

    Args:
        view: The GPU.
        ours: Tells the benchmark's processes; None before it runs, when all are others.
    """
    gpu = view.gpu
    busy = ours is None and (gpu.utilization_pct or 0) >= _BUSY_PCT
    named: list[str] = []
    hidden = gpu.processes is None
    for holder in view.holders:
        if ours is not None and ours(holder):
            continue
        if ours is not None and holder.unknown.get("container_id") is not None:
            hidden = hidden or holder.unknown["container_id"] not in (ENDED, REUSED)
        elif holder.kind is not ProcessKind.GRAPHICS or busy:
            named.append(_phrase(holder))
    if busy and not view.holders:
        named.append("a process that the driver does not list")
    return tuple(named), hidden


def _phrase(holder: Holder) -> str:
    who = holder.command or f"process {holder.pid}"
    amount = "" if holder.memory_bytes is None else f" ({size(holder.memory_bytes)})"
    return f"{plain_line(shorten(who, 40))}{amount}"


def in_container(container_id: str) -> IsOurs:
    """What runs in a container."""
    return lambda holder: holder.container_id == container_id


def below_us(pid: int, *, proc: Path = Path("/proc")) -> IsOurs:
    """What descends from the process ``pid``; once seen it stays ours, also when its parent has ended."""
    known: set[int] = {pid}

    def ours(holder: Holder) -> bool:
        line: list[int] = []
        each: int | None = holder.pid
        while each is not None and each > 1 and each not in known and len(line) < 64:
            line.append(each)
            each = _parent(each, proc)
        if each in known:
            known.update(line)
        return holder.pid in known

    return ours


def _parent(pid: int, proc: Path) -> int | None:
    try:
        fields = (proc / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
        return int(fields[1])
    except (OSError, ValueError, IndexError):
        return None
