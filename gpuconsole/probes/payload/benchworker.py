"""The worker of benchmarks: imports torch, starts CUDA, measures one thing after the other, and tells each figure."""

from __future__ import annotations

import gc
import os
import sys
import time
import warnings
from typing import Any

from gpuconsole.probes.payload import environment, libcuda
from gpuconsole.probes.payload.bench.context import BenchContext
from gpuconsole.probes.payload.bench.measurement import ERROR, TIMEOUT, Measurement
from gpuconsole.probes.payload.benchplan import BY_SLUG, ONE_GPU, Benchmark
from gpuconsole.probes.payload.outcome import first_line
from gpuconsole.probes.payload.stream import Emitter
from gpuconsole.probes.payload.worker import die_with_parent

_LEAST_SHARE = 0.3
"""With less than this share of its budget left of the run, a benchmark is not begun."""
_SPARE_S = 1.0
"""What the last benchmark leaves of the run, for the goodbye."""
_CHECK = "gpuconsole check tells why."


def work(config: dict[str, Any]) -> int:
    """Run the benchmarks ``config["checks"]`` in order; records go to the descriptor ``config["fd"]``."""
    die_with_parent()
    fd = int(config["fd"])
    os.set_inheritable(fd, False)
    return Worker(config, Emitter(fd, str(config.get("run", "")))).run()


