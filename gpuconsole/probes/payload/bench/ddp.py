"""B12: how training scales over 1, 2, 4 … all GPUs with DistributedDataParallel, every GPU with its own batch.

``efficiency`` is ``tokens/s(n) / (n · tokens/s(1))``; what it lacks to 1 is communication that computing did not hide.
One process a GPU is started once; those that a smaller number does not need wait beside their GPU, which stays idle.
"""

from __future__ import annotations

import gc
import math
from typing import Any, Iterator

from gpuconsole.probes.payload.bench import data, model, training
from gpuconsole.probes.payload.bench.context import BenchContext
from gpuconsole.probes.payload.bench.measurement import TIMEOUT, Measurement, of_all
from gpuconsole.probes.payload.bench.ranks import RanksFailed, RanksLate, run_ranks
from gpuconsole.probes.payload.bench.world import World

UNIT = "tokens/s"
_ON_CPU = 2
_MEASURING = 0.4
_DRIFT = 1e-3
"""Relative, of the norms of parameters that must be the same on all ranks."""


def run(context: BenchContext) -> Iterator[Measurement]:
    """Train on ever more GPUs; then, where torch has it, sharded over all of them by FSDP2."""
    count = context.gpus if context.cuda else _ON_CPU
    wanted = plan(count, full=context.full)
    records = run_ranks(
        "ddp:rank",
        {"wanted": wanted, "slice_s": context.option("slice_s", context.budget_s * _MEASURING / len(wanted))},
        archive=context.archive,
        folder=context.folder,
        count=count,
        device="cuda" if context.cuda else "cpu",
        timeout_s=context.patience_s,
    )
    heard: list[dict[str, Any]] = []
    done: dict[str, float] = {}
    left = list(wanted)
    try:
        for record in records:
            if record["t"] == "at":
                if record["rank"] == 0:
                    context.report(record["text"])
                continue
            heard.append(record)
            parts = [one for one in heard if one["wanted"] == left[0]]
            if len(parts) == left[0]["ranks"]:
                yield measurement_of(left.pop(0), parts, done, on_gpu=context.cuda, count=count)
    except (RanksFailed, RanksLate) as error:
        yield from failures(left, error, on_gpu=context.cuda, count=count)


def plan(count: int, *, full: bool) -> list[dict[str, Any]]:
    """What is trained: plainly on one, by DDP on powers of two and on all ``count``, by FSDP2 on all."""
    numbers = [1 << power for power in range(count.bit_length()) if 1 << power < count] + [count]
    wanted = [{"how": "ddp" if number > 1 else "plain", "ranks": number} for number in numbers]
    return wanted + ([{"how": "fsdp2", "ranks": count}] if full and count > 1 else [])


def is_headline(wanted: dict[str, Any], count: int) -> bool:
    """DDP over all GPUs."""
    return bool(wanted["how"] == "ddp" and wanted["ranks"] == count)


def measurement_of(
    wanted: dict[str, Any], parts: list[dict[str, Any]], done: dict[str, float], *, on_gpu: bool, count: int
) -> Measurement:
    """One measurement of what every rank has told.

    Args:
        wanted: What was trained, and over how many GPUs.
        parts: One record a rank.
        done: Tokens a second of what was measured before; this one is added.
        on_gpu: They were GPUs.
        count: How many there are.
    """
    gpu = list(range(wanted["ranks"])) if on_gpu else []
    first = min(parts, key=lambda part: int(part["rank"]))
    params = dict(wanted, **first.get("params", {}))
    headline = is_headline(wanted, count)
    if first.get("skipped"):
        skipped = Measurement.skipped(params, first["skipped"], gpu=gpu)
        skipped.headline = headline
        return skipped
    fault = next((part["fault"] for part in parts if part["fault"]), "") or drift_of([part["norm"] for part in parts])
    if fault:
        wrong = Measurement.wrong(params, fault, gpu=gpu)
        wrong.headline = headline
        return wrong
    slowest = max(parts, key=lambda part: float(part["stat"]["median_ms"]))
    tokens_per_s = wanted["ranks"] * first["tokens"] * 1000.0 / slowest["stat"]["median_ms"]
    done[wanted["how"]] = tokens_per_s
    values: dict[str, Any] = {
        "slowest_rank": slowest["rank"],
        "loss_first": first["loss_first"],
        "loss_last": first["loss_last"],
    }
    if wanted["ranks"] > 1 and done.get("plain"):
        values.update(scaling(tokens_per_s, wanted["ranks"], done["plain"]))
    measurement = Measurement(
        params,
        unit=UNIT,
        score=round(tokens_per_s, 1),
        values=values,
        gpu=gpu,
        headline=headline,
        **of_all(parts),
    )
    measurement.stat = slowest["stat"]
    return measurement


def scaling(tokens_per_s: float, count: int, alone: float) -> dict[str, float]:
    """Efficiency over ``count`` GPUs, where one alone did ``alone`` tokens a second."""
    efficiency = tokens_per_s / (count * alone)
    return {"efficiency": round(efficiency, 4), "exposed_communication": round(1.0 - efficiency, 4)}


def drift_of(norms: list[float | None]) -> str:
    """What is wrong when weights that must be the same everywhere are not, or no numbers; empty when nothing is."""
    finite = [norm for norm in norms if norm is not None and math.isfinite(norm)]
    if len(finite) < len(norms):
        return "the weights are not numbers after training"
    if max(finite) - min(finite) > _DRIFT * max(finite):
        text = "the weights differ between ranks after training: norms from {:.4f} to {:.4f}"
        return text.format(min(finite), max(finite))
    return ""


