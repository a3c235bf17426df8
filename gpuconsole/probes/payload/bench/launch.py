"""B04: what it costs to start something: a launch, a node of a graph, a round trip for one number."""

from __future__ import annotations

import time
from typing import Any, Callable, Iterator

from gpuconsole.probes.payload.bench.context import BenchContext
from gpuconsole.probes.payload.bench.measurement import Measurement
from gpuconsole.probes.payload.bench.timing import Timing, rounded

UNIT = "us"
COUNT = 2000
SYNCS = 200
_WARM_ROUNDS = 3
_ROUNDS = 40
"""At least: what a CPU does besides moves a single one a lot."""


def run(context: BenchContext) -> Iterator[Measurement]:
    """Plain launches first, which are the headline; then a graph of them; then ``item()``."""
    count = int(context.option("launches") or COUNT)
    parts: tuple[tuple[str, int, Callable[[BenchContext, int], Loop]], ...] = (
        ("launch", count, Plain),
        ("graph-node", count, Graph),
        ("item", min(count, SYNCS), Item),
    )
    for place, (name, number, make) in enumerate(parts):
        params = {"operation": name, "count": number}
        context.report(name)
        if name == "graph-node" and not (context.cuda and hasattr(context.torch.cuda, "CUDAGraph")):
            why = "this torch has no CUDA graphs" if context.cuda else "a CPU has no graphs of launches"
            yield Measurement.skipped(params, why)
            continue
        try:
            yield measure(make(context, number), params, slice_s=max(0.05, context.left_s / (len(parts) - place)))
        except RuntimeError as error:
            yield Measurement.failed(params, error)


def measure(loop: Loop, params: dict[str, Any], *, slice_s: float) -> Measurement:
    """Rounds of ``loop``, timed by the host's clock from the first call to the end of all work."""
    begun = time.perf_counter()
    loop.round()
    cold_s = time.perf_counter() - begun
    for _ in range(_WARM_ROUNDS):
        loop.round()
    loop.x.zero_()
    began, start = time.time(), time.perf_counter()
    samples: list[float] = []
    while len(samples) < _ROUNDS or time.perf_counter() - start < 0.7 * slice_s:
        loop.wait()
        begun = time.perf_counter()
        loop.round()
        samples.append((time.perf_counter() - begun) * 1000.0 / loop.count)
        if len(samples) >= 5 and time.perf_counter() - start > 3 * slice_s + 1.0:
            break
    timing = Timing(samples, cold_s=cold_s, began=began, ended=time.time(), inner=loop.count)
    wanted = len(samples) * loop.count
    if int(loop.x.item()) != wanted:
        why = "{} additions of 1 gave {:g}".format(wanted, float(loop.x.item()))
        return Measurement.wrong(params, why)
    return Measurement(
        params,
        unit=UNIT,
        score=rounded(timing.median_ms * 1000.0, 4),
        timing=timing,
        headline=params["operation"] == "launch",
    )


class Loop:
    """So many additions of 1 to one number."""

    def __init__(self, context: BenchContext, count: int) -> None:
        self._context = context
        self.count = count
        self.x = context.torch.zeros(1, dtype=context.torch.int64, device=context.device)

    def wait(self) -> None:
        """Until nothing is under way."""
        if self._context.cuda:
            self._context.torch.cuda.synchronize(self._context.device)

    def round(self) -> None:
        """All additions, to their end."""
        raise NotImplementedError


class Plain(Loop):
    """One launch each."""

    def round(self) -> None:
        """Launch them one after the other."""
        x = self.x
        for _ in range(self.count):
            x.add_(1)
        self.wait()


class Item(Loop):
    """Each is awaited, and its result fetched."""

    def round(self) -> None:
        """Add and fetch, one after the other."""
        x = self.x
        for _ in range(self.count):
            x.add_(1)
            x.item()


class Graph(Loop):
    """All in one CUDA graph."""

    def __init__(self, context: BenchContext, count: int) -> None:
        super().__init__(context, count)
        torch = context.torch
        with torch.cuda.device(context.device):
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                self.x.add_(1)  # what is loaded at the first call cannot be captured
            torch.cuda.current_stream().wait_stream(side)
            self._graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self._graph):
                for _ in range(count):
                    self.x.add_(1)
        self.wait()

    def round(self) -> None:
        """Replay it."""
        self._graph.replay()
        self.wait()
