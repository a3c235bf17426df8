"""A simulated NVIDIA driver: `libnvidia-ml.so.1` built from C, answering from a state that tests rewrite.

    gpu.py, state.py               what a box says, as values, and the file of it
    presets.py                     H200, RTX 4090, an A100 divided by MIG, GB10 with unified memory
    build.py, sim/                 the library and its source, also without chosen functions
    simulated.py, fixtures.py      a box for tests: `nvml` (this process and children), `nvml_box` (children)
    __main__.py                    any command on a simulated box
    calls.py, ask.py, lists.py, dialogue.py   the questions by which it is compared with a real driver

Its forms and codes are those of a recorded H200 (tests/fixtures/nvml/h200.json).
"""

from __future__ import annotations

from tests.rig.nvml.build import NoCompiler, build
from tests.rig.nvml.gpu import GIB, MIB, Gpu, GpuProcess, MigInstance, stand_in_uuid
from tests.rig.nvml.presets import a100_mig, box, busy, gb10, h200, rtx4090
from tests.rig.nvml.simulated import NvmlBox, open_box
from tests.rig.nvml.state import NvmlState, Xid

__all__ = [
    "GIB", "MIB", "Gpu", "GpuProcess", "MigInstance", "NoCompiler", "NvmlBox", "NvmlState", "Xid", "a100_mig", "box",
    "build", "busy", "gb10", "h200", "open_box", "rtx4090", "stand_in_uuid",
]  # fmt: skip
