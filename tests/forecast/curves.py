"""Memory curves drawn by rule, for properties that recordings are too few to show."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from gpuconsole.gpu.forecast_model import GpuMemory, MemorySample, ProcessMemory

GIB = 2**30
TOTAL = 140 * GIB
KEPT = int(0.6 * GIB)
"""What the driver keeps for itself."""


@dataclass
class Sketch:
    """A curve under the pencil: each method draws on from where the last ended.

    Sizes are GiB of a card of 140, times seconds.
    """

    seed: int
    every: float = 0.25
    busy: float = 95.0
    """Utilisation from here on, percent; the same all along tells nothing."""
    t: float = 0.0
    level: float = 0.0
    points: list[tuple[float, float, float]] = field(default_factory=list)
    """Time, level and utilisation."""
    oom_t: float | None = None
    loaded_t: float | None = None

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self._next = 0.0
        self.rest(1.0)
        self.level = 0.5

    def rest(self, seconds: float) -> Sketch:
        """Nothing changes."""
        end = self.t + seconds
        while self._next < end and self.oom_t is None:
            self.points.append((self._next, self.level, self.busy))
            self._next += self.every
        self.t = end
        return self

    def computes(self, percent: float) -> Sketch:
        """From here on so much of the time."""
        self.busy = percent
        return self

    def take(self, size: float) -> Sketch:
        """More by ``size``; out of memory when it does not fit."""
        if self.oom_t is None:
            if self.level + size > 139.8:
                self.oom_t = self.t
                self.level = 0.0
                self.points += [(self._next + i * self.every, 0.0, 0.0) for i in range(4)]
            else:
                self.level += size
        return self

    def load(self, to: float, shards: int = 4, pause: float = 0.4, jitter: float = 0.2) -> Sketch:
        """Up to a level in shards."""
        size = (to - self.level) / shards
        for _ in range(shards):
            self.take(size).rest(self.about(pause, jitter))
        self.loaded_t = self.t
        return self

    def about(self, value: float, jitter: float) -> float:
        """Near a value."""
        return value * (1 + self.random.uniform(-jitter, jitter))

    def leak(
        self, step: float, gap: float, *, jitter: float = 0.0, grow: float = 1.0, until: float = 1e9, steps: int = 400
    ) -> Sketch:
        """Steps of growth, until a level, so many at most, or the end."""
        for _ in range(steps):
            size = self.about(step, jitter)
            if self.level + size > until or self.oom_t is not None:
                break
            self.take(size).rest(self.about(gap, jitter))
            step *= grow
        return self

    def cycle(self, peak: float, step: float, gap: float, left: float = 0.0) -> Sketch:
        """Up by ``peak`` in steps, and down again but for ``left``."""
        base = self.level
        while self.level < base + peak - step / 2 and self.oom_t is None:
            self.take(step).rest(gap)
        if self.oom_t is None:
            self.level = base + left
            self.rest(gap)
        return self

    def records(self, most: float, gap: float, count: int) -> Sketch:
        """Random needs up to ``most`` above the base, kept once taken: lengths drawn anew each time."""
        base = self.level
        for _ in range(count):
            self.level = max(self.level, base + self.random.uniform(0.2, 1.0) * most)
            self.rest(gap)
        return self

    def saturate(self, whole: float, rate: float, seconds: float) -> Sketch:
        """Growth that dies away: ``whole`` in the end, by ``rate`` of what is left in a second."""
        base, begin = self.level, self.t
        while self.t - begin < seconds and self.oom_t is None:
            want = base + whole * -math.expm1(-rate * (self.t - begin))
            self.take(max(0.0, want - self.level)).rest(self.every)
        return self

    def samples(self, *, time: float = 1.0, size: float = 1.0, hidden: bool = False) -> list[MemorySample]:
        """What a watcher is given; times and sizes may be multiplied."""
        total = int(TOTAL * size)
        drawn = []
        for t, level, busy in self.points:
            used = int(level * GIB * size)
            kept = int(KEPT * size)
            held = (ProcessMemory(7, used),) if used else ()
            gpu = GpuMemory(0, total + kept, used, total - used, busy if used else 0.0, None if hidden else held)
            drawn.append(MemorySample(t * time, (gpu,)))
        return drawn


def growing(seed: int) -> Sketch:
    """A run that ends out of memory after growth from a settled base of three steps or more."""
    pick = random.Random(seed)
    s = Sketch(seed)
    base = pick.uniform(50, 125)
    s.load(base, pick.choice([1, 3, 5]), pick.uniform(0.2, 0.8))
    room, lasts = 139.8 - base, pick.uniform(20, 90)
    steps = pick.randint(4, 40)
    gap = lasts / steps
    kind = pick.choice(["leak", "leak", "jitter", "faster", "plateau", "pause", "saw"])
    s.rest(pick.uniform(0.5, 1.5) * gap)
    if kind == "faster":
        grow = pick.uniform(1.05, 1.4)
        steps = min(steps, 10)
        s.leak(room * (grow - 1) / (grow**steps - 1), lasts / steps, grow=grow)
    elif kind == "plateau":
        s.rest(lasts * pick.uniform(0.3, 1.0))
        s.loaded_t = s.t
        s.leak(room / steps, gap, jitter=0.1)
    elif kind == "pause":
        s.leak(room / steps, gap, jitter=0.1, steps=max(2, steps // 3)).rest(gap * pick.uniform(1, 4))
        s.leak(room / steps, gap, jitter=0.1)
    elif kind == "saw":
        rounds = pick.randint(7, 14)
        peak = room * pick.uniform(0.2, 0.4)
        left = (room - peak) / rounds
        while s.oom_t is None:
            s.cycle(peak, peak / 4, lasts / rounds / 6, left).rest(lasts / rounds / 6)
    else:
        s.leak(room / steps, gap, jitter=0.35 if kind == "jitter" else 0.0)
    return s


def growing_at_once(seed: int) -> Sketch:
    """Loading while nothing computes; then equal steps at about its pace, without a rest, until it is full."""
    pick = random.Random(seed)
    s = Sketch(seed).computes(pick.choice([0, 0, 3, 10, 20]))
    shards, pause, to = pick.randint(3, 12), pick.uniform(0.8, 3), pick.uniform(20, 60)
    s.load(to, shards, pause, pick.choice([0, 0.2]))
    step = (139.8 - to) / pick.uniform(12, 30)
    gap = step / (to / shards / pause * pick.uniform(0.5, 1.5))
    return s.computes(pick.uniform(70, 100)).leak(step, gap, jitter=pick.choice([0, 0.1, 0.2]))


def growing_after_work(seed: int) -> Sketch:
    """Loaded between two samples; it computes for a while, then grows by steps that are large beside what it had."""
    pick = random.Random(seed)
    s = Sketch(seed).computes(pick.uniform(85, 100))
    base, steps = pick.uniform(15, 60), pick.randint(8, 40)
    gap = pick.uniform(1.0, 5.0)
    s.take(base).rest(max(pick.uniform(5, 12) * gap, 10.0))
    return s.leak((139.8 - s.level) / steps, gap, jitter=pick.choice([0, 0.1, 0.2]))


CALM: dict[str, Callable[[int], Sketch]] = {}
"""Kinds of runs that end well and must not raise an alarm."""


def _calm(draw: Callable[[int], Sketch]) -> Callable[[int], Sketch]:
    CALM[draw.__name__] = draw
    return draw


@_calm
def steady(seed: int) -> Sketch:
    """It loads and works."""
    pick = random.Random(seed)
    return Sketch(seed).load(pick.uniform(20, 138), pick.randint(1, 6), pick.uniform(0.2, 1.0)).rest(40)


@_calm
def loading(seed: int) -> Sketch:
    """It loads in shards, with rests between them."""
    pick = random.Random(seed)
    shards, pause = pick.randint(5, 40), pick.uniform(0.3, 4.0)
    return Sketch(seed).load(pick.uniform(90, 137), shards, pause, pick.uniform(0, 0.5)).rest(20)


@_calm
def halting_load(seed: int) -> Sketch:
    """It loads half, rests long, and loads the other half at the same pace."""
    pick = random.Random(seed)
    s, size, pause = Sketch(seed), pick.uniform(3, 8), pick.uniform(0.3, 2.0)
    half = pick.randint(4, 7)
    s.leak(size, pause, jitter=0.1, steps=half).rest(pause * pick.uniform(2, 6))
    return s.leak(size, pause, jitter=0.1, until=136).rest(20)


@_calm
def cycles(seed: int) -> Sketch:
    """A cache that is filled and given back, to random heights, some of them near the top."""
    pick = random.Random(seed)
    s = Sketch(seed).load(pick.uniform(60, 110), 3, 0.3).rest(3)
    room = 139 - s.level
    step = room / pick.randint(12, 50)
    s.cycle(room * pick.uniform(0.2, 0.55), step, 0.25)
    for _ in range(12):
        s.cycle(room * pick.uniform(0.2, 0.97), step, 0.25).rest(pick.uniform(0, 2))
    return s


@_calm
def lengths(seed: int) -> Sketch:
    """Random sequence lengths: the highest need comes sooner or later."""
    pick = random.Random(seed)
    s = Sketch(seed).load(pick.uniform(40, 100), 2, 0.3)
    return s.records((138 - s.level) * pick.uniform(0.5, 0.97), pick.uniform(0.5, 4), 40)


@_calm
def saturating(seed: int) -> Sketch:
    """An allocator that finds its working set."""
    pick = random.Random(seed)
    s = Sketch(seed).load(pick.uniform(60, 115), 2, 0.3).rest(1)
    return s.saturate((139 - s.level) * pick.uniform(0.6, 0.97), pick.uniform(0.05, 0.3), 60)


@_calm
def validations(seed: int) -> Sketch:
    """Peaks of one height, again and again."""
    pick = random.Random(seed)
    s = Sketch(seed).load(pick.uniform(50, 100), 2, 0.3).rest(2)
    peak = (139 - s.level) * pick.uniform(0.5, 0.95)
    base = s.level
    for _ in range(10):
        s.rest(pick.uniform(1, 4)).take(pick.uniform(0.93, 1.0) * peak).rest(1.5)
        s.level = base
    return s


@_calm
def sharded_load(seed: int) -> Sketch:
    """Nearly full in equal shards with pauses, a few kernels for each, and then it computes."""
    pick = random.Random(seed)
    s = Sketch(seed).computes(pick.choice([0, 0, 5, 15, 30]))
    s.load(
        pick.uniform(125, 136), pick.choice([8, 15, 30, 60, 120]), pick.uniform(0.5, 3.0), pick.choice([0, 0.1, 0.4])
    )
    return s.computes(97).rest(20)


@_calm
def busy_load(seed: int) -> Sketch:
    """As that one, but weights are made on the GPU: all kernels but for the first shard, as utilisation is late."""
    pick = random.Random(seed)
    pause, shards = pick.uniform(0.5, 3.0), pick.randint(5, 40)
    first = pick.uniform(0, 1) * min(pause, 1.0)
    s = Sketch(seed).computes(2).rest(pick.choice([0.0, 0.25, 0.5]) * first)
    top = pick.uniform(125, 136)
    s.take((top - s.level) / shards).rest(first).computes(97).rest(pause - first)
    return s.load(top, shards - 1, pause, pick.choice([0, 0.1, 0.4])).rest(20)


@_calm
def waiting_load(seed: int) -> Sketch:
    """A rank whose context is long there, and that spins in a kernel while another reads the weights for it."""
    pick = random.Random(seed)
    s = Sketch(seed).computes(0).take(pick.uniform(0.5, 4)).rest(pick.uniform(2, 20)).computes(100)
    return s.load(pick.uniform(100, 136), pick.randint(10, 60), pick.uniform(0.4, 2.0), 0.1).rest(20)


@_calm
def first_pass(seed: int) -> Sketch:
    """Loaded while nothing computes, at once the first pass: a climb as fast as loading was, that soon ends."""
    pick = random.Random(seed)
    s = Sketch(seed).computes(0).load(pick.uniform(30, 80), pick.randint(3, 8), 0.8, 0.1).computes(97)
    rise = pick.uniform(0.3, 0.85) * (139 - s.level)
    return s.load(s.level + rise, 8, 0.25, 0.0).rest(30)
