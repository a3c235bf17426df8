"""Two runs beside each other: what got faster or slower, how far that can be said, and what else is different."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from gpuconsole.probes.benchkeys import Likeness, hardware_key, likeness, place_key
from gpuconsole.probes.benchrecords import BenchRecord, BenchRun
from gpuconsole.probes.benchwords import words_of

LEAST_CHANGE = 0.02
"""Two runs of the same machine differ by as much."""


class Change(StrEnum):
    """How a result changed."""

    SAME = "same"
    """Within what repeats differ by."""
    FASTER = "faster"
    SLOWER = "slower"
    UNKNOWN = "unknown"
    """It cannot be said: they are not alike, or one of them does not hold."""


@dataclass(frozen=True, slots=True)
class Row:
    """One result in both runs."""

    id: str
    code: str
    what: str
    """Its parameters, short."""
    unit: str
    first: float | None
    second: float | None
    ratio: float | None
    """The second as a multiple of the first, above 1 being better whatever the unit."""
    change: Change
    likeness: Likeness | None
    """None when only one run has it."""
    headline: bool = False
    why: str = ""
    """Why nothing is said of the change, or what makes it doubtful."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Something else that differs between the runs."""

    name: str
    first: str
    second: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs beside each other."""

    first: str
    """Id of the run that is compared with."""
    second: str
    rows: tuple[Row, ...]
    differences: tuple[Difference, ...] = ()

    @property
    def slower(self) -> tuple[Row, ...]:
        """What got slower, and can be compared."""
        return tuple(row for row in self.rows if row.change is Change.SLOWER)


def compare(first: BenchRun, second: BenchRun) -> Comparison:
    """``second`` beside ``first``."""
    there = {_identity(record): record for record in first.benchmarks if record.params or record.measured}
    rows = []
    for record in second.benchmarks:
        before = there.pop(_identity(record), None)
        if before is not None:
            rows.append(_row(before, first, record, second))
        elif record.measured:
            rows.append(_alone(record, "only in the second run", second=True))
    rows += [_alone(record, "only in the first run", second=False) for record in there.values() if record.measured]
    order = {record.id: position for position, record in enumerate((*first.benchmarks, *second.benchmarks))}
    rows.sort(key=lambda row: (row.code, order[row.id]))
    return Comparison(first.run, second.run, tuple(rows), differences(first, second))


def _identity(record: BenchRecord) -> tuple[str, tuple[int, ...]]:
    return place_key(record), record.gpu


def _row(before: BenchRecord, of_first: BenchRun, record: BenchRecord, of_second: BenchRun) -> Row:
    like = likeness(before, of_first, record, of_second)
    ratio = _ratio(before, record)
    why = _doubt(before, of_first, record, of_second, like)
    unlike = like is None or like is Likeness.LOOSE
    change = Change.UNKNOWN
    if ratio is not None and not unlike and not why:
        noise = max(LEAST_CHANGE, _spread(before), _spread(record))
        better = Change.FASTER if ratio > 1 else Change.SLOWER
        change = Change.SAME if abs(ratio - 1) <= noise else better
    return Row(
        record.id, record.code, words_of(record), record.unit or before.unit, before.score, record.score,
        None if ratio is None else round(ratio, 4), change, like, record.headline or before.headline, why,
    )  # fmt: skip


def _alone(record: BenchRecord, why: str, *, second: bool) -> Row:
    first, last = (None, record.score) if second else (record.score, None)
    return Row(
        record.id, record.code, words_of(record), record.unit, first, last, None, Change.UNKNOWN, None,
        record.headline, why,
    )  # fmt: skip


def _ratio(before: BenchRecord, record: BenchRecord) -> float | None:
    if not before.score or not record.score or before.score < 0 or record.score < 0 or before.unit != record.unit:
        return None
    return record.score / before.score if record.better == "higher" else before.score / record.score


def _spread(record: BenchRecord) -> float:
    spread = record.stat.get("riqr")
    return float(spread) if isinstance(spread, int | float) else 0.0


def _doubt(
    before: BenchRecord, of_first: BenchRun, record: BenchRecord, of_second: BenchRun, like: Likeness | None
) -> str:
    """Why nothing is said of the change; empty when something is."""
    for one, which in ((before, "first"), (record, "second")):
        if not one.measured:
            return f"the {which} is {one.status.value}: {one.why}" if one.why else f"the {which} is {one.status.value}"
    if before.rev != record.rev:
        return "the method has changed"
    if like is Likeness.LOOSE:
        return "not the same hardware" if _known(before, of_first) and _known(record, of_second) else "unknown hardware"
    for one, which in ((before, "first"), (record, "second")):
        if one.contended:
            return f"others used the GPU in the {which}"
        if one.noisy:
            return f"the {which} spread too far"
    return ""


def _known(record: BenchRecord, run: BenchRun) -> bool:
    return hardware_key(record, run) is not None


def differences(first: BenchRun, second: BenchRun) -> tuple[Difference, ...]:
    """What differs in software, hardware and mode."""
    found = []
    for (name, one), (_, other) in zip(_facts(first), _facts(second), strict=True):
        if one != other:
            found.append(Difference(name, one, other))
    return tuple(found)


def _facts(run: BenchRun) -> tuple[tuple[str, str], ...]:
    environment, machine = run.environment, run.machine
    return (
        ("GPUs", _gpus(run)),
        ("power limit", _joined([f"{gpu.power_limit_w:.0f} W" if gpu.power_limit_w else "–" for gpu in machine.gpus])),
        ("ECC", _joined([{True: "on", False: "off", None: "–"}[gpu.ecc] for gpu in machine.gpus])),
        ("MIG", _joined([{True: "on", False: "off", None: "–"}[gpu.mig] for gpu in machine.gpus])),
        ("driver", environment.driver or machine.driver or "–"),
        ("torch", environment.torch or "–"),
        ("CUDA", environment.torch_cuda or "–"),
        ("cuDNN", environment.cudnn or "–"),
        ("Python", environment.python or "–"),
        ("CPU", machine.cpu or "–"),
        ("governor", machine.governor or "–"),
        ("cores", "–" if environment.cpus is None else f"{environment.cpus}"),
        ("CPU limit", "none" if environment.cpu_quota is None else f"{environment.cpu_quota:g}"),
        ("kernel", environment.kernel or "–"),
        ("mode", run.mode),
    )  # fmt: skip


def _gpus(run: BenchRun) -> str:
    return _joined([gpu.name or "–" for gpu in run.machine.gpus])


def _joined(words: list[str]) -> str:
    """The words, each once with how often: ``8 × NVIDIA H200``."""
    counted = {word: words.count(word) for word in words}
    return ", ".join(f"{count} × {word}" if count > 1 else word for word, count in counted.items()) or "none"
