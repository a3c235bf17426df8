"""B11: collectives over all GPUs by NCCL (over two processes by gloo on a CPU): bus bandwidth, and latency.

The figures are those of nccl-tests: ``algbw = S / t``, and ``busbw``, which relates it to the hardware whatever the
number of GPUs; S is the whole array of what is gathered or scattered. A switch that does the sum itself lets ``busbw``
exceed the speed of the links.
"""

from __future__ import annotations

import os
from typing import Any, Callable, Iterator

from gpuconsole.probes.payload.bench import data
from gpuconsole.probes.payload.bench.context import BenchContext
from gpuconsole.probes.payload.bench.measurement import TIMEOUT, Measurement, of_all
from gpuconsole.probes.payload.bench.ranks import RanksFailed, RanksLate, run_ranks
from gpuconsole.probes.payload.bench.world import World
from gpuconsole.probes.payload.outcome import first_line

UNIT = "GB/s"
SIZES = (8, 1 << 20, 64 << 20, 1 << 30)
CPU_SIZES = (8, 1 << 20, 4 << 20)
_SHARE_OF_FREE = 0.1
_DTYPES = {"fp32": ("float32", 4), "bf16": ("bfloat16", 2)}
_NAMES = {
    "all_gather": ("all_gather_single", "all_gather_into_tensor", "_all_gather_base"),
    "reduce_scatter": ("reduce_scatter_single", "reduce_scatter_tensor", "_reduce_scatter_base"),
}
_ON_CPU = 2
"""Processes where there is no GPU."""
_MEASURING = 0.3
"""Of the budget; starting processes and NCCL takes the rest."""
_LATENCY_UP_TO = 8
_P2P_HINT = ", and NCCL_P2P_DISABLE=1 tells whether copies between GPUs are to blame"


def run(context: BenchContext) -> Iterator[Measurement]:
    """All-reduce in every size and type; in full also all-gather and reduce-scatter."""
    count = context.gpus if context.cuda else _ON_CPU
    wanted = plan(list(SIZES if context.cuda else CPU_SIZES), full=context.full)
    records = run_ranks(
        "allreduce:rank",
        {"wanted": wanted, "slice_s": context.option("slice_s", context.budget_s * _MEASURING / len(wanted))},
        archive=context.archive,
        folder=context.folder,
        count=count,
        device="cuda" if context.cuda else "cpu",
        timeout_s=context.patience_s,
    )
    heard: list[dict[str, Any]] = []
    told = 0
    largest = max(params["bytes"] for params in wanted)
    try:
        for record in records:
            if record["t"] == "at":
                if record["rank"] == 0:
                    context.report(record["text"])
                continue
            if record["t"] == "largest":
                largest = record["bytes"]
                continue
            heard.append(record)
            parts = [one for one in heard if one["number"] == told]
            if len(parts) == count:
                yield measurement_of(wanted[told], parts, on_gpu=context.cuda, largest=largest)
                told += 1
    except (RanksFailed, RanksLate) as error:
        yield from failures(wanted[told:], error, on_gpu=context.cuda, count=count, largest=largest)


def plan(sizes: list[int], *, full: bool) -> list[dict[str, Any]]:
    """What is measured, small sizes first."""
    operations = ["all_reduce", "all_gather", "reduce_scatter"] if full else ["all_reduce"]
    return [
        {"operation": operation, "dtype": dtype, "bytes": count}
        for operation in operations
        for dtype in _DTYPES
        for count in sizes
        if operation == "all_reduce" or count > _LATENCY_UP_TO
    ]


def is_headline(params: dict[str, Any], largest: int) -> bool:
    """The largest all-reduce in float32."""
    return bool(params["operation"] == "all_reduce" and params["dtype"] == "fp32" and params["bytes"] == largest)


def bus_factor(operation: str, count: int) -> float:
    """From ``algbw`` to ``busbw``, for ``count`` ranks."""
    return (2 if operation == "all_reduce" else 1) * (count - 1) / count


