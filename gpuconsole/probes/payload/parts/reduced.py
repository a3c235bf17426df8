"""One rank of an all-reduce over all ranks, whose sum is known exactly."""

from __future__ import annotations

import datetime
from typing import Any

from gpuconsole.probes.payload.apart import teller
from gpuconsole.probes.payload.outcome import first_line

_SIZES = (1, 1 << 20)
"""float32 numbers: one, and 4 MiB of them."""


def main(config: dict[str, Any]) -> int:
    """Join as ``rank`` of ``world`` through the file ``store``; tell each ``stage``, and ``exact`` or ``failure``."""
    tell = teller()
    import torch
    import torch.distributed as distributed

    tell(stage="imported")
    torch.set_num_threads(1)
    rank, world, back_end = int(config["rank"]), int(config["world"]), str(config["back_end"])
    device = "cuda:{}".format(rank) if back_end == "nccl" else "cpu"
    try:
        if back_end == "nccl":
            torch.cuda.set_device(rank)
            tell(version=_version(torch))
        distributed.init_process_group(
            back_end,
            init_method="file://{}".format(config["store"]),
            rank=rank,
            world_size=world,
            timeout=datetime.timedelta(seconds=float(config["timeout_s"])),
        )
        tell(stage="joined")
        exact = True
        for count in _SIZES:
            numbers = torch.full((count,), float(rank + 1), device=device)
            distributed.all_reduce(numbers)
            exact = exact and bool((numbers == world * (world + 1) / 2).all().item())
        tell(stage="reduced", exact=exact)
        distributed.destroy_process_group()
        tell(stage="left")
    except Exception as error:
        tell(failure=first_line(error), text=str(error)[-1500:])
    return 0


def _version(torch: Any) -> str | None:
    try:
        version = torch.cuda.nccl.version()
    except (RuntimeError, AttributeError):
        return None
    return ".".join(str(part) for part in version) if isinstance(version, tuple) else str(version)
