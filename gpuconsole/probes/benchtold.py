"""What a person is told of a run of benchmarks, in sentences and in order: shared by command line and console."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gpuconsole.core.text import duration
from gpuconsole.probes.benchrecords import BenchLevel, BenchRecord, BenchRun, Rule, Spread
from gpuconsole.probes.benchshares import of_clock, of_datasheet, sources_of
from gpuconsole.probes.benchwords import named, percent, words_of

_UNREMARKABLE = (BenchLevel.OK, BenchLevel.NO_REFERENCE, BenchLevel.SKIPPED, BenchLevel.NOISY)
_FAILED = (BenchLevel.ERROR, BenchLevel.WRONG, BenchLevel.TIMEOUT)


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a result has its grade."""

    name: str
    words: str
    fix: str = ""
    level: BenchLevel = BenchLevel.OK


def shown(run: BenchRun) -> tuple[BenchRecord, ...]:
    """The results worth a row, each benchmark's headline first; what failed or was skipped stands once."""
    first = {record.id: place for place, record in reversed(list(enumerate(run.benchmarks)))}
    found = [record for record in run.benchmarks if record.measured or record.headline or not _said_before(record, run)]
    return tuple(sorted(found, key=lambda record: (first[record.id], not record.headline)))


def _said_before(record: BenchRecord, run: BenchRun) -> bool:
    """A benchmark that failed or was skipped says the same reason once."""
    told = (record.id, record.status, record.why)
    return next(each for each in run.benchmarks if (each.id, each.status, each.why) == told) is not record


def name_of(record: BenchRecord) -> str:
    """``B01 mm bf16 8192³``; of a result that is not its benchmark's headline its parameters alone, indented."""
    words = words_of(record)
    what = f"{record.code} {named(record.id, words)}" if record.headline or not words else f"    {words}"
    return what + ("" if record.device != "cpu" or not record.measured else " (CPU)")


def heading(run: BenchRun) -> tuple[str, ...]:
    """What was measured, on what: subject, GPUs, versions, mode, id."""
    environment, names = run.environment, [gpu.name or "GPU" for gpu in run.machine.gpus]
    gpus = ", ".join(
        f"{names.count(name)} × {name}" if names.count(name) > 1 else name for name in dict.fromkeys(names)
    )
    parts = (
        run.subject or environment.where,
        gpus or run.machine.cpu or "CPU",
        f"torch {environment.torch}" if environment.torch else "no torch",
        f"CUDA {environment.torch_cuda}" if environment.torch_cuda else "",
        f"driver {run.machine.driver}" if run.machine.driver else "",
        f"{run.mode}, {duration(run.seconds)}",
        f"run {run.run}" if any(record.measured for record in run.benchmarks) else "",  # else it is not kept
    )
    return tuple(part for part in parts if part)


def reasons(records: Sequence[BenchRecord], run: BenchRun) -> Iterator[Reason]:
    """All that a benchmark's own score was compared with, and the rule behind each grade that is not good."""
    for record in records:
        level = record.verdict.level
        if record.headline and record.measured:
            words = "; ".join(compared(record, run))
        else:
            words = record.verdict.words if record.headline or level not in _UNREMARKABLE else ""
        if words:
            yield Reason(named(record.id, words_of(record)), words, record.fix if level in _FAILED else "", level)


def compared(record: BenchRecord, run: BenchRun) -> Iterator[str]:
    """What a result was compared with, what decided its grade first."""
    verdict = record.verdict
    if verdict.words:
        yield verdict.words
    yield from (each.words for each in verdict.judgements if each.words != verdict.words)
    gpus = run.gpus_of(record)
    told = {each.rule for each in verdict.judgements}
    if Rule.DATASHEET not in told and (sheet := of_datasheet(record, gpus)) is not None:
        yield f"{percent(sheet.share)} of {sheet.words}"
    if (clock := of_clock(record, gpus)) is not None:
        yield f"{percent(clock.share)} of {clock.words}"


def sources(records: Sequence[BenchRecord], run: BenchRun) -> dict[str, str]:
    """Short name → where it is, of the figures that benchmarks' own scores were compared with."""
    found: dict[str, str] = {}
    for record in records:
        if record.headline and record.measured:
            found |= sources_of(record, run.gpus_of(record))
    return found


def meanwhile(run: BenchRun) -> Iterator[str]:
    """Clocks, power, heat and what held the clocks down, of each GPU over all benchmarks."""
    uses = [use for record in run.benchmarks for use in record.dev]
    for position in sorted({use.gpu for use in uses}):
        mine = [use for use in uses if use.gpu == position]
        parts = [
            _span("clock", [use.sm_mhz for use in mine], "MHz"),
            _span("power", [use.power_w for use in mine], "W"),
            _span("temperature", [use.temperature_c for use in mine], "°C"),
        ]
        held = dict.fromkeys(reason for use in mine for reason in use.reasons)
        known = [part for part in parts if part]
        if known:
            words = f"held down by {', '.join(held)}" if held else "nothing held its clocks down"
            yield f"GPU {position}: {', '.join([*known, words])}"
        else:
            yield f"GPU {position}: not seen: {next((use.unknown for use in mine if use.unknown), 'no samples')}"


def _span(name: str, spreads: Sequence[Spread | None], unit: str) -> str:
    known = [spread for spread in spreads if spread is not None]
    if not known:
        return ""
    low, high = min(each.low for each in known), max(each.high for each in known)
    return f"{name} {low:.0f} {unit}" if low == high else f"{name} {low:.0f}–{high:.0f} {unit}"
