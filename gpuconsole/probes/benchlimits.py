"""What limits the box, in one sentence: read from the grades, the worst first, and never from a guess."""

from __future__ import annotations

from collections.abc import Iterator

from gpuconsole.probes.benchhealth import matmul
from gpuconsole.probes.benchrecords import BenchLevel, BenchRecord, BenchRun, Limit
from gpuconsole.probes.benchresults import BenchStatus

_PARTS = {
    "bench.mm": ("compute", "the GPU's arithmetic"),
    "bench.soak": ("compute", "the GPU's arithmetic over time"),
    "bench.mem": ("memory", "the GPU's memory"),
    "bench.h2d": ("host-link", "the link between host and GPU"),
    "bench.launch": ("cpu", "the CPU, which starts the GPU's work"),
    "bench.loader": ("cpu", "the CPU and shared memory, which feed the data"),
    "bench.p2p": ("interconnect", "the link between the GPUs"),
    "bench.allreduce": ("interconnect", "the link between the GPUs"),
    "bench.ddp": ("interconnect", "the link between the GPUs"),
    "bench.attn": ("software", "the attention kernels"),
    "bench.compile": ("software", "torch.compile"),
}
"""Benchmark → what it tells of; in the order of cause."""
_ARITHMETIC = ("bench.mm", "bench.soak", "bench.train", "bench.attn", "bench.conv")
"""Those that tell how fast the GPU computes."""
_EMULATED_BELOW = 0.5
"""bf16 at less than this share of fp16 is no work of the tensor cores."""
_CAPPED_FROM = 0.5
"""Share of a benchmark's samples."""
_LOWERED = 0.98
"""Below this share of the default a power limit is a lowered one."""
_THROTTLED_FROM = 0.2
"""Share of a benchmark's samples: clocks dip for a moment on healthy machines too."""
_THROTTLED = {
    "hw-thermal": "heat",
    "sw-thermal": "heat",
    "hw-power-brake": "the power supply",
    "hw-slowdown": "heat or the power supply",
}


def limit_of(run: BenchRun) -> Limit | None:
    """What stands out; None when nothing was measured."""
    if not any(record.measured or record.status is BenchStatus.WRONG for record in run.benchmarks):
        return None
    for look in (_wrong, _cpu_only, _throttled, _bad, _software, _low, _unlike):
        for limit in look(run):
            return limit
    return _healthy(run)


def _wrong(run: BenchRun) -> Iterator[Limit]:
    wrong = [record for record in run.benchmarks if record.status is BenchStatus.WRONG]
    if wrong:
        names = " and ".join(dict.fromkeys(_name(record) for record in wrong))
        gpu = any(record.device == "cuda" for record in wrong)
        suspect = "suspect the GPU or its driver" if gpu else "suspect the memory, or this build of torch"
        yield Limit("hardware", f"Results of {names} are wrong: {suspect} before any speed.", _phrases(wrong))


def _cpu_only(run: BenchRun) -> Iterator[Limit]:
    if all(record.device != "cuda" for record in run.benchmarks if record.measured):
        why = "torch is a CPU build" if run.environment.torch_cuda is None else "torch sees no GPU"
        yield Limit("cpu", f"All of it ran on the CPU: {why}.", ())


def _throttled(run: BenchRun) -> Iterator[Limit]:
    for record in run.benchmarks:
        for use in record.dev:
            for reason in use.reasons:
                if reason in _THROTTLED and use.reasons_share.get(reason, 0.0) >= _THROTTLED_FROM:
                    heat = "" if use.temperature_c is None else f" at up to {use.temperature_c.high:.0f} °C"
                    words = f"GPU {use.gpu} slows itself down ({reason}{heat}): {_THROTTLED[reason]} limits this box."
                    yield Limit("compute", words, (f"{_name(record)}: {reason}",))


def _bad(run: BenchRun) -> Iterator[Limit]:
    yield from _graded(run, BenchLevel.BAD)


def _low(run: BenchRun) -> Iterator[Limit]:
    yield from _graded(run, BenchLevel.LOW)


def _graded(run: BenchRun, level: BenchLevel) -> Iterator[Limit]:
    """The first part with a result of this level: of those, an earlier one explains a later one."""
    for bench, (limit, part) in _PARTS.items():
        found = [record for record in run.benchmarks if record.id == bench and record.verdict.level is level]
        if found:
            much = "far below what it should be" if level is BenchLevel.BAD else "below what it should be"
            plural = part.endswith("kernels")
            words = f"{_capital(part)} {'are' if plural else 'is'} {much}"
            cause = _held_back(limit, found, run)
            yield Limit(limit, f"{words}: {cause}." if cause else f"{words}.", _phrases(found))


