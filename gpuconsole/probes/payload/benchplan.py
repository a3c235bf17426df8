"""The benchmarks, in the order they run: each with its name, its code and how long it may take."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Callable, Iterable

_HOME = "gpuconsole.probes.payload.bench."
QUICK_S = 60.0
FULL_S = 600.0
"""For all benchmarks together."""
_LEAST_DEADLINE_S = 10.0
ONE_GPU = "there is one GPU, and it takes two"


class Benchmark:
    """One benchmark.

    Args:
        slug: Its name, ``bench.mm``.
        code: Its code in the suite, ``B01``.
        title: What it measures, in a few words.
        where: ``module:function`` under ``bench``; imported when it runs. The function takes a ``BenchContext`` and
            yields one ``Measurement`` for each set of parameters as soon as it has it, one of them ``headline``.
        quick_s: Its share of a quick run; 0 when it is not a part of one.
        full_s: Its share of a full run.
        rev: Rises when the method changes: results of different revisions are not compared.
        needs: ``cuda``: skipped without a GPU. ``gpus``: skipped with fewer than two, unless there is no GPU at all.
        own: It has a worker process of its own, which has started no CUDA before.
    """

    stuck = ("something is stuck", "")
    """What it means when it does not end."""

    def __init__(
        self,
        slug: str,
        *,
        code: str,
        title: str,
        where: str,
        quick_s: float,
        full_s: float,
        rev: int = 1,
        needs: str = "",
        own: bool = False,
    ) -> None:
        self.slug = slug
        self.code = code
        self.title = title
        self.where = where
        self.quick_s = quick_s
        self.full_s = full_s
        self.rev = rev
        self.needs = tuple(needs.split())
        self.own = own

    @property
    def process(self) -> str:
        """Its process, for a sentence."""
        return "the process that measured {}".format(self.title)

    def budget_s(self, mode: str) -> float:
        """Its share of the run; one that is no part of a quick run, and was asked for by name, has that of a full."""
        return (self.quick_s or self.full_s) if mode == "quick" else self.full_s

    def deadline_s(self, mode: str) -> float:
        """After so many seconds it is ended: twice its share, and never before all it loads can be loaded."""
        return max(_LEAST_DEADLINE_S, 2 * self.budget_s(mode))

    def load(self) -> Callable[[Any], Iterable[Any]]:
        """The function that runs it."""
        module, _, function = self.where.partition(":")
        loaded: Callable[[Any], Iterable[Any]] = getattr(import_module(_HOME + module), function)
        return loaded


BENCHMARKS = (
    Benchmark("bench.mm", code="B01", title="matrix products", where="mm:run", quick_s=9, full_s=30),
    Benchmark("bench.mem", code="B02", title="device memory", where="mem:run", quick_s=4, full_s=15),
    Benchmark("bench.h2d", code="B03", title="the host link", where="h2d:run", quick_s=4, full_s=20, needs="cuda"),
    Benchmark("bench.launch", code="B04", title="launches", where="launch:run", quick_s=1, full_s=5),
    Benchmark("bench.attn", code="B05", title="attention", where="attn:run", quick_s=4, full_s=25),
    Benchmark("bench.train", code="B06", title="a decoder's training step", where="train:run", quick_s=13, full_s=60),
    Benchmark("bench.conv", code="B07", title="a convolutional training step", where="conv:run", quick_s=0, full_s=45),
    Benchmark("bench.loader", code="B09", title="the data loader", where="loader:run", quick_s=4, full_s=30),
    Benchmark(
        "bench.p2p", code="B10", title="copies between GPUs", where="p2p:run", quick_s=3, full_s=30, needs="cuda gpus"
    ),
    Benchmark("bench.soak", code="B13", title="a long product", where="soak:run", quick_s=0, full_s=90),
    Benchmark(
        "bench.compile", code="B08", title="torch.compile", where="compile:run", quick_s=0, full_s=90, own=True, rev=2
    ),
    Benchmark(
        "bench.allreduce", code="B11", title="collectives", where="allreduce:run", quick_s=10, full_s=60,
        needs="gpus", own=True,
    ),
    Benchmark(
        "bench.ddp", code="B12", title="training over GPUs", where="ddp:run", quick_s=0, full_s=90,
        needs="gpus", own=True,
    ),
)  # fmt: skip
BY_SLUG = {benchmark.slug: benchmark for benchmark in BENCHMARKS}
