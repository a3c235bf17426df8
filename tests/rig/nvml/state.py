"""The state of a simulated box: its driver and its GPUs as values, and the file that the library reads."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from tests.rig.nvml.gpu import Gpu
from tests.rig.nvml.lines import Codes, Delays, coded, pairs, values_of


@dataclass(frozen=True, slots=True)
class Xid:
    """An Xid error that the driver reports; a new one has a higher number than all before."""

    number: int
    gpu_index: int
    xid: int


@dataclass(frozen=True, slots=True)
class NvmlState:
    """The whole simulated box."""

    gpus: tuple[Gpu, ...] = ()
    driver: str = "580.159.04"
    nvml: str = "13.580.159.04"
    branch: str = "r582_49"
    cuda: int = 13000
    init: int = 0
    """What nvmlInit gives: 0, 9 without a driver, 18 after an upgrade without a restart, 999."""
    errors: Codes = field(default_factory=dict)
    delays_ms: Delays = field(default_factory=dict)
    xids: tuple[Xid, ...] = ()

    def text(self) -> str:
        """The state file."""
        xids = [f"xid = {event.number} {event.gpu_index} {event.xid}" for event in self.xids]
        system = ["[system]", *pairs(values_of(self)), *coded(self.errors, self.delays_ms), *xids]
        return "\n".join([*system, *(line for gpu in self.gpus for line in gpu.lines()), ""])

    def write(self, path: Path) -> None:
        """Replace the state file at once; a library that has it open sees the old or the new, never half."""
        fresh = path.with_name(f".{path.name}.{os.getpid()}")
        fresh.write_bytes(self.text().encode("utf-8", "surrogateescape"))
        stamp = time.time_ns()  # the file system's own stamps are coarser than two quick writes
        os.utime(fresh, ns=(stamp, stamp))
        fresh.replace(path)

    def with_(self, **changes: object) -> Self:
        """The same box with some values changed."""
        return replace(self, **changes)  # type: ignore[arg-type]

    def with_gpu(self, index: int, **changes: object) -> Self:
        """The same box with one GPU changed."""
        gpus = list(self.gpus)
        gpus[index] = gpus[index].with_(**changes)
        return self.with_(gpus=tuple(gpus))
