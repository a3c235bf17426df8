"""Stand-in GPUs for an engine: a CDI specification and device nodes that are /dev/null under other names."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.rig.nvml.gpu import stand_in_uuid
from tests.rig.nvml.state import NvmlState


@dataclass(frozen=True, slots=True)
class RigGpu:
    """A GPU as the engine may hand it to a container; matches one of a simulated NVML box by its UUID."""

    index: int
    uuid: str
    minor: int
    """Number of the device node: /dev/nvidia<minor>."""
    mig_uuids: tuple[str, ...] = ()
    """Its MIG instances; each leads to the GPU's node."""


TWO_GPUS = tuple(RigGpu(index=index, uuid=stand_in_uuid(index), minor=index) for index in range(2))
"""What an engine has unless a test says otherwise; the simulated NVML box has the same."""


def gpus_of(state: NvmlState) -> tuple[RigGpu, ...]:
    """Give the GPUs of a simulated NVML box, for an engine that shall hand out the same."""
    return tuple(
        RigGpu(
            index=gpu.index,
            uuid=gpu.uuid or stand_in_uuid(gpu.index),
            minor=gpu.index if gpu.minor in (None, -1) else gpu.minor,
            mig_uuids=tuple(instance.uuid for instance in gpu.mig_instances),
        )
        for gpu in state.gpus
    )


def _node(name: str) -> dict[str, str]:
    # Like the host's, but harmless: whoever writes to this "GPU" writes to /dev/null.
    return {"path": f"/dev/{name}", "hostPath": "/dev/null"}


def names_of(gpu: RigGpu) -> tuple[str, ...]:
    """Give the names a CDI device of this GPU has: index, UUID, and those of its MIG instances."""
    migs = [name for number, uuid in enumerate(gpu.mig_uuids) for name in (f"{gpu.index}:{number}", uuid)]
    return (str(gpu.index), gpu.uuid, *migs)


def cdi_specification(gpus: Iterable[RigGpu]) -> dict[str, Any]:
    """Give the specification nvidia-ctk would write: each GPU by index and by UUID, and `all`."""
    known = tuple(gpus)
    devices = [
        {"name": name, "containerEdits": {"deviceNodes": [_node(f"nvidia{gpu.minor}")]}}
        for gpu in known
        for name in names_of(gpu)
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
