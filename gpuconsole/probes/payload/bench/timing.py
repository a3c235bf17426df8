"""Time taken on the device: warmed up first, an event around each iteration, medians with their spread.

On a CPU the host's clock stands in for the events, in the same form.
"""

from __future__ import annotations

import time
from typing import Any, Callable

NOISY_RIQR = 0.05
"""A wider spread than this makes a figure ``noisy``."""
LEAST_N = 20
"""Iterations that a median rests on."""
SHORTEST_MS = 0.2
"""An event around less than this times the launch, not the kernel."""
_FEWEST_N = 5
"""Where even the budget's end comes first."""
_STEADY = 0.02
_WINDOW_S = 0.5
_BATCH_S = 0.25
_CHUNK_S = 0.03
_MOST_N = 20000


class Timing:
    """Times of the iterations of one thing, in milliseconds each.

    Args:
        samples_ms: One for each iteration.
        cold_s: Seconds the very first call took, with all that is loaded and compiled then.
        began: Seconds since the epoch when the timed part began.
        ended: When it ended.
        heat_s: How long it was warmed up before.
        inner: Calls within one iteration; the times are of one call.
    """

    def __init__(
        self,
        samples_ms: list[float],
        *,
        cold_s: float | None = None,
        began: float | None = None,
        ended: float | None = None,
        heat_s: float = 0.0,
        inner: int = 1,
    ) -> None:
        self.samples_ms = sorted(samples_ms)
        self.cold_s = cold_s
        self.began = began
        self.ended = ended
        self.heat_s = heat_s
        self.inner = inner

    @property
    def median_ms(self) -> float:
        """The middle one."""
        return quantile(self.samples_ms, 0.5)

    @property
    def median_s(self) -> float:
        """The same in seconds."""
        return self.median_ms / 1000.0

    @property
    def riqr(self) -> float:
        """Spread: (p75 - p25) / median."""
        middle = self.median_ms
        return (quantile(self.samples_ms, 0.75) - quantile(self.samples_ms, 0.25)) / middle if middle > 0 else 0.0

    @property
    def noisy(self) -> bool:
        """The spread is wide, or there were too few iterations to tell."""
        return self.riqr > NOISY_RIQR or len(self.samples_ms) < LEAST_N

    def stat(self) -> dict[str, float]:
        """The statistics as a record has them; times in milliseconds."""
        return {
            "median_ms": rounded(self.median_ms),
            "p20": rounded(quantile(self.samples_ms, 0.2)),
            "p80": rounded(quantile(self.samples_ms, 0.8)),
            "min": rounded(self.samples_ms[0]),
            "max": rounded(self.samples_ms[-1]),
            "n": len(self.samples_ms),
            "riqr": round(self.riqr, 4),
        }


def quantile(ordered: list[float], share: float) -> float:
    """The value below which ``share`` of ``ordered`` lie, between neighbours in proportion."""
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def rounded(value: float, digits: int = 5) -> float:
    """``value`` to so many significant digits."""
    return float("{:.{}g}".format(value, digits))


def timed(
    torch: Any,
    fn: Callable[[], object],
    *,
    device: str,
    min_s: float,
    min_n: int = LEAST_N,
    flush: Callable[[], object] | None = None,
    heat_s: float = 0.0,
    inner: int = 1,
    most_s: float | None = None,
) -> Timing:
    """Time ``fn``: its first call apart, then warmed up, then at least ``min_n`` iterations and ``min_s`` seconds.

    Args:
        torch: The module.
        fn: One iteration; allocates nothing that is not freed again.
        device: ``cuda:0``, or ``cpu``.
        min_s: The slice of time.
        min_n: Iterations it takes at least.
        flush: Called before each iteration, outside its time: empties the cache.
        heat_s: Warm up for at most so long; ends when three windows of half a second agree within 2 %.
        inner: Calls of ``fn`` in one iteration; 0 takes as many as make it last 0.2 ms.
        most_s: After so many seconds it ends with fewer iterations (at least five) and is ``noisy``; by default three
            times ``min_s``, at least a second.
    """
    clock = clock_of(torch, device)
    begun = time.perf_counter()
    fn()
    clock.wait()
    cold_s = time.perf_counter() - begun
    heated_s = heat(clock, fn, heat_s)
    once_ms = max(1e-4, sorted(clock.samples(fn, 3, inner=1, flush=None))[1])
    inner = inner or max(1, int(SHORTEST_MS / once_ms) + 1)
    batch = max(1, min(200, int(_BATCH_S * 1000 / (once_ms * inner))))
    began, start = time.time(), time.perf_counter()
    limit_s = max(1.0, 3 * min_s) if most_s is None else most_s
    samples: list[float] = []
    while len(samples) < _MOST_N:
        samples.extend(clock.samples(fn, batch, inner=inner, flush=flush))
        spent = time.perf_counter() - start
        if (spent >= min_s and len(samples) >= min_n) or (spent >= limit_s and len(samples) >= _FEWEST_N):
            break
    return Timing(samples, cold_s=cold_s, began=began, ended=time.time(), heat_s=heated_s, inner=inner)


