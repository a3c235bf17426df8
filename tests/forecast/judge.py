"""How good the forecast is: alarms by outcome, lead, ETA error, beside two simple rules."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from gpuconsole.gpu.forecast import Forecaster
from gpuconsole.gpu.forecast_model import MemorySample, Settings, Subject
from gpuconsole.gpu.state import MemoryState
from tests.forecast.truth import Recording

Memory = tuple[str, str]
"""Subject and id: a GPU, a container, the host, a shm."""
ALARMS = (MemoryState.RISK, MemoryState.CRITICAL)
LATE_SAMPLES = 2
"""An OOM so many samples after an alarm fell still counts for it."""


@dataclass
class Alarm:
    """One time of RISK or above for one memory."""

    memory: Memory
    rose_t: float
    eta_s: float | None
    fell_t: float | None = None
    outcome: str = ""
    """hit, withdrawn or wrong."""


@dataclass
class Verdict:
    """One recording at one sampling."""

    recording: Recording
    sampling_s: float
    alarms: list[Alarm] = field(default_factory=list)

    @property
    def hit(self) -> Alarm | None:
        """The alarm that was right."""
        return next((alarm for alarm in self.alarms if alarm.outcome == "hit"), None)

    @property
    def lead(self) -> float | None:
        """Share of the growth time that was left when the alarm rose; None without a hit."""
        run, hit = self.recording, self.hit
        if hit is None or run.oom_t is None or run.loaded_t is None or run.oom_t <= run.loaded_t:
            return None
        return (run.oom_t - hit.rose_t) / (run.oom_t - run.loaded_t)

    @property
    def eta_ratio(self) -> float | None:
        """Time foretold over true time, at the rise."""
        hit = self.hit
        if hit is None or hit.eta_s is None or self.recording.oom_t is None:
            return None
        return hit.eta_s / max(self.recording.oom_t - hit.rose_t, 1e-3)

    def count(self, outcome: str) -> int:
        """Alarms of this outcome."""
        return sum(alarm.outcome == outcome for alarm in self.alarms)


def verdict(run: Recording, sampling_s: float, rule: str = "forecast", settings: Settings | None = None) -> Verdict:
    """Replay one recording without its events, then hold what was said against them."""
    samples = run.every(sampling_s)
    told = {
        "forecast": lambda: forecast(samples, settings),
        "level": lambda: level(samples),
        "line": lambda: line(samples),
    }
    result = Verdict(run, sampling_s, list(_episodes(told[rule]())))
    for alarm in result.alarms:
        alarm.outcome = _outcome(run, alarm, sampling_s)
    return result


Told = tuple[float, dict[Memory, float | None]]
"""Time, and the memories under alarm with their ETA."""


def forecast(samples: Iterable[MemorySample], settings: Settings | None = None) -> Iterator[Told]:
    """Ours; a process's alarm is its GPU's."""
    forecaster = Forecaster(settings)
    for sample in samples:
        standing: dict[Memory, float | None] = {}
        for said in forecaster.feed(sample):
            if said.state in ALARMS:
                memory = ("gpu", str(said.gpu)) if said.subject is Subject.PROCESS else (said.subject, said.id)
                standing.setdefault(memory, said.eta_s)
        yield sample.t, standing


def _levels(sample: MemorySample) -> Iterator[tuple[Memory, float, float]]:
    for gpu in sample.gpus:
        if gpu.used_bytes is not None and gpu.total_bytes:
            yield ("gpu", str(gpu.index)), gpu.used_bytes, gpu.total_bytes
    for pool in sample.pools:
        if pool.used_bytes is not None and pool.limit_bytes:
            yield (pool.subject, pool.id), pool.used_bytes, pool.limit_bytes


def level(samples: Iterable[MemorySample]) -> Iterator[Told]:
    """The simplest rule: 90 % in use."""
    for sample in samples:
        yield sample.t, {memory: None for memory, used, total in _levels(sample) if used >= 0.9 * total}


def line(samples: Iterable[MemorySample]) -> Iterator[Told]:
    """A straight line through the last minute: full within the next."""
    seen: dict[Memory, deque[tuple[float, float]]] = {}
    for sample in samples:
        standing: dict[Memory, float | None] = {}
        for memory, used, total in _levels(sample):
            past = seen.setdefault(memory, deque())
            past.append((sample.t, used))
            while past[0][0] < sample.t - 60:
                past.popleft()
            slope = _slope(past)
            if slope > 0 and (total - used) / slope <= 60:
                standing[memory] = (total - used) / slope
        yield sample.t, standing


def _slope(past: deque[tuple[float, float]]) -> float:
    if len(past) < 3:
        return 0.0
    mean_t = sum(t for t, _ in past) / len(past)
    mean_v = sum(v for _, v in past) / len(past)
    spread = sum((t - mean_t) ** 2 for t, _ in past)
    return sum((t - mean_t) * (v - mean_v) for t, v in past) / spread if spread else 0.0


def _episodes(told: Iterable[Told]) -> Iterator[Alarm]:
    standing: dict[Memory, Alarm] = {}
    for t, now in told:
        for memory in [memory for memory in standing if memory not in now]:
            ended = standing.pop(memory)
            ended.fell_t = t
            yield ended
        for memory, eta in now.items():
            standing.setdefault(memory, Alarm(memory, t, eta))
    yield from standing.values()


def _outcome(run: Recording, alarm: Alarm, sampling_s: float) -> str:
    end = float("inf") if alarm.fell_t is None else alarm.fell_t + LATE_SAMPLES * sampling_s
    if run.oom_t is not None and run.full == alarm.memory[0] and alarm.rose_t <= run.oom_t <= end:
        return "hit"
    rose = run.growing(alarm.memory, alarm.rose_t, sampling_s)
    fell = run.growing(alarm.memory, run.samples[-1].t if alarm.fell_t is None else alarm.fell_t, sampling_s)
    return "withdrawn" if rose and fell else "wrong"