def measurement_of(params: dict[str, Any], parts: list[dict[str, Any]], *, on_gpu: bool, largest: int) -> Measurement:
    """One measurement of what every rank has told; the slowest rank's time counts."""
    count = len(parts)
    params = dict(params, ranks=count)
    gpu = list(range(count)) if on_gpu else []
    headline = is_headline(params, largest)
    why = next((part["why"] for part in parts if part.get("why")), "")
    if parts[0].get("skipped"):
        return Measurement.skipped(params, parts[0]["skipped"], gpu=gpu)
    if why:
        wrong = Measurement.wrong(params, why, gpu=gpu)
        wrong.headline = headline
        return wrong
    slowest = max(parts, key=lambda part: float(part["stat"]["median_ms"]))
    seconds = slowest["stat"]["median_ms"] / 1000.0
    figures = {
        "algbw_gb_per_s": round(params["bytes"] / seconds / 1e9, 5),
        "busbw_gb_per_s": round(params["bytes"] / seconds / 1e9 * bus_factor(params["operation"], count), 5),
        "latency_us": round(seconds * 1e6, 3),
    }
    values: dict[str, Any] = dict(figures, slowest_rank=slowest["rank"], backend=slowest["backend"])
    values["slowest_over_fastest"] = round(seconds * 1000 / min(part["stat"]["median_ms"] for part in parts), 4)
    if slowest.get("nccl_version"):
        values["nccl_version"] = slowest["nccl_version"]
    small = params["bytes"] <= _LATENCY_UP_TO
    measurement = Measurement(
        params,
        unit="us" if small else UNIT,
        score=figures["latency_us" if small else "busbw_gb_per_s"],
        values=values,
        gpu=gpu,
        headline=headline,
        **of_all(parts),
    )
    measurement.stat = slowest["stat"]
    return measurement


def failures(
    left: list[dict[str, Any]], error: Exception, *, on_gpu: bool, count: int, largest: int
) -> Iterator[Measurement]:
    """What the error means for what was not measured: told once, for the first, and for the headline."""
    gpu = list(range(count)) if on_gpu else []
    for number, params in enumerate(left):
        headline = is_headline(params, largest)
        if number and not headline:
            continue
        params = dict(params, ranks=count)
        if isinstance(error, RanksLate):
            hint = _P2P_HINT if on_gpu and "NCCL_P2P_DISABLE" not in os.environ else ""
            measurement = Measurement(params, status=TIMEOUT, why="{}{}".format(error, hint), gpu=gpu)
        else:
            measurement = Measurement.failed(params, error, gpu=gpu)
        measurement.headline = headline
        yield measurement


def rank(world: World, told: dict[str, Any]) -> None:
    """Take part in every collective that is wanted."""
    torch = world.torch
    free = min(world.share("free", data.free_bytes(torch, world.device)))
    fitting = [one["bytes"] for one in told["wanted"] if one["bytes"] <= free * _SHARE_OF_FREE]
    world.emit("largest", bytes=max(fitting, default=0))
    for number, wanted in enumerate(told["wanted"]):
        text = "{} of {} in {}".format(wanted["operation"].replace("_", "-"), words(wanted["bytes"]), wanted["dtype"])
        world.emit("at", text=text)
        if wanted["bytes"] not in fitting:
            text = "memory: it is more than a tenth of what is free"
            world.emit("figure", number=number, skipped=text)
            continue
        collective = Collective(world, wanted)
        why, unsupported = fault_of(collective)
        if unsupported:
            world.emit("figure", number=number, skipped=unsupported)
            continue
        if any(world.share("fault/{}".format(number), why)):
            world.emit("figure", number=number, why=why)
            continue
        timing = world.timed(str(number), collective.go, told["slice_s"], before=collective.refresh)
        world.emit(
            "figure",
            number=number,
            stat=timing.stat(),
            noisy=timing.noisy,
            began=timing.began,
            ended=timing.ended,
            cold_s=timing.cold_s,
            backend="nccl" if world.on_gpu else "gloo",
            nccl_version=nccl_version(torch) if world.on_gpu else None,
            peak_reserved_bytes=world.peak_reserved_bytes(),
        )