def heat(clock: Clock, fn: Callable[[], object], most_s: float) -> float:
    """Run ``fn`` back to back until its pace is steady, for at most ``most_s``; the seconds it took."""
    begun = time.perf_counter()
    paces: list[float] = []
    while True:
        left = most_s - (time.perf_counter() - begun)
        if left <= 0 or steady(paces):
            return time.perf_counter() - begun
        paces.append(clock.pace_ms(fn, min(_WINDOW_S, left)))


def steady(paces: list[float]) -> bool:
    """The last three agree within 2 %."""
    last = paces[-3:]
    return len(last) == 3 and max(last) - min(last) <= _STEADY * min(last)


def clock_of(torch: Any, device: str) -> Clock:
    """The clock for ``device``."""
    return CudaClock(torch, device) if device.startswith("cuda") else Clock()


class Clock:
    """The host's clock, for work that the host itself does."""

    def wait(self) -> None:
        """Until all that was started is done."""

    def samples(
        self, fn: Callable[[], object], count: int, *, inner: int, flush: Callable[[], object] | None
    ) -> list[float]:
        """Times of ``count`` iterations, in milliseconds a call."""
        taken = []
        for _ in range(count):
            if flush is not None:
                flush()
            begun = time.perf_counter()
            for _ in range(inner):
                fn()
            taken.append((time.perf_counter() - begun) * 1000.0 / inner)
        return taken

    def pace_ms(self, fn: Callable[[], object], seconds: float) -> float:
        """Milliseconds a call takes in a window of so many seconds, back to back."""
        begun = time.perf_counter()
        done = 0
        while True:
            fn()
            done += 1
            spent = time.perf_counter() - begun
            if spent >= seconds:
                return spent * 1000.0 / done


class CudaClock(Clock):
    """Events on a GPU's current stream."""

    def __init__(self, torch: Any, device: str) -> None:
        self._torch = torch
        self._device = device

    def wait(self) -> None:
        """Until the GPU has done all that was started."""
        self._torch.cuda.synchronize(self._device)

    def _event(self) -> Any:
        return self._torch.cuda.Event(enable_timing=True)

    def samples(
        self, fn: Callable[[], object], count: int, *, inner: int, flush: Callable[[], object] | None
    ) -> list[float]:
        """All iterations are queued, so that the GPU never waits for the host; their events are read after."""
        with self._torch.cuda.device(self._device):
            pairs = [(self._event(), self._event()) for _ in range(count)]
            for begin, end in pairs:
                if flush is not None:
                    flush()
                begin.record()
                for _ in range(inner):
                    fn()
                end.record()
            self.wait()
            return [float(begin.elapsed_time(end)) / inner for begin, end in pairs]

    def pace_ms(self, fn: Callable[[], object], seconds: float) -> float:
        """In chunks, each awaited while the next is queued already."""
        with self._torch.cuda.device(self._device):
            begun = time.perf_counter()
            fn()
            self.wait()
            # Never less than the GPU takes, so that no chunk is far longer than meant.
            chunk = max(1, min(500, int(_CHUNK_S / max(1e-6, time.perf_counter() - begun))))
            first = self._event()
            first.record()
            last, done = first, 0
            while True:
                for _ in range(chunk):
                    fn()
                done += chunk
                end = self._event()
                end.record()
                last.synchronize()  # one chunk behind
                last = end
                if time.perf_counter() - begun >= seconds:
                    end.synchronize()
                    return float(first.elapsed_time(end)) / done
