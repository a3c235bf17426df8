"""Benchmarks of the past: two runs beside each other, and how the headlines of a GPU changed over time."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from rich.cells import cell_len

from gpuconsole.gpu.names import short_name
from gpuconsole.probes.benchcompare import LEAST_CHANGE, Change, Comparison, Row, compare
from gpuconsole.probes.benchkeys import Likeness, result_key
from gpuconsole.probes.benchrecords import BenchLevel, BenchRun, Origin
from gpuconsole.probes.benchwords import figure, named, unit_of
from gpuconsole.services.benchhistory import Past
from gpuconsole.tui.present.bench import spelt
from gpuconsole.tui.present.cell import Cell, Column, Tone
from gpuconsole.tui.present.cell import Row as GridRow
from gpuconsole.tui.present.details import Field, Line, field, wrapped
from gpuconsole.tui.present.gpu import bar, sparkline
from gpuconsole.tui.present.image import brief_name
from gpuconsole.tui.theme import Glyphs
from gpuconsole.tui.widgets.grid import fitted

_TONES: dict[Change, Tone] = {
    Change.SAME: "",
    Change.FASTER: "ok",
    Change.SLOWER: "critical",
    Change.UNKNOWN: "dim",
}
_SAID = {Change.SAME: "same", Change.FASTER: "faster", Change.SLOWER: "slower", Change.UNKNOWN: "–"}
_COUNTED = {Change.SLOWER: "slower", Change.FASTER: "faster", Change.SAME: "the same within their spread"}
_SPARK = 24


def moment(seconds: float, *, year: bool = True) -> str:
    """A moment, of this machine's clock: ``2026-11-30 11:42``."""
    return time.strftime("%Y-%m-%d %H:%M" if year else "%m-%d %H:%M", time.localtime(seconds))


def _keys(run: BenchRun) -> list[str]:
    """What each measured result of a run may be compared with; those that may be with none are left out."""
    return [key for record in run.benchmarks if record.measured and (key := result_key(record, run)) is not None]


def _alike(run: BenchRun, wanted: Sequence[str]) -> int:
    """How many of the ``wanted`` results were measured the same way on the same hardware in ``run``."""
    there = set(_keys(run))
    return sum(key in there for key in wanted)


def nearest(runs: Sequence[BenchRun], run: BenchRun) -> BenchRun | None:
    """What ``run`` is compared with first: the newest before it that has results it can be compared with.

    Where there is none, the newest that has; where there is none either, the newest before it.
    """
    others = [each for each in sorted(runs, key=lambda each: -each.taken_at) if each.run != run.run]
    before = [each for each in others if each.taken_at <= run.taken_at]
    wanted = _keys(run)
    fits = (each for each in (*before, *others) if _alike(each, wanted))
    return next(fits, next(iter((*before, *others)), None))


# --- two runs beside each other ---


def comparison(first: BenchRun, second: BenchRun, glyphs: Glyphs, *, width: int, everything: bool) -> list[Line]:
    """A, B, their ratio, how far that can be said and why not; below what else is different."""
    found = compare(first, second)
    rows = [row for row in found.rows if everything or row.headline or row.change in (Change.SLOWER, Change.FASTER)]
    lines: list[Line] = [_side("A", first), _side("B", second), ()]
    tone: Tone = "risk" if found.slower else "strong"
    lines += [(Cell(f" {part}", tone),) for part in wrapped(_summary(found), width - 2)]
    lines += [(), *_rows(rows, glyphs, width)]
    left = len(found.rows) - len(rows)
    if left:
        lines += [(), (Cell(f" {left} further results are the same, or cannot be compared.", "dim"),)]
    if found.differences:
        lines += [(), (Cell(" Different beside the results", "accent"),)]
        room = max(len(each.name) for each in found.differences)
        for each in found.differences:
            text = f"{each.first}  {glyphs.pointer}  {each.second}"
            for place, part in enumerate(wrapped(text, max(8, width - room - 5))):
                lines.append((Cell(f"  {fitted('' if place else each.name, room)}  ", "dim"), Cell(part)))
    return lines


PICK_COLUMNS = (
    Column("when", "WHEN", 16),
    Column("run", "RUN", 8, rank=2),
    Column("mode", "MODE", 5, rank=1),
    Column("of", "OF", 12, grow=2),
    Column("on", "ON", 10, grow=1, rank=3),
    Column("alike", "ALIKE", 5, align="right"),
    Column("note", "NOTE", 9, rank=4),
)