def failures(left: list[dict[str, Any]], error: Exception, *, on_gpu: bool, count: int) -> Iterator[Measurement]:
    """What the error means for what was not measured: told for the first, and for the headline."""
    for number, wanted in enumerate(left):
        headline = is_headline(wanted, count)
        if number and not headline:
            continue
        gpu = list(range(wanted["ranks"])) if on_gpu else []
        if isinstance(error, RanksLate):
            measurement = Measurement(dict(wanted), status=TIMEOUT, why=str(error), gpu=gpu)
        else:
            measurement = Measurement.failed(dict(wanted), error, gpu=gpu)
        measurement.headline = headline
        yield measurement


def rank(world: World, told: dict[str, Any]) -> None:
    """Take part in whatever is wanted of this rank, and wait while others train."""
    distributed = world.torch.distributed
    size, precision = setting(world)
    for number, wanted in enumerate(told["wanted"]):
        group = distributed.new_group(list(range(wanted["ranks"])))
        if world.rank < wanted["ranks"]:
            if world.rank == 0:
                world.emit("at", text="training on {} of {}, {}".format(wanted["ranks"], world.count, wanted["how"]))
            facts = {"skipped": "memory: even the smallest decoder would take too much"}
            if size is not None:
                facts = train(world, wanted, size, precision, group, "train/{}".format(number), told["slice_s"])
            world.emit("trained", wanted=wanted, **facts)
        world.share("done/{}".format(number), True)


def setting(world: World) -> tuple[model.Size | None, str]:
    """The size that fits on every GPU, and the precision to train in, the same for all."""
    torch = world.torch
    if not world.on_gpu:
        return model.TINY, "fp32"
    free = min(world.share("free", data.free_bytes(torch, world.device)))
    sizes = tuple(size for size in model.SIZES if size is not model.LARGE)
    capability = min(world.share("capability", int(torch.cuda.get_device_capability(world.device)[0])))
    # DDP keeps a second copy of the gradients in its buckets, and FSDP2 of the weights it gathers.
    return model.largest(int(free * data.FREE_SHARE * 0.9), sizes), "bf16" if capability >= 8 else "fp16"


def train(
    world: World, wanted: dict[str, Any], size: model.Size, precision: str, group: Any, name: str, slice_s: float
) -> dict[str, Any]:
    """Train and time it; what this rank has to tell."""
    torch = world.torch
    sharded = wanted["how"] == "fsdp2"
    if sharded and precision != "bf16":
        precision = "fp32"
    params = dict(size.params(), precision=precision)
    if sharded and fully_shard_of(torch) is None:
        return {"skipped": "torch {} has no FSDP2".format(torch.__version__), "params": params}
    world.peak_reserved_bytes()
    decoder = model.make_decoder(size, world.device)
    if sharded:
        shard(world, decoder, precision)
    trained = wrapped(world, decoder, group) if wanted["how"] == "ddp" else decoder
    trainer = training.Trainer(
        torch,
        trained,
        model.batch_of(size, world.device, seed=world.rank + 1),
        model.adamw(trained)[0],
        device=world.device,
        precision="fp32" if sharded else precision,  # what is sharded mixes by its own policy
    )
    timing = world.timed(name, trainer.step, slice_s)
    losses = trainer.losses()
    # Of what is sharded every rank has another part, and nothing to compare.
    squares = 0.0 if sharded else sum(float(one.detach().float().norm()) ** 2 for one in decoder.parameters())
    facts = {
        "params": params,
        "tokens": size.tokens,
        "stat": timing.stat(),
        "noisy": timing.noisy,
        "began": timing.began,
        "ended": timing.ended,
        "cold_s": timing.cold_s,
        "loss_first": round(losses[0], 4),
        "loss_last": round(losses[-1], 4),
        "fault": training.fault_of(losses, math.log(size.vocabulary)),
        "norm": math.sqrt(squares),
        "peak_reserved_bytes": world.peak_reserved_bytes(),
    }
    del trainer, trained, decoder
    gc.collect()  # DDP holds itself in circles
    training.let_go(torch, world.device)
    return facts


def wrapped(world: World, decoder: Any, group: Any) -> Any:
    """``decoder`` under DistributedDataParallel."""
    return world.torch.nn.parallel.DistributedDataParallel(
        decoder,
        device_ids=[world.rank] if world.on_gpu else None,
        process_group=group,
        gradient_as_bucket_view=True,
    )


def fully_shard_of(torch: Any) -> Any:
    """FSDP2's ``fully_shard``; None where torch has none (before 2.6 it had no home of its own)."""
    try:
        from torch.distributed import fsdp
    except ImportError:
        return None
    return getattr(fsdp, "fully_shard", None)


def shard(world: World, decoder: Any, precision: str) -> None:
    """Shard each block, and the rest, over all ranks."""
    from torch.distributed import fsdp
    from torch.distributed.device_mesh import init_device_mesh

    torch = world.torch
    options: dict[str, Any] = {"mesh": init_device_mesh(world.device.split(":")[0], (world.count,))}
    if precision == "bf16":
        options["mp_policy"] = fsdp.MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for block in decoder.blocks:
        fsdp.fully_shard(block, **options)
    fsdp.fully_shard(decoder, **options)
