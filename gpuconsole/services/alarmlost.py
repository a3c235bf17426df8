"""A GPU that answered and does not any more: fallen off the bus, or hung. It is told once, as a failure is."""

from __future__ import annotations

from gpuconsole.core.text import plain_line
from gpuconsole.gpu.model import GpuStatus
from gpuconsole.gpu.state import MemoryState
from gpuconsole.host.model import HostView
from gpuconsole.services.alarms import Alarm

_LOOKS = 2
"""Looks in a row: a driver that is being asked by many may once not answer."""
_ADVICE = "Stop what runs on it, then reset it: sudo nvidia-smi --gpu-reset -i {index}; else restart the host."


class LostGpus:
    """Follows which GPUs answer. For one thread."""

    def __init__(self) -> None:
        self._answered: set[int] = set()
        self._missing: dict[int, int] = {}

    def looked(self, host: HostView, now: float) -> tuple[Alarm, ...]:
        """Take a look; returns an alarm for each GPU that is lost since it answered."""
        if host.snapshot.problem is not None:
            return ()  # nobody answers: that is the driver's, and said in the list's place
        told: list[Alarm] = []
        for view in host.gpus:
            gpu = view.gpu
            key = gpu.index  # one that is lost tells no UUID
            if gpu.status is GpuStatus.OK:
                self._answered.add(key)
                self._missing.pop(key, None)
                continue
            self._missing[key] = looks = self._missing.get(key, 0) + 1
            if key not in self._answered or looks < _LOOKS:
                continue
            self._answered.discard(key)
            why = plain_line(gpu.problem or "The GPU does not answer.", limit=200)
            why = f"{why} {_ADVICE.format(index=gpu.index)}"
            told.append(Alarm(f"lost {key}", f"GPU {gpu.index}", MemoryState.FAILED, why, now, gpu=gpu.index))
        return tuple(told)
