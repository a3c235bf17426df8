"""One of several processes that measure together: the group they form, and what they tell each other and the worker."""

from __future__ import annotations

import json
import time
from datetime import timedelta
from typing import Any, Callable

from gpuconsole.probes.payload.bench.timing import LEAST_N, Timing, clock_of
from gpuconsole.probes.payload.stream import Emitter

_FEWEST_N = 5
_MOST_N = 2000


class World:
    """What one of the processes knows of itself and the others.

    Args:
        torch: The module.
        told: What it was sent: ``rank``, ``count``, ``device`` (``cuda`` or ``cpu``), ``timeout_s``.
        out: Where its records go.
    """

    def __init__(self, torch: Any, told: dict[str, Any], out: Emitter) -> None:
        self.torch = torch
        self.rank: int = told["rank"]
        self.count: int = told["count"]
        self.on_gpu: bool = told["device"] == "cuda"
        self.device = "cuda:{}".format(self.rank) if self.on_gpu else "cpu"
        self.store: Any = None
        """Shared by all; for what must not wait inside a collective, where a GPU would be busy waiting."""
        self._out = out

    def emit(self, kind: str, **fields: object) -> None:
        """Tell the worker."""
        self._out.emit(kind, **fields)

    def join(self, store: str, timeout_s: float) -> None:
        """Become a member of the group of all."""
        distributed = self.torch.distributed
        shared = distributed.FileStore(store, self.count)
        self.store = distributed.PrefixStore("ours", shared)
        self.store.set_timeout(timedelta(seconds=timeout_s))
        distributed.init_process_group(
            "nccl" if self.on_gpu else "gloo",
            store=distributed.PrefixStore("group", shared),
            rank=self.rank,
            world_size=self.count,
            timeout=timedelta(seconds=timeout_s),
        )

    def share(self, name: str, value: Any) -> list[Any]:
        """What each rank has told under ``name``, in their order; waits for all of them, beside the GPUs."""
        self.store.set("{}/{}".format(name, self.rank), json.dumps(value))
        return [json.loads(self.store.get("{}/{}".format(name, rank))) for rank in range(self.count)]

    def first_says(self, name: str, value: Any) -> Any:
        """What the first rank says; the others' ``value`` does not count."""
        if self.rank == 0:
            self.store.set(name, json.dumps(value))
        return json.loads(self.store.get(name))

    def timed(
        self, name: str, fn: Callable[[], object], slice_s: float, *, before: Callable[[], object] | None = None
    ) -> Timing:
        """Time ``fn``, which the members do together: the first rank tells how often, for a slice of so many seconds.

        Args:
            name: Of this measurement, unlike all others.
            fn: One iteration.
            slice_s: About how long the timed part takes.
            before: Called before each iteration, outside its time.
        """
        clock = clock_of(self.torch, self.device)
        begun = time.perf_counter()
        fn()
        clock.wait()
        cold_s = time.perf_counter() - begun
        once_ms = sorted(clock.samples(fn, 3, inner=1, flush=before))[1]
        heat, count = self.first_says(name, iterations(once_ms, slice_s))
        clock.samples(fn, heat, inner=1, flush=before)
        began = time.time()
        samples = clock.samples(fn, count, inner=1, flush=before)
        return Timing(samples, cold_s=cold_s, began=began, ended=time.time())

    def peak_reserved_bytes(self) -> int | None:
        """The most GPU memory this process held since it was last asked; None without a GPU."""
        if not self.on_gpu:
            return None
        peak = int(self.torch.cuda.max_memory_reserved(self.device))
        self.torch.cuda.reset_peak_memory_stats(self.device)
        return peak

    def leave(self) -> None:
        """Leave the group again."""
        if self.store is not None:
            self.torch.distributed.destroy_process_group()

    def synchronize(self) -> None:
        """Wait until this process's GPU has done what it was given."""
        if self.on_gpu:
            self.torch.cuda.synchronize()


def iterations(once_ms: float, slice_s: float) -> tuple[int, int]:
    """How often to warm up and to time what takes ``once_ms``: at least 20 times, 5 where that would take too long."""
    wanted = int(slice_s * 1000 / max(once_ms, 1e-3))
    fitting = int(3 * slice_s * 1000 / max(once_ms, 1e-3))
    count = min(_MOST_N, max(wanted, min(LEAST_N, max(_FEWEST_N, fitting))))
    return max(1, count // 4), count
