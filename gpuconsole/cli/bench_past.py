"""The past of benchmarks as text: history, two runs beside each other, and what is about to be given away."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gpuconsole.cli.glyphs import glyphs_of_stdout
from gpuconsole.cli.output import data, paint, paragraph, talk, terminal_width
from gpuconsole.cli.tables import Column, table
from gpuconsole.core.document import text_of
from gpuconsole.gpu.names import short_name
from gpuconsole.probes.benchcompare import Change, Comparison, Row
from gpuconsole.probes.benchkeys import Likeness
from gpuconsole.probes.benchrecords import BenchLevel, BenchRun, Origin
from gpuconsole.probes.benchwords import figure, unit_of
from gpuconsole.services.benchhistory import Past

_CHANGES = {Change.SAME: "=", Change.FASTER: "▴", Change.SLOWER: "▾", Change.UNKNOWN: " "}
_PLAIN_CHANGES = {Change.SAME: "=", Change.FASTER: "^", Change.SLOWER: "v", Change.UNKNOWN: " "}
_BAR = 8
_ROOMY = 100
"""Columns from which there is room for bars and years."""


def when(seconds: float) -> str:
    """A moment, of this machine's clock: ``2026-11-30 11:42``."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


def print_history(found: Sequence[Past]) -> None:
    """A row for each result; bars compare those of the same benchmark, parameters and GPUs."""
    glyphs = glyphs_of_stdout()
    best = _best(found)
    roomy = terminal_width(_ROOMY) >= _ROOMY
    columns = (
        Column("WHEN"),
        Column("RUN"),
        Column("BENCHMARK", flexible=True),
        Column("ON", flexible=True),
        Column("SCORE", align="right"),
        *((Column(""),) if roomy else ()),
        Column("CHANGE", align="right"),
        Column("NOTE", flexible=True),
    )
    rows = []
    for past in found:
        share = _speed(past) / best[_kind(past)] if best[_kind(past)] else None
        moment = when(past.taken_at)
        cells = (
            moment if roomy else moment.partition("-")[2],
            past.run,
            f"{past.code} {past.id.removeprefix('bench.')} {past.what}".rstrip(),
            _names(past.gpus),
            f"{figure(past.score)} {unit_of(past.unit)}".rstrip(),
            *((glyphs.bar(share, _BAR),) if roomy else ()),
            "" if past.change is None else f"{past.change * 100:+.1f} %",
            ", ".join(_notes(past)),
        )
        rows.append(cells)
    for line in glyphs.text(table(columns, rows)).splitlines():
        data(line)


def _best(found: Sequence[Past]) -> dict[tuple[object, ...], float]:
    """The most of each kind of result, by which the others' bars are drawn."""
    best: dict[tuple[object, ...], float] = {}
    for past in found:
        best[_kind(past)] = max(best.get(_kind(past), 0.0), _speed(past))
    return best


def _speed(past: Past) -> float:
    """The score, or what is the more the shorter a time was."""
    if not past.score:
        return 0.0
    return past.score if past.better == "higher" else 1 / past.score


def _kind(past: Past) -> tuple[object, ...]:
    return past.id, past.what, past.unit, past.gpus


def _names(names: Sequence[str]) -> str:
    short = [short_name(name) for name in names]
    return ", ".join(
        f"{short.count(name)} × {name}" if short.count(name) > 1 else name for name in dict.fromkeys(short)
    )


def _notes(past: Past) -> Iterator[str]:
    if past.origin is Origin.IMPORTED:
        yield "imported"
    if past.contended:
        yield "others used the GPU"
    if past.noisy:
        yield "noisy"
    if past.partial:
        yield "run cut short"
    if past.level in (BenchLevel.LOW, BenchLevel.BAD):
        yield past.level.value


def print_comparison(found: Comparison, first: BenchRun, second: BenchRun) -> None:
    """The two runs, what else differs between them, and a row for each result."""
    glyphs = glyphs_of_stdout()
    for name, run in (("A", first), ("B", second)):
        data(glyphs.text(f"{name}  {run.run}  {when(run.taken_at)}  {run.mode}  {run.subject}{_marks(run)}"))
    if found.differences:
        data("")
        data("Different beside the results")
        columns = (Column("  "), Column("A", flexible=True), Column("B", flexible=True))
        facts = [(f"  {each.name}", each.first, each.second) for each in found.differences]
        for line in glyphs.text(table(columns, facts)).splitlines()[1:]:
            data(line)
    data("")
    _print_rows(found.rows, unicode=glyphs.unicode)
    data("")
    paragraph(glyphs.text(_summary(found)))


def _marks(run: BenchRun) -> str:
    marks = [*(["imported"] if run.origin is Origin.IMPORTED else []), *(["cut short"] if run.partial else [])]
    return f"  ({', '.join(marks)})" if marks else ""


def _print_rows(rows: Sequence[Row], *, unicode: bool) -> None:
    columns = (
        Column(" "),
        Column("BENCHMARK", flexible=True),
        Column("A", align="right"),
        Column("B", align="right"),
        Column("UNIT"),
        Column("CHANGE", align="right"),
        Column("NOTE", flexible=True),
    )
    glyphs, shown = glyphs_of_stdout(), _CHANGES if unicode else _PLAIN_CHANGES
    cells = [(shown[row.change], *_cells(row)) for row in rows]
    lines = glyphs.text(table(columns, cells)).splitlines()
    side_by_side = len(lines) == len(rows) + 1
    for place, line in enumerate(lines):
        row = rows[place - 1] if side_by_side and place else None
        data(line if row is None else paint(line, _colour(row)))


def _cells(row: Row) -> tuple[str, ...]:
    name = f"{row.code} {row.id.removeprefix('bench.')} {row.what}".rstrip()
    return name, figure(row.first), figure(row.second), unit_of(row.unit), _change(row), _note(row)


def _colour(row: Row) -> str:
    if row.change is Change.UNKNOWN:
        return "bright_black"
    return {Change.FASTER: "green", Change.SLOWER: "red"}.get(row.change, "")


def _change(row: Row) -> str:
    return "" if row.ratio is None else f"{(row.ratio - 1) * 100:+.1f} %"


def _note(row: Row) -> str:
    if row.why:
        return row.why
    return "other software" if row.likeness is Likeness.HARDWARE else ""


def _summary(found: Comparison) -> str:
    compared = [row for row in found.rows if row.change is not Change.UNKNOWN]
    if not compared:
        return "No result of one run can be compared with one of the other: the notes say why."
    counts = {change: sum(row.change is change for row in compared) for change in Change}
    parts = [f"{counts[change]} {word}" for change, word in _WORDS.items() if counts[change]]
    left = len(found.rows) - len(compared)
    return f"Of {len(compared)} results {', '.join(parts)}" + (f"; {left} cannot be compared." if left else ".")


_WORDS = {Change.SLOWER: "are slower", Change.FASTER: "are faster", Change.SAME: "are the same within their spread"}


def print_shared(body: Mapping[str, Any]) -> None:
    """Tell the person what is about to be given away: all of the machine, and the number of figures."""
    talk("This is all that the file says of the machine:")
    machine = {name: body[name] for name in ("environment", "machine", "subject", "taken_at", "mode")}
    for line in text_of(machine).splitlines():
        talk(f"  {line}")
    benchmarks = body["benchmarks"]
    talk(f"With it go {len(benchmarks)} results of {len({each['id'] for each in benchmarks})} benchmarks.")
