"""Stand-in GPUs for an engine: a CDI specification and device nodes that are /dev/null under other names."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class RigGpu:
    """A GPU as the engine may hand it to a container; matches one of a simulated NVML box by its UUID."""

    index: int
    uuid: str
    minor: int
    """Number of the device node: /dev/nvidia<minor>."""


TWO_GPUS = (
    RigGpu(index=0, uuid="GPU-5a1d0000-0000-4000-8000-000000000000", minor=0),
    RigGpu(index=1, uuid="GPU-5a1d0000-0000-4000-8000-000000000001", minor=1),
)
"""What an engine has unless a test says otherwise."""


def _node(name: str) -> dict[str, str]:
    # Like the host's, but harmless: whoever writes to this "GPU" writes to /dev/null.
    return {"path": f"/dev/{name}", "hostPath": "/dev/null"}


def cdi_specification(gpus: Iterable[RigGpu]) -> dict[str, Any]:
    """Give the specification nvidia-ctk would write: each GPU by index and by UUID, and `all`."""
    known = tuple(gpus)
    devices = [
        {"name": name, "containerEdits": {"deviceNodes": [_node(f"nvidia{gpu.minor}")]}}
        for gpu in known
        for name in (str(gpu.index), gpu.uuid)
    ]
    every = [_node(f"nvidia{gpu.minor}") for gpu in known]
    return {
        "cdiVersion": "0.5.0",
        "kind": "nvidia.com/gpu",
        "containerEdits": {"deviceNodes": [_node("nvidiactl"), _node("nvidia-uvm")]},
        "devices": [*devices, {"name": "all", "containerEdits": {"deviceNodes": every}}],
    }


def write_atomically(path: Path, data: Any) -> None:
    """Replace a JSON file in one step: the engine watches the folder."""
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(data, indent=1))
    fresh.replace(path)


def write_cdi(folder: Path, gpus: Iterable[RigGpu]) -> None:
    """Write or replace the specification in a CDI folder; without GPUs there is none."""
    folder.mkdir(exist_ok=True)
    known = tuple(gpus)
    path = folder / "nvidia.json"
    if known:
        write_atomically(path, cdi_specification(known))
    else:
        path.unlink(missing_ok=True)
