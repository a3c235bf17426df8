"""Benchmark results as text: a table with bars, the rule behind each grade, and claims beside this machine's ratios."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpuconsole.cli.glyphs import Glyphs
from gpuconsole.cli.output import paint
from gpuconsole.cli.tables import Column, table, wrapped
from gpuconsole.core.text import duration
from gpuconsole.probes.benchrecords import BenchLevel, BenchRecord, BenchRun, Rule, Spread
from gpuconsole.probes.benchshares import of_clock, of_datasheet, sources_of
from gpuconsole.probes.benchwords import percent, scored, words_of

GLYPHS = {
    BenchLevel.OK: ("✓", "+"),
    BenchLevel.LOW: ("▾", "v"),
    BenchLevel.BAD: ("✗", "x"),
    BenchLevel.NOISY: ("~", "~"),
    BenchLevel.NO_REFERENCE: ("·", "."),
    BenchLevel.SKIPPED: ("–", "-"),
    BenchLevel.TIMEOUT: ("!", "!"),
    BenchLevel.ERROR: ("✗", "x"),
    BenchLevel.WRONG: ("✗", "x"),
}
COLOURS = {
    BenchLevel.OK: "green",
    BenchLevel.LOW: "yellow",
    BenchLevel.BAD: "red",
    BenchLevel.NOISY: "yellow",
    BenchLevel.TIMEOUT: "yellow",
    BenchLevel.ERROR: "red",
    BenchLevel.WRONG: "red",
}
_BAR = 8
_ROOMY = 100
"""Columns from which the share at the clock held has one of its own."""
_UNREMARKABLE = (BenchLevel.OK, BenchLevel.NO_REFERENCE, BenchLevel.SKIPPED, BenchLevel.NOISY)
_ANSWERS = ("more", "less", "unclear")
_FAILED = (BenchLevel.ERROR, BenchLevel.WRONG, BenchLevel.TIMEOUT)


def report_lines(run: BenchRun, glyphs: Glyphs, *, width: int) -> Iterator[str]:
    """A whole run, in lines of ``width`` cells."""
    yield from _folded(_heading(run), glyphs, width)
    first = {record.id: place for place, record in reversed(list(enumerate(run.benchmarks)))}
    shown = [record for record in run.benchmarks if record.measured or record.headline or not _said_before(record, run)]
    shown.sort(key=lambda record: (first[record.id], not record.headline))
    if shown:
        yield ""
        yield from _table(shown, glyphs, width)
    yield from _part("Why", _reasons(shown, run, glyphs, width))
    yield from _part("Sources", _sources(shown, run, glyphs, width))
    yield from _part("Meanwhile", _meanwhile(run, glyphs, width))
    yield from _part("What people read, and what it is here", _claims(run, glyphs, width))


def _part(title: str, lines: Iterator[str]) -> Iterator[str]:
    first = next(lines, None)
    if first is not None:
        yield from ("", title, first)
        yield from lines


def _folded(
    text: str, glyphs: Glyphs, width: int, first: str = "", rest: str = "  ", *, whole_words: bool = True
) -> Iterator[str]:
    for line in wrapped(text, width, first=first, rest=rest, whole_words=whole_words):
        yield glyphs.text(line)


def _heading(run: BenchRun) -> str:
    environment, names = run.environment, [gpu.name or "GPU" for gpu in run.machine.gpus]
    gpus = ", ".join(
        f"{names.count(name)} × {name}" if names.count(name) > 1 else name for name in dict.fromkeys(names)
    )
    parts = [
        run.subject or environment.where,
        gpus or run.machine.cpu or "CPU",
        f"torch {environment.torch}" if environment.torch else "no torch",
        f"CUDA {environment.torch_cuda}" if environment.torch_cuda else "",
        f"driver {run.machine.driver}" if run.machine.driver else "",
        f"{run.mode}, {duration(run.seconds)}",
        f"run {run.run}",
    ]
    return " · ".join(part for part in parts if part)


def _said_before(record: BenchRecord, run: BenchRun) -> bool:
    """A benchmark that failed or was skipped says the same reason once."""
    told = (record.id, record.status, record.why)
    return next(each for each in run.benchmarks if (each.id, each.status, each.why) == told) is not record


def _table(records: Sequence[BenchRecord], glyphs: Glyphs, width: int) -> Iterator[str]:
    sheet = any(record.share.datasheet is not None for record in records)
    clock = width >= _ROOMY and any(record.share.at_clock is not None for record in records)
    columns = [
        Column(" "),
        Column("BENCHMARK", flexible=True),
        Column("SCORE", align="right"),
        *([Column("DATASHEET")] if sheet else []),
        *([Column("AT CLOCK", align="right")] if clock else []),
        Column("GRADE", flexible=True),
    ]
    rows = [_cells(record, glyphs, sheet=sheet, clock=clock) for record in records]
    lines = glyphs.text(table(columns, rows, width=width)).splitlines()
    if len(lines) != len(rows) + 1:  # below each other, where there is no room side by side
        yield from lines
        return
    yield lines[0]
    for record, line in zip(records, lines[1:], strict=True):
        yield paint(line, COLOURS.get(record.verdict.level, ""))


def _cells(record: BenchRecord, glyphs: Glyphs, *, sheet: bool, clock: bool) -> list[str]:
    level = record.verdict.level
    name, words = f"{record.code} {record.id.removeprefix('bench.')}", words_of(record)
    what = f"{name} {words}".rstrip() if record.headline or not words else f"    {words}"
    cpu = "" if record.device != "cpu" or not record.measured else " (CPU)"
    share = record.share.datasheet
    cells = [GLYPHS[level][0 if glyphs.unicode else 1], what + cpu, scored(record)]
    if sheet:
        cells.append("" if share is None else f"{glyphs.bar(share, _BAR)} {percent(share):>5}")
    return [*cells, *([percent(record.share.at_clock)] if clock else []), grade(record)]


def grade(record: BenchRecord) -> str:
    """The grade and the rule it is from, short: ``low: history 93 %``."""
    verdict = record.verdict
    if verdict.rule is None:
        return verdict.level.value
    share = next((each.share for each in verdict.judgements if each.rule is verdict.rule), None)
    return f"{verdict.level.value}: {verdict.rule.value} {percent(share)}".rstrip()


def _reasons(records: Sequence[BenchRecord], run: BenchRun, glyphs: Glyphs, width: int) -> Iterator[str]:
    """All that a benchmark's own score was compared with, and the rule behind each grade that is not good."""
    for record in records:
        level = record.verdict.level
        if record.headline and record.measured:
            words = "; ".join(_compared(record, run))
        else:
            words = record.verdict.words if record.headline or level not in _UNREMARKABLE else ""
        if not words:
            continue
        name = f"{record.id.removeprefix('bench.')} {words_of(record)}".strip()
        yield from _folded(f"{name}: {words}", glyphs, width, "  ", "    ")
        if record.fix and level in _FAILED:
            yield from _folded(record.fix, glyphs, width, "    → ", "      ")


