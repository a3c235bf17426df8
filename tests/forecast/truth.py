"""Recordings with their truth: what ran, when loading ended, when memory ran out. Only the judge reads this."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from gpuconsole.gpu.forecast_model import MemorySample
from gpuconsole.host.recorded import memory_samples
from gpuconsole.host.recording import read_recording

HALVES = ("tune", "first", "judge")
FOLDER = Path(__file__).parent / "recordings"
OOM_EVENTS = {"cuda_oom": "gpu", "oom_kill": "container", "bus_error": "shm"}
"""Event → the memory that was full."""
STEP = 0.001
"""Of the capacity: as for the forecaster."""
NEARLY = 0.02
"""A peak seen so much too low is seen."""

GROWTH = {
    "leak-oom", "stairs-oom", "sequence-grows", "two-leaks", "tenant-leak", "changing-leak", "growing-leak",
    "leak-hidden", "leak-expandable", "leak-async", "slow-leak", "plateau-leak", "saw-leak", "validation-grows",
    "validation-cached", "cycles-oom", "fragments-oom", "ram-leak", "shm-fills",
}  # fmt: skip
"""Classes whose end can be foreseen: growth from a settled base."""
CALM = {
    "steady", "packed", "loading", "cycles", "validation", "lengths", "tenant", "ram-steady", "ram-cycles", "ram-pages",
    "ram-loads", "shm-steady",
}  # fmt: skip
"""Flat, packed, loading and repeated-cycle classes: no wrong alarm at all."""
UNFORESEEN = {"loading-oom", "optimizer-spike", "single-peak", "tenant-collides"}
"""Classes no watcher from outside can foresee."""


@dataclass(frozen=True)
class Recording:
    """One recorded run."""

    name: str
    kind: str
    half: str
    """``tune``, ``judge``, or ``first``: judged once, and looked at since."""
    interval_s: float
    samples: tuple[MemorySample, ...]
    loaded_t: float | None
    """When loading ended."""
    oom_t: float | None
    full: str | None
    """Which memory was: gpu, container, shm."""

    def every(self, seconds: float) -> list[MemorySample]:
        """The samples as somebody saw them who looks every ``seconds``."""
        taken: list[MemorySample] = []
        for sample in self.samples:
            if not taken or sample.t - taken[-1].t >= seconds - 0.4 * self.interval_s:
                taken.append(sample)
        return taken

    def used(self, memory: tuple[str, str]) -> Iterator[tuple[float, float, float]]:
        """Time, bytes in use and capacity of one memory, at full rate."""
        subject, name = memory
        for sample in self.samples:
            if subject == "gpu":
                for gpu in sample.gpus:
                    if str(gpu.index) == name and gpu.used_bytes is not None and gpu.total_bytes:
                        yield sample.t, gpu.used_bytes, gpu.total_bytes
            for pool in sample.pools:
                if (pool.subject, pool.id) == memory and pool.used_bytes is not None and pool.limit_bytes:
                    yield sample.t, pool.used_bytes, pool.limit_bytes

    def steps(self, memory: tuple[str, str]) -> list[float]:
        """Times at which the memory rose."""
        rises, low = [], None
        for t, used, capacity in self.used(memory):
            if low is None or used < low:
                low = used
            elif used - low >= STEP * capacity:
                rises.append(t)
                low = used
        return rises

    def shows_growth(self, sampling_s: float) -> bool:
        """Whether somebody who looks so seldom sees the growth that ends out of memory, three steps of it and more.

        The highest level seen is, nearly always, at least what it really was two samples ago; peaks that come and go
        between samples are not seen.
        """
        if self.oom_t is None or self.loaded_t is None:
            return False
        whole = self._marks(self.samples)
        seen = self._marks(self.every(sampling_s))
        known = [
            high >= _at(whole, t - 2 * sampling_s) * (1 - NEARLY) for t, high in seen if self.loaded_t < t < self.oom_t
        ]
        steps = len({high for t, high in seen if self.loaded_t + sampling_s < t < self.oom_t})
        return steps > 3 and sum(known) >= 0.8 * len(known)

    def _marks(self, samples: Sequence[MemorySample]) -> list[tuple[float, float]]:
        """The highest use so far of the memory that was full, at each sample."""
        marks, high = [], 0.0
        for sample in samples:
            levels = [gpu.used_bytes for gpu in sample.gpus] if self.full == "gpu" else []
            levels += [pool.used_bytes for pool in sample.pools if pool.subject == self.full]
            high = max([high, *(level for level in levels if level is not None)])
            marks.append((sample.t, high))
        return marks

    def growing(self, memory: tuple[str, str], t: float, sampling_s: float) -> bool:
        """Whether real growth was under way at ``t``, or ended no longer ago than three of its step intervals."""
        loaded = -1.0 if self.loaded_t is None else self.loaded_t  # its steps are none of growth's
        rises = [each for each in self.steps(memory) if loaded < each <= t]
        recent = rises[-9:]
        if len(recent) < 2:
            return False
        usual = max(median(b - a for a, b in pairwise(recent)), sampling_s)
        return t - recent[-1] <= 3 * usual + sampling_s


def _at(marks: Sequence[tuple[float, float]], t: float) -> float:
    return next((high for at, high in reversed(marks) if at <= t), 0.0)


def recordings(folder: Path = FOLDER) -> list[Recording]:
    """All of them, in the order of their names."""
    index = tomllib.loads((folder / "index.toml").read_text()) if (folder / "index.toml").exists() else {}
    return [_read(path, index.get(path.name.split(".")[0], {})) for path in sorted(folder.glob("*.jsonl.gz"))]


def _read(path: Path, known: dict[str, Any]) -> Recording:
    lines = [line for _, line in read_recording(path)]
    events = [line for line in lines if line["type"] == "event"]
    plan = next((event for event in events if event["event"] == "plan"), {}) | known
    oom = next((event for event in events if event["event"] in OOM_EVENTS), None)
    return Recording(
        name=path.name.split(".")[0],
        kind=plan["class"],
        half=plan["half"],
        interval_s=lines[0]["interval_s"],
        samples=tuple(memory_samples(path)),
        loaded_t=plan.get("loaded_t", _loaded(events, oom)),
        oom_t=oom["t"] if oom else None,
        full=OOM_EVENTS[oom["event"]] if oom else None,
    )


def _loaded(events: list[dict[str, Any]], oom: dict[str, Any] | None) -> float | None:
    """When the one that failed, or else the last of all, went from loading to something else; a rest after it is over.

    The rest before a leak is no growth time: a plateau is left out where the workload tells of one.
    """
    mine = [
        event
        for event in events
        if event["event"] == "phase" and (not oom or event["pid"] == oom.get("pid", event["pid"]))
    ]
    after = [event["t"] for event in mine if event.get("name") != "load"]
    return after[0] if after else None