class Worker:
    """Runs the benchmarks of one process.

    Args:
        config: What the supervisor sent.
        out: Takes the records.
    """

    def __init__(self, config: dict[str, Any], out: Emitter) -> None:
        self._config = config
        self._out = out
        self._slug = str(config["checks"][0])
        self._mode = "full" if config.get("mode") == "full" else "quick"
        self._ends_at = float(config.get("ends_at") or time.monotonic() + 86400)
        self._headline = False
        self._trouble = ""
        """Why nothing can be measured at all."""
        self._context: BenchContext | None = None

    def run(self) -> int:
        """Run them all, or up to one that leaves CUDA unusable."""
        self._report("torch is imported")
        self._start()
        for slug in self._config["checks"]:
            self._slug, self._headline = slug, False
            self._out.emit("progress", id=slug, text=BY_SLUG[slug].title, begin=True)
            self._measure(BY_SLUG[slug])
            usable = self._tidy()
            self._out.emit("measured", id=slug)
            if not usable:
                self._out.emit("leave")
                break
        sys.stdout.flush()
        return 0

    def _report(self, text: str) -> None:
        self._out.emit("progress", id=self._slug, text=text)

    def _start(self) -> None:
        """Import torch and look for GPUs; a worker with benchmarks of their own process starts no CUDA."""
        first = not self._config.get("statuses")
        if first:
            self._out.emit("env", env=environment.of_container(str(self._config.get("workdir") or "")))
        try:
            import torch
        except Exception as error:
            self._trouble = "torch cannot be imported: {}".format(first_line(error))
            return
        if first or not self._config.get("torch_imported"):
            self._out.emit("env", env=environment.of_torch(torch))
        gpus = self._gpus(torch, own=BY_SLUG[self._slug].own)
        self._out.emit("seen", gpus=gpus)
        device = "cuda:0" if gpus else "cpu"
        self._context = BenchContext(self._config, self._report, torch, device=device, gpus=gpus)

    def _gpus(self, torch: Any, *, own: bool) -> int:
        """How many GPUs can be used."""
        asked = self._config.get("asked_count")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            count = int(torch.cuda.device_count()) if torch.cuda.is_available() else 0
        if not count:
            if asked and torch.version.cuda is not None:
                self._trouble = "CUDA does not start, though GPUs were given"
            elif asked:
                self._trouble = "torch is a CPU build, though GPUs were given"
            return 0
        if own:
            return count
        self._report("CUDA starts")
        try:
            torch.zeros(1, device="cuda:0").add_(1)
            torch.cuda.synchronize(0)
        except RuntimeError as error:
            self._trouble = "CUDA does not start: {}".format(first_line(error))
            return 0
        if not self._config.get("statuses"):
            self._out.emit("env", env={"gpus": environment.of_gpus(torch, libcuda.ask()["uuids"])})
        return count

    def _measure(self, benchmark: Benchmark) -> None:
        """Run one benchmark, and tell what it yields as it comes."""
        context = self._context
        if self._trouble or context is None:
            self._tell(Measurement({}, status=ERROR, why=self._trouble), fix=_CHECK)
            return
        why = without(benchmark, context)
        if why:
            self._tell(Measurement.skipped({}, why))
            return
        budget, left = benchmark.budget_s(self._mode), self._ends_at - time.monotonic() - _SPARE_S
        if left < _LEAST_SHARE * budget:
            why = "{:.0f} s of the run were left, and it takes {:g}".format(max(0.0, left), budget)
            self._tell(
                Measurement({}, status=TIMEOUT, why=why), fix="Measure it alone, with --only {}.".format(benchmark.code)
            )
            return
        context.begin(min(budget, left))
        resumed, told = time.time(), 0
        try:
            for measurement in benchmark.load()(context):
                self._tell(measurement, resumed=resumed)
                resumed, told = time.time(), told + 1
        except Exception as error:
            self._tell(Measurement.failed({}, error), resumed=resumed)
            return
        if not told:
            self._tell(Measurement({}, status=ERROR, why="it measured nothing"))

    def _tell(self, measurement: Measurement, *, resumed: float | None = None, fix: str = "") -> None:
        context, now = self._context, time.time()
        cuda = context is not None and context.cuda
        if not self._headline and not measurement.params:
            measurement.headline = True
        self._headline = self._headline or measurement.headline
        if cuda and context is not None and not BY_SLUG[self._slug].own:
            self._add_memory(measurement, context)
        gpu = measurement.gpu if measurement.gpu is not None else ([0] if cuda else [])
        self._out.emit(
            "bench",
            id=self._slug,
            status=measurement.status,
            params=measurement.params,
            device="cuda" if cuda else "cpu",
            gpu=gpu,
            unit=measurement.unit,
            score=measurement.score,
            stat=measurement.stat or {},
            values=measurement.values,
            headline=measurement.headline,
            noisy=measurement.noisy,
            cold_s=measurement.cold_s,
            peak_reserved_bytes=measurement.peak_reserved_bytes,
            began=measurement.began if measurement.began is not None else resumed,
            ended=measurement.ended if measurement.ended is not None else now,
            why=measurement.why,
            fix=fix,
        )

    def _add_memory(self, measurement: Measurement, context: BenchContext) -> None:
        """The most memory since the last measurement, and whether the allocator ran out in the timed part."""
        cuda = context.torch.cuda
        try:
            if measurement.peak_reserved_bytes is None:
                measurement.peak_reserved_bytes = int(cuda.max_memory_reserved(context.device))
            retries = int(cuda.memory_stats(context.device).get("num_alloc_retries", 0))
            cuda.reset_peak_memory_stats(context.device)
        except (RuntimeError, AttributeError):
            return
        if retries > context.alloc_retries:
            measurement.values["alloc_retries"] = retries - context.alloc_retries
            measurement.noisy = True
        context.alloc_retries = retries

    def _tidy(self) -> bool:
        """Give the memory back; whether CUDA can still be used."""
        gc.collect()
        context = self._context
        if context is None or not context.cuda or BY_SLUG[self._slug].own:
            return True
        try:
            context.torch.cuda.synchronize(context.device)
            context.torch.cuda.empty_cache()
        except RuntimeError as error:
            sys.stderr.write("CUDA cannot be used any more in this process: {}\n".format(first_line(error)))
            return False
        return True


def without(benchmark: Benchmark, context: BenchContext) -> str:
    """Why ``benchmark`` does not run here; empty when it does."""
    if "cuda" in benchmark.needs and not context.cuda:
        return "torch is a CPU build" if context.torch.version.cuda is None else "no GPU was given"
    if "gpus" in benchmark.needs and context.gpus == 1:
        return ONE_GPU
    return ""
