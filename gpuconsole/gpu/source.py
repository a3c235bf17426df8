"""Where GPU readings come from."""

from __future__ import annotations

from typing import Protocol

from gpuconsole.gpu.model import GpuSnapshot


class GpuSource(Protocol):
    """Takes snapshots of this machine's GPUs. A machine without GPUs or driver is a snapshot with a ``problem``."""

    def snapshot(self, *, details: bool = False) -> GpuSnapshot:
        """Read every GPU now; never raises for a GPU or a driver that fails.

        Args:
            details: Also take the readings that are slow or seldom change (ECC counts, PCIe link, MIG, compute mode)
                anew, instead of those kept from an earlier call.
        """
        ...

    def close(self) -> None:
        """Let the library go. A closed source may be asked again."""
        ...