def pick_rows(others: Sequence[BenchRun], run: BenchRun) -> tuple[GridRow, ...]:
    """Runs to choose from, each with how many of its results can be compared with ``run``."""
    wanted = _keys(run)
    return tuple(_pick_row(other, _alike(other, wanted)) for other in others)


def _pick_row(other: BenchRun, alike: int) -> GridRow:
    marks = [*(["imported"] if other.origin is Origin.IMPORTED else []), *(["cut short"] if other.partial else [])]
    return GridRow(
        other.run,
        (
            Cell(moment(other.taken_at)),
            Cell(other.run, "dim"),
            Cell(other.mode),
            Cell(brief_name(other.subject), "strong"),
            Cell(_gpus(other)),
            Cell(f"{alike}" if alike else "none", "" if alike else "dim"),
            Cell(", ".join(marks), "watch"),
        ),
    )


def _gpus(run: BenchRun) -> str:
    """``2 × H200``; of what ran without any ``CPU``."""
    gpus = [short_name(gpu.name) for gpu in run.machine.gpus]
    told = (f"{gpus.count(gpu)} × {gpu}" if gpus.count(gpu) > 1 else gpu for gpu in dict.fromkeys(gpus))
    return ", ".join(told) or "CPU"


def _side(name: str, run: BenchRun) -> Line:
    marks = [*(["imported"] if run.origin is Origin.IMPORTED else []), *(["cut short"] if run.partial else [])]
    words = f"{moment(run.taken_at)}  {run.mode}  {run.subject}  {_gpus(run)}"
    return (
        Cell(f" {name}  ", "strong"),
        Cell(f"{run.run}  ", "dim"),
        Cell(words),
        Cell(f"  ({', '.join(marks)})" if marks else "", "watch"),
    )


def _summary(found: Comparison) -> str:
    counts = {change: sum(row.change is change for row in found.rows) for change in Change}
    known = len(found.rows) - counts[Change.UNKNOWN]
    if not known:
        return "No result of B can be compared with one of A: the notes say why."
    parts = [f"{counts[change]} {word}" for change, word in _COUNTED.items() if counts[change]]
    left = f"; {counts[Change.UNKNOWN]} cannot be compared" if counts[Change.UNKNOWN] else ""
    return f"B beside A: of {known} results {', '.join(parts)}{left}."


def _rows(rows: Sequence[Row], glyphs: Glyphs, width: int) -> list[Line]:
    names = [spelt(f"{row.code} {named(row.id, row.what)}", glyphs) for row in rows]
    firsts, seconds = [figure(row.first) for row in rows], [figure(row.second) for row in rows]
    units = [unit_of(row.unit) for row in rows]
    rooms = [max([1, *map(cell_len, column)]) for column in (firsts, seconds, units)]
    used = sum(rooms) + 3 + 8 + 9 + 3
    name_room = max(12, min(max([9, *map(cell_len, names)]), width - used))
    note_room = width - used - name_room - 1
    head = (
        f" {fitted('BENCHMARK', name_room)} {fitted('A', rooms[0], 'right')} {fitted('B', rooms[1], 'right')} "
        f"{fitted('', rooms[2])}   B/A            NOTE"
    )
    lines: list[Line] = [(Cell(head[:width].rstrip(), "dim"),)]
    for place, row in enumerate(rows):
        tone = _TONES[row.change]
        unknown = row.change is Change.UNKNOWN
        ratio = "" if row.ratio is None else f"{row.ratio:.2f}×"
        note = row.why or ("other software" if row.likeness is Likeness.HARDWARE else "")
        cells = [
            Cell(f" {fitted(names[place], name_room)} ", "dim" if unknown else "strong" if row.headline else ""),
            Cell(f"{fitted(firsts[place], rooms[0], 'right')} {fitted(seconds[place], rooms[1], 'right')} "),
            Cell(f"{fitted(units[place], rooms[2])} ", "dim"),
            Cell(f"{ratio:>7}  ", "dim" if unknown else "strong"),
            Cell(f"{_sign(row.change, glyphs)} {_SAID[row.change]:<6}", tone),
        ]
        if note and note_room >= cell_len(note):
            cells.append(Cell(f" {note}", "dim"))
            note = ""
        lines.append(tuple(cells))
        lines += [(Cell(f"     {part}", "dim"),) for part in (wrapped(note, max(8, width - 6)) if note else ())]
    return lines


