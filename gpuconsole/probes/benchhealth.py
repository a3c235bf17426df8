"""What healthy machines have in common, where no measured reference says more.

These ranges are proposals that measuring more machines will settle. So a result outside of them is low, never bad.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gpuconsole.probes.benchrecords import BenchGpu, BenchLevel, BenchRecord, BenchRun, Judgement, Rule
from gpuconsole.probes.benchshares import Written
from gpuconsole.probes.benchsheets import datasheet

_LOWEST_OF_DATASHEET = 0.59
"""The least healthy card on record reaches 66 % of its dense bf16 rate; this is a tenth below."""
_LOWEST_OF_MEMORY = 0.80
_LOWEST_OF_LINK = 0.75
_LINK_GBS: Mapping[int, float] = {3: 15.75, 4: 31.5, 5: 63.0, 6: 121.0}
"""GB/s of a PCIe link of 16 lanes, one way."""
_MOST_LAUNCH_US = 10.0
_LOWEST_ATTENTION = 0.40
_LOWEST_TRAINING = 0.30
_LOWEST_SCALING = 0.65
_LOWEST_SCALING_DIRECT = 0.85
"""Where every pair reaches the other directly; two H200 reach 92 %."""
_LOWEST_COMPILED = 1.0
_LEAST_KEPT = 0.95
_LOWEST_PAIR = 0.80
_LOWEST_COLLECTIVE = 0.65
"""Of NVLink one way: a ring of many GPUs reaches 80 %, two H200 alone 73 %."""
_LEAST_COLLECTIVE_BYTES = 1 << 30
"""Smaller ones tell of latency."""


@dataclass(frozen=True, slots=True)
class _Case:
    record: BenchRecord
    run: BenchRun
    sheet: Written | None

    @property
    def gpu(self) -> BenchGpu | None:
        gpus = self.run.gpus_of(self.record)
        return gpus[0] if len(gpus) == 1 else None


def health(record: BenchRecord, run: BenchRun, sheet: Written | None) -> list[Judgement]:
    """What is said of a result on a GPU by its datasheet, and by what healthy machines have in common."""
    if record.device != "cuda":
        return []
    return list(_RULES.get(record.id, _none)(_Case(record, run, sheet)))


def _none(_: _Case) -> Iterator[Judgement]:
    return iter(())


def _of_sheet(case: _Case, lowest: float) -> Iterator[Judgement]:
    if case.sheet is not None:
        against = f"{case.sheet.share * 100:.0f} % of {case.sheet.words} (low below {lowest * 100:.0f} %)"
        yield Judgement(Rule.DATASHEET, _level(case.sheet.share >= lowest), against, round(case.sheet.share, 4))


def _mm(case: _Case) -> Iterator[Judgement]:
    if case.record.headline:
        yield from _of_sheet(case, _LOWEST_OF_DATASHEET)


def _mem(case: _Case) -> Iterator[Judgement]:
    yield from _of_sheet(case, _LOWEST_OF_MEMORY)


def _h2d(case: _Case) -> Iterator[Judgement]:
    gpu, score = case.gpu, case.record.score
    if gpu is None or score is None or not case.record.headline:
        return
    now, most = (gpu.pcie_generation, gpu.pcie_width), (gpu.pcie_max_generation, gpu.pcie_max_width)
    if now[0] is None or now[1] is None:
        return
    narrow = any(is_now < can for is_now, can in zip(now, most, strict=True) if is_now is not None and can is not None)
    if narrow:
        words = f"the link is PCIe {now[0]} ×{now[1]} under load, the card can do PCIe {most[0]} ×{most[1]}"
        yield Judgement(Rule.HEALTHY, BenchLevel.LOW, words)
    if now[0] in _LINK_GBS:
        spec = _LINK_GBS[now[0]] * now[1] / 16
        words = f"{score / spec * 100:.0f} % of {spec:g} GB/s of PCIe {now[0]} ×{now[1]}"
        words += f" (low below {_LOWEST_OF_LINK * 100:.0f} %)"
        yield Judgement(Rule.HEALTHY, _level(score / spec >= _LOWEST_OF_LINK), words, round(score / spec, 4))


def _launch(case: _Case) -> Iterator[Judgement]:
    score = case.record.score
    if case.record.headline and score is not None and case.record.unit == "us":
        words = f"{score:.1f} µs a launch (low above {_MOST_LAUNCH_US:g} µs)"
        yield Judgement(Rule.HEALTHY, _level(score <= _MOST_LAUNCH_US), words)


def _of_matmul(case: _Case, reached: object, lowest: float) -> Iterator[Judgement]:
    """Beside this card's own matrix product in bf16."""
    best = matmul(case.run, case.record)
    if best is None or isinstance(reached, bool) or not isinstance(reached, int | float):
        return
    share = reached / best
    words = f"{share * 100:.0f} % of this GPU's own bf16 matrix product (low below {lowest * 100:.0f} %)"
    yield Judgement(Rule.HEALTHY, _level(share >= lowest), words, round(share, 4))


