"""Benchmark results as text: a table with bars, the rule behind each grade, and claims beside this machine's ratios."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpuconsole.cli.glyphs import Glyphs
from gpuconsole.cli.output import paint
from gpuconsole.cli.tables import Column, table, wrapped
from gpuconsole.probes import benchtold
from gpuconsole.probes.benchrecords import BenchLevel, BenchRecord, BenchRun
from gpuconsole.probes.benchwords import percent, scored

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
_ANSWERS = ("more", "less", "unclear")


def report_lines(run: BenchRun, glyphs: Glyphs, *, width: int) -> Iterator[str]:
    """A whole run, in lines of ``width`` cells."""
    yield from _folded(" · ".join(benchtold.heading(run)), glyphs, width)
    shown = benchtold.shown(run)
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
    share = record.share.datasheet
    cells = [GLYPHS[level][0 if glyphs.unicode else 1], benchtold.name_of(record), scored(record)]
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
    for reason in benchtold.reasons(records, run):
        yield from _folded(f"{reason.name}: {reason.words}", glyphs, width, "  ", "    ")
        if reason.fix:
            yield from _folded(reason.fix, glyphs, width, "    → ", "      ")


def _sources(records: Sequence[BenchRecord], run: BenchRun, glyphs: Glyphs, width: int) -> Iterator[str]:
    """Where the figures are from that benchmarks' own scores were compared with."""
    for name, place in benchtold.sources(records, run).items():
        yield from _folded(f"{name}: {place}", glyphs, width, "  ", "    ", whole_words=False)


def _meanwhile(run: BenchRun, glyphs: Glyphs, width: int) -> Iterator[str]:
    """Clocks, power, heat and what held the clocks down, of each GPU over all benchmarks."""
    for text in benchtold.meanwhile(run):
        yield from _folded(text, glyphs, width, "  ", "    ")


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
