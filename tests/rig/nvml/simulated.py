"""A simulated box to run programs on: the library, the state file, and the environment that leads to both."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.rig.nvml.build import build
from tests.rig.nvml.state import NvmlState

STATE_VARIABLE = "GPUCONSOLE_NVML_STATE"


@dataclass(slots=True)
class NvmlBox:
    """What a program must be given to find the simulated driver, and the means to change what it says."""

    path: Path
    """The state file."""
    library: Path
    state: NvmlState

    def write(self, state: NvmlState | None = None, **changes: object) -> NvmlState:
        """Give the box this state, or the present one with changes; the state it has now."""
        self.state = (state or self.state).with_(**changes) if changes else (state or self.state)
        self.state.write(self.path)
        return self.state

    def change_gpu(self, index: int, **changes: object) -> NvmlState:
        """Change one GPU while programs run."""
        return self.write(self.state.with_gpu(index, **changes))

    def env(self, base: Mapping[str, str] | None = None, *, omit: Iterable[str] = ()) -> dict[str, str]:
        """The environment for a program, with a driver that lacks the functions in `omit`."""
        found = dict(os.environ if base is None else base)
        omitted = tuple(omit)
        folder = str((build(omit=omitted) if omitted else self.library).parent)
        older = [part for part in found.get("LD_LIBRARY_PATH", "").split(":") if part and part != folder]
        return {**found, "LD_LIBRARY_PATH": ":".join([folder, *older]), STATE_VARIABLE: str(self.path)}

    def python(self, program: str, *, omit: Iterable[str] = ()) -> str:
        """What a Python program prints on the box; raises CalledProcessError with its words if it fails."""
        command = [sys.executable, "-c", program]
        environment = self.env(omit=omit)
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()


def open_box(folder: Path, state: NvmlState) -> NvmlBox:
    """A box whose state file lies in the folder; builds the library if need be."""
    box = NvmlBox(path=folder / "nvml-state", library=build(), state=state)
    box.write()
    return box