def _compared(record: BenchRecord, run: BenchRun) -> Iterator[str]:
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


def _sources(records: Sequence[BenchRecord], run: BenchRun, glyphs: Glyphs, width: int) -> Iterator[str]:
    """Where the figures are from that benchmarks' own scores were compared with."""
    found: dict[str, str] = {}
    for record in records:
        if record.headline and record.measured:
            found |= sources_of(record, run.gpus_of(record))
    for name, place in found.items():
        yield from _folded(f"{name}: {place}", glyphs, width, "  ", "    ", whole_words=False)


def _meanwhile(run: BenchRun, glyphs: Glyphs, width: int) -> Iterator[str]:
    """Clocks, power, heat and what held the clocks down, of each GPU over all benchmarks."""
    uses = [use for record in run.benchmarks for use in record.dev]
    for position in sorted({use.gpu for use in uses}):
        mine = [use for use in uses if use.gpu == position]
        parts = [
            _span("clock", [use.sm_mhz for use in mine], "MHz"),
            _span("power", [use.power_w for use in mine], "W"),
            _span("temperature", [use.temperature_c for use in mine], "°C"),
        ]
        reasons = dict.fromkeys(reason for use in mine for reason in use.reasons)
        known = [part for part in parts if part]
        if known:
            held = f"held down by {', '.join(reasons)}" if reasons else "nothing held its clocks down"
            text = f"GPU {position}: {', '.join([*known, held])}"
        else:
            text = f"GPU {position}: not seen: {next((use.unknown for use in mine if use.unknown), 'no samples')}"
        yield from _folded(text, glyphs, width, "  ", "    ")


def _span(name: str, spreads: Sequence[Spread | None], unit: str) -> str:
    known = [spread for spread in spreads if spread is not None]
    if not known:
        return ""
    low, high = min(each.low for each in known), max(each.high for each in known)
    return f"{name} {low:.0f} {unit}" if low == high else f"{name} {low:.0f}–{high:.0f} {unit}"


def _claims(run: BenchRun, glyphs: Glyphs, width: int) -> Iterator[str]:
    """What is read and what it is here side by side, and below each what was compared."""
    if not run.claims:
        return
    columns = (Column("  CLAIM"), Column("READ"), Column("HERE", align="right"), Column(""))
    rows = [
        (f"  {claim.title}", claim.claimed, claim.shown, claim.answer if claim.answer in _ANSWERS else "")
        for claim in run.claims
    ]
    lines = glyphs.text(table(columns, rows, width=width)).splitlines()
    if len(lines) != len(rows) + 1:  # below each other
        yield from lines
        for claim in run.claims:
            yield from _folded(f"{claim.title}: {claim.why}", glyphs, width, "  ", "    ")
        return
    yield lines[0]
    for claim, line in zip(run.claims, lines[1:], strict=True):
        yield line
        yield from _folded(claim.why, glyphs, width, "    ", "    ")