def _sign(change: Change, glyphs: Glyphs) -> str:
    return {
        Change.SAME: "=",
        Change.FASTER: glyphs.ok,
        Change.SLOWER: glyphs.risk,
        Change.UNKNOWN: glyphs.idle,
    }[change]


# --- over time ---


def _speed(past: Past) -> float:
    """The score, or what is the more the shorter a time was."""
    if not past.score:
        return 0.0
    return past.score if past.better == "higher" else 1 / past.score


def series(found: Iterable[Past]) -> tuple[tuple[Past, ...], ...]:
    """The results of each benchmark of the same parameters and GPUs, the newest first."""
    grouped: dict[tuple[object, ...], list[Past]] = {}
    for past in found:
        grouped.setdefault((past.code, past.id, past.what, past.unit, past.gpus), []).append(past)
    ordered = sorted(grouped.items(), key=lambda item: str(item[0][0]))
    return tuple(tuple(sorted(each, key=lambda past: -past.taken_at)) for _, each in ordered)


def history(found: Sequence[Past], glyphs: Glyphs, *, width: int) -> list[Line]:
    """For each benchmark its headline over time: the newest first, bars against the best, and the change."""
    lines: list[Line] = []
    for each in series(found):
        newest, best = each[0], max(map(_speed, each))
        names = [short_name(name) for name in newest.gpus]
        on = ", ".join(f"{names.count(one)} × {one}" if names.count(one) > 1 else one for one in dict.fromkeys(names))
        title = spelt(f"{newest.code} {named(newest.id, newest.what)}", glyphs)
        spark = sparkline([_speed(past) for past in reversed(each)], min(_SPARK, len(each)), glyphs, top=best or 1.0)
        lines += [(), (Cell(f" {title}", "strong"), Cell(f"  on {on}  ", "dim"), Cell(spark.strip(), "accent"))]
        room = max(cell_len(_scored(past)) for past in each)
        for past in each:
            share = _speed(past) / best if best else None
            change = "" if past.change is None else f"{past.change * 100:+.1f} %"
            beside = "  ".join(filter(None, (", ".join(_notes(past)), brief_name(past.subject))))
            cells = [
                Cell(f"   {moment(past.taken_at, year=width >= 100)}  ", "dim"),
                Cell(f"{fitted(_scored(past), room, 'right')}  "),
                Cell(bar(share, 12 if width >= 100 else 8, glyphs), "info" if _trusted(past) else "dim"),
                Cell(f" {change:>8}  ", _change_tone(past)),
            ]
            used = sum(cell_len(cell.text) for cell in cells)
            lines.append((*cells, Cell(fitted(beside, max(0, width - used - 1)).rstrip(), "dim")))
    return lines[1:]


def _scored(past: Past) -> str:
    return f"{figure(past.score)} {unit_of(past.unit)}".rstrip()


def _change_tone(past: Past) -> Tone:
    if past.change is None or abs(past.change) < LEAST_CHANGE:
        return "dim"
    return "ok" if past.change > 0 else "critical"


def _trusted(past: Past) -> bool:
    return not past.noisy and not past.contended


def _notes(past: Past) -> list[str]:
    words = {
        "imported": past.origin is Origin.IMPORTED,
        "others used the GPU": bool(past.contended),
        "noisy": past.noisy,
        "cut short": past.partial,
        past.level.value: past.level in (BenchLevel.LOW, BenchLevel.BAD),
    }
    return [word for word, holds in words.items() if holds]


def past_field(found: Sequence[Past], glyphs: Glyphs, *, past_key: str, bench_key: str) -> Field:
    """The newest of each headline and how it went over time, for all about a GPU."""
    lines: list[Line] = []
    for each in series(found):
        newest, best = each[0], max(map(_speed, each))
        spark = sparkline([_speed(past) for past in reversed(each)], 12, glyphs, top=best or 1.0).strip()
        words = spelt(f"{newest.code} {named(newest.id, newest.what)}", glyphs)
        change = "" if newest.change is None else f"{newest.change * 100:+.1f} %"
        lines.append(
            (
                Cell(f"{fitted(_scored(newest), 16, 'right')}  ", "strong"),
                Cell(f"{spark:<12} ", "accent"),
                Cell(f"{change:>8}  ", _change_tone(newest)),
                Cell(words),
            )
        )
    if not lines:
        return field("benchmarks", Cell(f"none yet; {bench_key} measures it", "dim"))
    return Field("benchmarks", (*lines, (Cell(f"{past_key} shows them over time", "dim"),)))
