"""How each GPU was in the last half hour."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from gpuconsole.host.model import HostView
from gpuconsole.services.ringing import gpu_key

_MOST = 1_900
"""Samples of a GPU: half an hour at one a second."""


class Sample(NamedTuple):
    """One look at a GPU."""

    at: float
    """Seconds since the epoch."""
    utilization_pct: int | None
    memory_bytes: int | None


class GpuHistory:
    """Samples by GPU, oldest first."""

    def __init__(self) -> None:
        self._samples: dict[str, deque[Sample]] = {}

    def add(self, host: HostView) -> None:
        """Take in one look; of a GPU that is gone nothing is kept."""
        keys = {gpu_key(view): view.gpu for view in host.gpus}
        for gone in self._samples.keys() - keys.keys():
            del self._samples[gone]
        for key, gpu in keys.items():
            samples = self._samples.setdefault(key, deque(maxlen=_MOST))
            samples.append(Sample(host.snapshot.taken_at, gpu.utilization_pct, gpu.memory_used_bytes))

    def of(self, key: str) -> Sequence[Sample]:
        """Samples of one GPU."""
        return self._samples.get(key, ())
