"""A recording's GPU memory played on a simulated box: what grew then grows again, for programs that look at it live."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gpuconsole.gpu.forecast_model import MemorySample
from gpuconsole.host.recorded import memory_samples
from tests.rig.nvml.gpu import GpuProcess
from tests.rig.nvml.presets import busy
from tests.rig.nvml.simulated import NvmlBox

_SLEEPER = [sys.executable, "-c", "import time; time.sleep(86400)"]


class Played:
    """Plays samples on a box; each recorded process is a sleeping one of this machine.

    Args:
        simulated: The box, with as many GPUs as were recorded.
        path: The recording.
    """

    def __init__(self, simulated: NvmlBox, path: Path) -> None:
        self._simulated = simulated
        self._base = simulated.state
        self._samples = list(memory_samples(path))
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    @property
    def length_s(self) -> float:
        """Seconds of the recording."""
        return self._samples[-1].t if self._samples else 0.0

    def run(self, stop: threading.Event, *, speed: float = 1.0) -> None:
        """Play to the end, or until told to stop."""
        began = time.monotonic()
        for sample in self._samples:
            if stop.wait(max(0.0, began + sample.t / speed - time.monotonic())):
                return
            self.show(sample)

    def show(self, sample: MemorySample) -> None:
        """Give the box the memory of one sample."""
        state = self._base
        for gpu in sample.gpus:
            if gpu.index >= len(state.gpus) or gpu.used_bytes is None:
                continue
            held = tuple(GpuProcess(self._pid(each.pid), each.memory_bytes) for each in gpu.processes or ())
            card = busy(state.gpus[gpu.index], *held) if gpu.utilization_pct else state.gpus[gpu.index]
            card = card.with_(gpu_percent=int(gpu.utilization_pct or 0), used_bytes=gpu.used_bytes, processes=held)
            gpus = list(state.gpus)
            gpus[gpu.index] = card
            state = state.with_(gpus=tuple(gpus))
        self._simulated.write(state)

    def _pid(self, recorded: int) -> int:
        if recorded not in self._processes:
            self._processes[recorded] = subprocess.Popen(_SLEEPER)
        return self._processes[recorded].pid

    def close(self) -> None:
        """End the processes."""
        for process in self._processes.values():
            process.kill()
            process.wait()


@contextmanager
def playing(simulated: NvmlBox, path: Path, *, speed: float = 1.0) -> Iterator[Played]:
    """Plays in the background until the end of the block."""
    played, stop = Played(simulated, path), threading.Event()
    thread = threading.Thread(target=played.run, args=(stop,), kwargs={"speed": speed}, daemon=True)
    thread.start()
    try:
        yield played
    finally:
        stop.set()
        thread.join()
        played.close()