def _attention(case: _Case) -> Iterator[Judgement]:
    if case.record.headline and case.record.unit == "TFLOP/s":
        yield from _of_matmul(case, case.record.score, _LOWEST_ATTENTION)


def _train(case: _Case) -> Iterator[Judgement]:
    if case.record.params.get("precision") == "bf16":
        yield from _of_matmul(case, case.record.values.get("model_tflop_per_s"), _LOWEST_TRAINING)


def _soak(case: _Case) -> Iterator[Judgement]:
    kept = case.record.values.get("last_over_first")
    if isinstance(kept, float):
        words = f"{kept * 100:.0f} % of its first quarter's pace in its last (low below {_LEAST_KEPT * 100:.0f} %)"
        yield Judgement(Rule.HEALTHY, _level(kept >= _LEAST_KEPT), words, kept)


def _scaling(case: _Case) -> Iterator[Judgement]:
    share, count = case.record.values.get("efficiency"), len(case.record.gpu)
    if case.record.headline and isinstance(share, float) and all(one.trusted for one in alone(case.run)):
        lowest = _LOWEST_SCALING_DIRECT if _all_direct(case.run) else _LOWEST_SCALING
        words = f"{share * 100:.0f} % of {count} times one GPU (low below {lowest * 100:.0f} %)"
        yield Judgement(Rule.HEALTHY, _level(share >= lowest), words, share)


def _pair(case: _Case) -> Iterator[Judgement]:
    if case.record.values.get("direct") is True or case.record.headline:
        yield from _of_nvlink(case, _LOWEST_PAIR)


def _collective(case: _Case) -> Iterator[Judgement]:
    size = case.record.params.get("bytes")
    all_reduce = case.record.params.get("operation") == "all_reduce"  # what others reach on two is not known
    if all_reduce and isinstance(size, int) and size >= _LEAST_COLLECTIVE_BYTES:
        yield from _of_nvlink(case, _LOWEST_COLLECTIVE)


def _of_nvlink(case: _Case, lowest: float) -> Iterator[Judgement]:
    """Beside what NVLink carries one way, where the GPUs were seen to reach each other directly."""
    score, names = case.record.score, {gpu.name for gpu in case.run.gpus_of(case.record)}
    if score is None or case.record.unit != "GB/s" or len(names) != 1 or not _all_direct(case.run):
        return
    sheet = datasheet(names.pop())
    if sheet is None or sheet.nvlink_gbs is None:
        return
    one_way = sheet.nvlink_gbs.value / 2
    words = f"{score / one_way * 100:.0f} % of {one_way:g} GB/s of NVLink one way (low below {lowest * 100:.0f} %)"
    yield Judgement(Rule.HEALTHY, _level(score / one_way >= lowest), words, round(score / one_way, 4))


def _all_direct(run: BenchRun) -> bool:
    """Every pair of GPUs copies directly, as this run found."""
    for record in run.benchmarks:
        pairs, direct = record.values.get("pairs"), record.values.get("pairs_direct")
        if record.id == "bench.p2p" and pairs is not None:
            return bool(pairs) and pairs == direct
    return False


def _compile(case: _Case) -> Iterator[Judgement]:
    score = case.record.score
    if case.record.headline and score is not None and case.record.unit == "x":
        words = f"compiled {score:.2f} times as fast as eager (low below {_LOWEST_COMPILED:g})"
        yield Judgement(Rule.HEALTHY, _level(score >= _LOWEST_COMPILED), words)


def _level(healthy: bool) -> BenchLevel:
    return BenchLevel.OK if healthy else BenchLevel.LOW


def matmul(run: BenchRun, record: BenchRecord) -> float | None:
    """TFLOP/s of the bf16 matrix product that the run is known by, on the same GPU, if it can be trusted."""
    for other in run.benchmarks:
        if other.id == "bench.mm" and other.params.get("dtype") == "bf16" and other.headline and other.trusted:
            return other.score if other.gpu == record.gpu else None
    return None


def alone(run: BenchRun) -> list[BenchRecord]:
    """Training on one GPU, beside which that on several is a share."""
    return [one for one in run.benchmarks if one.id == "bench.ddp" and one.params.get("how") == "plain"]


_RULES = {
    "bench.mm": _mm,
    "bench.mem": _mem,
    "bench.h2d": _h2d,
    "bench.launch": _launch,
    "bench.attn": _attention,
    "bench.train": _train,
    "bench.soak": _soak,
    "bench.compile": _compile,
    "bench.p2p": _pair,
    "bench.allreduce": _collective,
    "bench.ddp": _scaling,
}
