"""What must be known of a GPU to name its state: a view of it has all this and more, a glance has nothing else."""

from __future__ import annotations

from collections.abc import Sized
from typing import Protocol

from gpuconsole.gpu.model import Gpu, GpuSnapshot
from gpuconsole.gpu.state import MemoryState


class Ahead(Protocol):
    """What a forecaster said of a memory."""

    @property
    def state(self) -> MemoryState:
        """The word for it."""

    @property
    def eta_s(self) -> float | None:
        """Seconds until it is full; None without a trend."""

    @property
    def why(self) -> str:
        """One line."""


class GpuSeen(Protocol):
    """One GPU, whether somebody holds it, and what is ahead."""

    @property
    def gpu(self) -> Gpu:
        """The GPU."""

    @property
    def holders(self) -> Sized:
        """Who holds it."""

    @property
    def given_to(self) -> tuple[str, ...]:
        """Names of running containers that were given it."""

    @property
    def outlook(self) -> Ahead | None:
        """None while nobody watches it over time."""


class HostSeen(Protocol):
    """All GPUs of a machine."""

    @property
    def snapshot(self) -> GpuSnapshot:
        """As the driver told."""

    @property
    def gpus(self) -> tuple[GpuSeen, ...]:
        """In the snapshot's order."""
