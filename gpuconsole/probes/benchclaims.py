"""What people read about speed-ups, beside what they are on this machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from gpuconsole.probes.benchhealth import alone
from gpuconsole.probes.benchrecords import BenchRecord, BenchRun, Claim
from gpuconsole.probes.benchresults import BenchStatus
from gpuconsole.probes.benchwords import words_of

_MIXED = ("bf16", "fp16")
_LEEWAY = 0.02
"""A ratio so near the claim's edge is as claimed: repeats differ by as much."""


@dataclass(frozen=True, slots=True)
class _Told:
    """A claim as it is read."""

    name: str
    title: str
    claimed: str
    low: float
    high: float | None
    form: str
    """``times``, ``gain`` or ``share``."""


_AMP = _Told("amp", "mixed precision, training a decoder", "1.5–2×", 1.5, 2.0, "times")
_AMP_CONV = _Told("amp-conv", "mixed precision, training a ResNet", "1.5–2×", 1.5, 2.0, "times")
_COMPILE = _Told("compile", "torch.compile, a decoder block", "+30–50 %", 1.3, 1.5, "gain")
_SCALING = _Told("scaling", "training over all GPUs", "90 % scaling", 0.9, None, "share")


def claims_of(run: BenchRun) -> tuple[Claim, ...]:
    """Each claim with this machine's ratio; those of benchmarks that were no part of the run are left out."""
    there = {record.id for record in run.benchmarks}
    found = []
    if "bench.train" in there:
        found.append(_mixed(_AMP, run, "bench.train"))
    if "bench.conv" in there:
        found.append(_mixed(_AMP_CONV, run, "bench.conv"))
    if "bench.compile" in there:
        found.append(_headline(_COMPILE, run, "bench.compile"))
    if "bench.ddp" in there:
        found.append(_scaling(run))
    return tuple(found)


def _mixed(told: _Told, run: BenchRun, bench: str) -> Claim:
    """The fastest mixed precision beside plain float32, all else the same; TF32 is told where it was measured."""
    measured = [record for record in run.benchmarks if record.id == bench and record.measured]
    pairs = [(mixed, plain) for mixed, plain in _pairs(measured, "fp32") if mixed.params["precision"] in _MIXED]
    if not pairs:
        wanted = ("fp32", *_MIXED)
        missing = [one for one in run.benchmarks if one.id == bench and one.params.get("precision") in wanted]
        claim = _unmeasured(told, missing or [one for one in run.benchmarks if one.id == bench])
        beside = [(one, tf32) for one, tf32 in _pairs(measured, "tf32") if one.params["precision"] in _MIXED]
        if beside:
            fastest, tf32 = max(beside, key=lambda pair: _ratio(*pair))
            words = f"; {fastest.params['precision']} beside tf32 {_ratio(fastest, tf32):.2f}×"
            claim = replace(claim, why=claim.why + words)
        return claim
    mixed, plain = max(pairs, key=lambda pair: _ratio(*pair))
    words = f"{mixed.params['precision']} beside fp32"
    for fastest, tf32 in _pairs(measured, "tf32"):
        if fastest is mixed:
            words += f"; beside tf32 {_ratio(mixed, tf32):.2f}×"
    return _claim(told, _ratio(mixed, plain), words, (mixed, plain))


def _pairs(records: list[BenchRecord], base: str) -> Iterator[tuple[BenchRecord, BenchRecord]]:
    """Each result with that of precision ``base`` of the same parameters otherwise."""
    plain = [record for record in records if record.params.get("precision") == base]
    for record in records:
        for other in plain:
            if other is not record and "precision" in record.params and _rest(record.params) == _rest(other.params):
                yield record, other


def _rest(params: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in params.items() if name != "precision"}


def _ratio(one: BenchRecord, other: BenchRecord) -> float:
    return one.score / other.score if one.score is not None and other.score else 0.0


def _headline(told: _Told, run: BenchRun, bench: str) -> Claim:
    records = [record for record in run.benchmarks if record.id == bench]
    for record in records:
        if record.headline and record.measured and record.score is not None:
            return _claim(told, record.score, words_of(record), (record,))
    return _unmeasured(told, records)


def _scaling(run: BenchRun) -> Claim:
    records = [record for record in run.benchmarks if record.id == "bench.ddp"]
    for record in records:
        share = record.values.get("efficiency")
        if record.headline and record.measured and isinstance(share, float):
            return _claim(_SCALING, share, f"{record.params.get('ranks')} beside one", (record, *alone(run)))
    return _unmeasured(_SCALING, records)


def _claim(told: _Told, ratio: float, why: str, records: tuple[BenchRecord, ...]) -> Claim:
    doubt = [word for word, has in (("noisy", "noisy"), ("disturbed", "contended")) for one in records if _is(one, has)]
    if doubt:
        answer = "unclear"
    elif ratio < told.low * (1 - _LEEWAY):
        answer = "less"
    elif told.high is not None and ratio > told.high * (1 + _LEEWAY):
        answer = "more"
    else:
        answer = "as-claimed"
    shown = {"times": f"{ratio:.2f}×", "gain": f"{(ratio - 1) * 100:+.0f} %", "share": f"{ratio * 100:.0f} %"}
    on_cpu = ["on the CPU"] if any(record.device == "cpu" for record in records) else []
    why = ", ".join([why, *on_cpu, *dict.fromkeys(doubt)])
    return Claim(told.name, told.title, told.claimed, round(ratio, 4), shown[told.form], answer, why)


def _is(record: BenchRecord, field: str) -> bool:
    return bool(getattr(record, field))


def _unmeasured(told: _Told, records: list[BenchRecord]) -> Claim:
    """The reason is that of the first that failed to be measured."""
    failed = [record for record in records if record.status is not BenchStatus.OK]
    why = failed[0].why if failed else "there are not both to compare"
    return Claim(told.name, told.title, told.claimed, why=why)