def words(count: int) -> str:
    """``8 B``, ``64 MiB``, ``1 GiB``."""
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20)):
        if count >= factor:
            return "{} {}".format(count // factor, unit)
    return "{} B".format(count)


def nccl_version(torch: Any) -> str | None:
    """``2.21.5``; None when torch does not tell."""
    try:
        return ".".join(str(part) for part in torch.cuda.nccl.version())
    except (RuntimeError, AttributeError, TypeError):
        return None


class Collective:
    """One collective on buffers of its own.

    Args:
        world: Who takes part.
        wanted: ``operation``, ``dtype``, and ``bytes`` of the whole array.
    """

    def __init__(self, world: World, wanted: dict[str, Any]) -> None:
        self._world = world
        self._operation: str = wanted["operation"]
        name, size = _DTYPES[wanted["dtype"]]
        self._dtype = getattr(world.torch, name)
        whole = max(1, wanted["bytes"] // size // world.count) * world.count
        if self._operation == "all_reduce":
            whole = max(1, wanted["bytes"] // size)
        self._whole, self._part = whole, whole // world.count
        count_in = self._part if self._operation == "all_gather" else whole
        count_out = self._part if self._operation == "reduce_scatter" else whole
        torch, device = world.torch, world.device
        generator = data.seeded(torch, device, seed=world.rank + 1)
        self._fresh = data.random_matrix(torch, (count_in,), self._dtype, device=device, generator=generator)
        self._in = torch.empty_like(self._fresh)
        self._out = self._in
        if self._operation != "all_reduce":
            self._out = torch.empty((count_out,), dtype=self._dtype, device=device)
        self.refresh()

    def refresh(self) -> None:
        """Random numbers again: sums of sums would soon be infinite."""
        self._in.copy_(self._fresh)

    def go(self) -> None:
        """Do it once."""
        if self._operation == "all_reduce":
            self._world.torch.distributed.all_reduce(self._in)
        else:
            self._function()(self._out, self._in)

    def _function(self) -> Callable[[Any, Any], object]:
        """By its newest name: the older ones warn where there is a newer."""
        distributed = self._world.torch.distributed
        name = next(function for function in _NAMES[self._operation] if hasattr(distributed, function))
        found: Callable[[Any, Any], object] = getattr(distributed, name)
        return found

    def fault(self) -> str:
        """What is wrong with the result for small whole numbers, which all types add exactly; empty if nothing is."""
        torch, world = self._world.torch, self._world
        pattern = torch.arange(7, dtype=self._dtype, device=world.device).repeat(self._whole // 7 + 1)[: self._whole]
        mine = slice(world.rank * self._part, (world.rank + 1) * self._part)
        self._in.copy_(pattern[mine] if self._operation == "all_gather" else pattern).add_(world.rank)
        if self._operation == "all_gather":
            numbers = torch.arange(world.count, dtype=self._dtype, device=world.device)
            wanted = pattern.view(world.count, self._part).add_(numbers[:, None]).view(-1)
        else:
            wanted = pattern.mul_(world.count).add_(world.count * (world.count - 1) // 2)
            wanted = wanted[mine] if self._operation == "reduce_scatter" else wanted
        self.go()
        world.synchronize()
        differing = int((self._out != wanted).sum())
        self.refresh()
        if differing:
            return "{} of {} elements are wrong on rank {}".format(differing, self._out.numel(), world.rank)
        return ""


def fault_of(collective: Collective) -> tuple[str, str]:
    """What is wrong with its result, and why it cannot be done at all, which is so on every rank alike."""
    try:
        return collective.fault(), ""
    except RuntimeError as error:
        if "support" in str(error):
            return "", first_line(error)
        raise
