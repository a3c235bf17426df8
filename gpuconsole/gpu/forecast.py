"""Where memory is going: from samples to one word, a time and a line for every process, GPU, container, host and shm.

Pure and incremental: no clock, no driver, no file. `Forecaster.feed` takes one sample after the other and keeps a
bounded amount about each memory; `predict` does so for a whole sequence. No number in it is a time or a size: a trend
is measured against its own growth time, so that a leak of minutes and one of days look alike.

What it cannot foresee: being full while loading or at a first single peak, and a tenant that arrives and takes all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gpuconsole.gpu.forecast_gpu import GpuWatch
from gpuconsole.gpu.forecast_model import Assessment, MemorySample, Settings, Subject
from gpuconsole.gpu.forecast_pool import PoolWatch
from gpuconsole.gpu.state import MemoryState

_GAP = 4.0
"""Of the usual time between samples: after so much nobody knows when what is new began."""
_SLOWER = 2.0
"""A pace that is slower by more than this from one sample to the next is a gap first, and a pace if it stays."""


class Forecaster:
    """Follows all memories of one machine.

    Args:
        settings: The numbers of the forecast.
    """

    def __init__(self, settings: Settings | None = None) -> None:
        self._settings = settings or Settings()
        self._gpus: dict[int, GpuWatch] = {}
        self._pools: dict[tuple[Subject, str], PoolWatch] = {}
        self._last_t: float | None = None
        self._pace_s = 0.0
        """Seconds to the next sample, most likely."""

    def feed(self, sample: MemorySample) -> tuple[Assessment, ...]:
        """Take a sample and say how things stand now; a sample that is not later than the last is left out.

        Returns:
            One statement for each GPU, process, container, host and shm of the sample; a process that has gone since
            the last is said to be free, or failed.
        """
        if self._last_t is not None and sample.t <= self._last_t:
            return ()
        said: list[Assessment] = []
        born = self._before(sample.t)
        for gpu in sample.gpus:
            watch = self._gpus.get(gpu.index)
            if watch is None:
                watch = self._gpus[gpu.index] = GpuWatch(gpu.index, self._settings)
            said += watch.feed(sample.t, gpu, born, self._pace_s)
        for pool in sample.pools:
            key = pool.subject, pool.id
            if key not in self._pools:
                self._pools[key] = PoolWatch(pool, self._settings, born=born)
            said.append(self._pools[key].feed(sample.t, pool, self._pace_s))
        for gone in self._gpus.keys() - {gpu.index for gpu in sample.gpus}:
            del self._gpus[gone]
        for lost in self._pools.keys() - {(pool.subject, pool.id) for pool in sample.pools}:
            del self._pools[lost]
        self._last_t = sample.t
        return tuple(said)

    def _before(self, t: float) -> float | None:
        """When what is new at ``t`` was not there yet: at the sample before, or nobody knows. Keeps the pace."""
        if self._last_t is None:
            return None
        passed, usual = t - self._last_t, self._pace_s
        self._pace_s = min(passed, _SLOWER * usual) if usual else passed
        return None if usual and passed > _GAP * usual else self._last_t


def predict(samples: Iterable[MemorySample], settings: Settings | None = None) -> Iterator[tuple[Assessment, ...]]:
    """What `Forecaster.feed` says after each of ``samples``."""
    forecaster = Forecaster(settings)
    for sample in samples:
        yield forecaster.feed(sample)


def changes(samples: Iterable[MemorySample], settings: Settings | None = None) -> Iterator[tuple[float, Assessment]]:
    """Only what is new: the second and the statement, each time the state of a subject is another than before."""
    forecaster = Forecaster(settings)
    known: dict[tuple[Subject, str], MemoryState] = {}
    for sample in samples:
        for assessment in forecaster.feed(sample):
            if known.get(assessment.key) != assessment.state:
                known[assessment.key] = assessment.state
                yield sample.t, assessment