def _held_back(part: str, found: list[BenchRecord], run: BenchRun) -> str:
    """What somebody has set that explains it."""
    if part == "cpu" and run.machine.governor == "powersave":
        return "its governor is powersave"
    if part != "compute":
        return ""
    for gpu in (each for record in found for each in run.gpus_of(record)):
        limit, default = gpu.power_limit_w, gpu.power_default_w
        if limit is not None and default is not None and limit < default * _LOWERED:
            return f"its power limit is {limit:.0f} W, and it comes with {default:.0f} W"
    return ""


def _software(run: BenchRun) -> Iterator[Limit]:
    rates = {
        record.params.get("dtype"): record.score
        for record in run.benchmarks
        if record.id == "bench.mm" and record.trusted and record.device == "cuda"
    }
    bf16, fp16 = rates.get("bf16"), rates.get("fp16")
    if bf16 and fp16 and bf16 < _EMULATED_BELOW * fp16:
        because = f"matrix products: bf16 {bf16:.0f}, fp16 {fp16:.0f} TFLOP/s"
        yield Limit("software", "bf16 is emulated on this GPU: train with fp16 and a GradScaler.", (because,))
    for record in run.benchmarks:
        if record.id == "bench.attn" and record.device == "cuda" and record.values.get("backends") == ["math"]:
            words = "Attention has no fast kernel here: only the plain form works, slow and with much memory."
            yield Limit("software", words, ("attn: only the back end math works",))
    compiled = [record for record in run.benchmarks if record.id == "bench.compile" and not record.measured]
    for record in compiled:
        if record.status in (BenchStatus.SKIPPED, BenchStatus.ERROR) and "compiler" in record.why:
            yield Limit("software", f"torch.compile does not work here: {record.why}.", _phrases([record]))


def _unlike(run: BenchRun) -> Iterator[Limit]:
    """A training step that does much less than the card can, while each part is healthy."""
    for record in run.benchmarks:
        if record.id == "bench.train" and record.verdict.level is BenchLevel.LOW:
            words = "A training step reaches little of what the GPU can do, though no single part of it stands out."
            yield Limit("unknown", words, _phrases([record]))


def _healthy(run: BenchRun) -> Limit:
    graded = [record for record in run.benchmarks if record.verdict.level is BenchLevel.OK]
    share = _share_of_matmul(run)
    if not graded:
        doubtful = [record for record in run.benchmarks if record.verdict.level is BenchLevel.NOISY]
        why = "there is nothing yet to compare these results with"
        if doubtful:
            disturbed = any(record.contended for record in doubtful)
            why = "others used the GPU meanwhile" if disturbed else "these results spread too far"
        return Limit("unknown", f"It cannot be told: {why}.", _phrases(doubtful))
    failed = [record for record in run.benchmarks if record.status in (BenchStatus.ERROR, BenchStatus.TIMEOUT)]
    but = "" if not failed else f"; {_listed(failed)} could not be measured"
    if not any(record.id in _ARITHMETIC for record in graded):
        return Limit("unknown", f"Nothing stands out in {_listed(graded)}, but how fast it computes is not known{but}.",
                     _phrases(failed))  # fmt: skip
    words = "Nothing stands out: the GPU itself is the limit" + _at_power_limit(run)
    if share is not None:
        words += f"; a training step does {share * 100:.0f} % of its matrix product's rate{but}."
        return Limit("compute", words, _phrases(failed))
    return Limit("compute", f"{words}, as far as it was measured{but}.", _phrases(failed))


def _at_power_limit(run: BenchRun) -> str:
    """Whether power is what bounds its matrix product, with the clock that leaves."""
    for record in run.benchmarks:
        if record.id != "bench.mm" or not record.headline:
            continue
        for use, gpu in zip(record.dev, run.gpus_of(record), strict=False):
            held, most = use.sm_mhz, gpu.max_sm_clock_mhz
            if use.reasons_share.get("sw-power-cap", 0.0) >= _CAPPED_FROM and held is not None and most is not None:
                limit = "" if gpu.power_limit_w is None else f" of {gpu.power_limit_w:.0f} W"
                return f", at its power limit{limit} ({held.mean:.0f} of {most} MHz)"
    return ""


def _share_of_matmul(run: BenchRun) -> float | None:
    for record in run.benchmarks:
        reached = record.values.get("model_tflop_per_s")
        if record.id == "bench.train" and record.params.get("precision") == "bf16" and record.measured:
            best = matmul(run, record)
            if best and isinstance(reached, int | float):
                return float(reached) / best
    return None


def _name(record: BenchRecord) -> str:
    return record.id.removeprefix("bench.")


def _phrases(records: list[BenchRecord]) -> tuple[str, ...]:
    return tuple(f"{_name(record)}: {record.verdict.words or record.why}" for record in records)


def _listed(records: list[BenchRecord]) -> str:
    """The names of benchmarks, each once: ``mem``, ``mem and h2d``, ``mem, h2d and attn``."""
    names = list(dict.fromkeys(_name(record) for record in records))
    return " and ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
