"""A run of benchmarks in full: what limits the box, the results with bars, why each has its grade, claims and facts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.cells import cell_len

from gpuconsole.core.text import duration
from gpuconsole.probes import benchtold
from gpuconsole.probes.benchrecords import BenchLevel, BenchRecord, BenchRun, Rule
from gpuconsole.probes.benchresults import BenchResult
from gpuconsole.probes.benchwords import percent, scored
from gpuconsole.services.benchassembly import record_of
from gpuconsole.services.benchruns import sentence
from gpuconsole.services.probelive import Live
from gpuconsole.tui.present.cell import Cell, Tone
from gpuconsole.tui.present.details import Line, wrapped
from gpuconsole.tui.present.gpu import bar
from gpuconsole.tui.theme import Glyphs
from gpuconsole.tui.widgets.grid import fitted

_TONES: dict[BenchLevel, Tone] = {
    BenchLevel.OK: "ok",
    BenchLevel.LOW: "watch",
    BenchLevel.BAD: "critical",
    BenchLevel.NOISY: "watch",
    BenchLevel.NO_REFERENCE: "",
    BenchLevel.SKIPPED: "dim",
    BenchLevel.TIMEOUT: "watch",
    BenchLevel.ERROR: "critical",
    BenchLevel.WRONG: "critical",
}
_WORDS = {BenchLevel.NO_REFERENCE: "no ref."}
_OF: dict[Rule, str] = {
    Rule.SIBLINGS: "siblings",
    Rule.HISTORY: "history",
    Rule.REFERENCE: "reference",
    Rule.DATASHEET: "datasheet",
}
_HEALTHY = {
    "bench.attn": "own mm", "bench.train": "own mm", "bench.conv": "own mm", "bench.h2d": "PCIe link",
    "bench.soak": "its start", "bench.ddp": "linear",
}  # fmt: skip
"""Of what the share is that the rule of thumb of a benchmark speaks of."""
_ANSWERS = {"more": "more", "less": "less", "unclear": "unclear", "as-claimed": "as claimed"}
_ROOMY = 110
"""Cells from which the shares of datasheet and clock have columns of their own."""


def spelt(text: str, glyphs: Glyphs) -> str:
    """``text`` for a terminal without other signs than ASCII: a cube that loses its exponent is another number."""
    return text.replace("³", "^3") if glyphs.ellipsis.isascii() else text


def glyph_of(level: BenchLevel, glyphs: Glyphs) -> str:
    """The sign of a grade; each has a word beside it too."""
    signs = {
        BenchLevel.OK: glyphs.ok,
        BenchLevel.LOW: glyphs.risk,
        BenchLevel.NOISY: glyphs.watch,
        BenchLevel.TIMEOUT: glyphs.watch,
        BenchLevel.NO_REFERENCE: glyphs.idle,
        BenchLevel.SKIPPED: glyphs.idle,
    }
    return signs.get(level, glyphs.critical)


def grade_cell(record: BenchRecord, glyphs: Glyphs) -> Cell:
    """The grade, a sign and a word; of what others disturbed that."""
    level = record.verdict.level
    word = "disturbed" if level is BenchLevel.NOISY and record.contended else _WORDS.get(level, level.value)
    return Cell(f"{glyph_of(level, glyphs)} {word}", _TONES[level])


def share_of(record: BenchRecord) -> tuple[float | None, str]:
    """The share that decided the grade, and of what it is one; where nothing decided it, that of the datasheet."""
    verdict = record.verdict
    decided = next((each for each in verdict.judgements if each.rule is verdict.rule), None)
    if decided is not None and decided.share is not None:
        return decided.share, _OF.get(decided.rule) or _HEALTHY.get(record.id, decided.rule.value)
    share = record.share
    for value, of in (
        (share.siblings, "siblings"), (share.history, "history"), (share.reference, "reference"),
        (share.datasheet, "datasheet"),
    ):  # fmt: skip
        if value is not None:
            return value, of
    return None, ""


def table(records: Sequence[BenchRecord], glyphs: Glyphs, *, width: int, graded: bool = True) -> list[Line]:
    """Title and a row for each result: sign and grade, what, score, a bar of the share and of what it is one."""
    roomy = width >= _ROOMY
    grades = [grade_cell(record, glyphs) if graded else Cell(glyphs.idle, "dim") for record in records]
    scores = [scored(record) if record.measured else "–" for record in records]
    shares = [share_of(record) for record in records]
    beside: list[list[str]] = [[], []]
    if roomy:
        beside[0] = [percent(record.share.datasheet) for record in records]
        beside[1] = [percent(record.share.at_clock) for record in records]
    grade_room = max([cell_len(cell.text) for cell in grades], default=0)
    score_room = max([5, *map(cell_len, scores)])
    bar_room = 12 if roomy else 6
    of_room = max([0, *(cell_len(of) for share, of in shares if share is not None)])
    share_room = bar_room + 6 + of_room + 1 if of_room else 0
    extra = [(title, values) for title, values in zip(("DATASHEET", "AT CLOCK"), beside, strict=True) if any(values)]
    used = grade_room + 1 + score_room + 1 + share_room + sum(len(title) + 2 for title, _ in extra) + 3
    names = [spelt(benchtold.name_of(record), glyphs) for record in records]
    name_room = max(12, min(width - used, max([9, *map(cell_len, names)])))
    head = (
        f" {fitted('GRADE' if graded else '', grade_room)}  {fitted('BENCHMARK', name_room)} "
        f"{fitted('SCORE', score_room, 'right')} "
        f"{fitted('SHARE', share_room) if share_room else ''}{''.join(f'  {title}' for title, _ in extra)}"
    )
    lines: list[Line] = [(Cell(head.rstrip(), "dim"),)]
    for place, record in enumerate(records):
        quiet = not record.measured
        share, of = shares[place]
        row = [
            Cell(" "),
            Cell(fitted(grades[place].text, grade_room), grades[place].tone),
            Cell("  " + fitted(names[place], name_room), "dim" if quiet else "strong" if record.headline else ""),
            Cell(" " + fitted(scores[place], score_room, "right") + " ", "dim" if quiet else "strong"),
        ]
        if share is not None and not quiet:
            tone = _TONES[record.verdict.level] if record.verdict.level is not BenchLevel.NO_REFERENCE else "info"
            row += [
                Cell(bar(share, bar_room, glyphs), tone),
                Cell(f" {percent(share):>5}"),
                Cell(" " + fitted(of, of_room), "dim"),
            ]
        elif extra:
            row.append(Cell(" " * share_room))
        row += [Cell(f"  {fitted(values[place], len(title), 'right')}", "dim") for title, values in extra]
        lines.append(tuple(row))
    return lines


def ended(run: BenchRun, glyphs: Glyphs, *, width: int) -> list[Line]:
    """All of a run that is over, what limits the box first."""
    records = benchtold.shown(run)
    lines = [_indented(part, "strong", 1) for part in wrapped(sentence(run), width - 2)]
    if run.obstacle is not None and run.obstacle.fix:
        lines += [_indented(part, "accent", 1) for part in wrapped(f"→ {run.obstacle.fix}", width - 2)]
    if run.headline is not None:
        lines += _flowed((f"because {each}" for each in dict.fromkeys(run.headline.because)), width, "dim")
    lines += [_indented(part, "dim", 1) for part in wrapped(" · ".join(benchtold.heading(run)), width - 2)]
    if records:
        lines += [(), *table(records, glyphs, width=width)]
    lines += _part("Why", _reasons(records, run, glyphs, width))
    lines += _part("What people read, and what it is here", _claims(run, width))
    lines += _part("Meanwhile", _flowed(benchtold.meanwhile(run), width, ""))
    told = (f"{name}: {place}" for name, place in benchtold.sources(records, run).items())
    lines += _part("Sources", _flowed(told, width, "dim"))
    return lines


def _part(title: str, lines: Sequence[Line]) -> list[Line]:
    return [(), (Cell(f" {title}", "accent"),), *lines] if lines else []


def _indented(text: str, tone: Tone, cells: int) -> Line:
    return (Cell(" " * cells), Cell(text, tone))


def _flowed(texts: Iterable[str], width: int, tone: Tone) -> list[Line]:
    """Each text in as many rows as it needs, further rows indented."""
    lines: list[Line] = []
    for text in texts:
        for place, part in enumerate(wrapped(text, max(8, width - 6))):
            lines.append(_indented(part, tone, 4 if place else 2))
    return lines


def _reasons(records: Sequence[BenchRecord], run: BenchRun, glyphs: Glyphs, width: int) -> list[Line]:
    """All that decided grades; below what went wrong what to do."""
    lines: list[Line] = []
    for reason in _together(benchtold.reasons(records, run)):
        parts = wrapped(spelt(f"{reason.name}: {reason.words}", glyphs), max(8, width - 6))
        tone = _TONES[reason.level] if reason.level in (BenchLevel.BAD, BenchLevel.LOW, BenchLevel.ERROR,
                                                       BenchLevel.WRONG, BenchLevel.TIMEOUT) else ""  # fmt: skip
        for place, part in enumerate(parts):
            lines.append(_indented(part, tone, 4 if place else 2))
        if reason.fix:
            lines += [_indented(part, "accent", 4) for part in wrapped(f"→ {reason.fix}", max(8, width - 6))]
    return lines


def _together(reasons: Iterable[benchtold.Reason]) -> list[benchtold.Reason]:
    """Those that say the same as one: often a single thing keeps everything from being measured."""
    found: dict[tuple[str, str, BenchLevel], list[str]] = {}
    for reason in reasons:
        found.setdefault((reason.words, reason.fix, reason.level), []).append(reason.name)
    return [benchtold.Reason(", ".join(names), *said) for said, names in found.items()]


def _claims(run: BenchRun, width: int) -> list[Line]:
    """Each claim, what is read, what it is here, and what was compared."""
    if not run.claims:
        return []
    room = min(max(len(claim.title) for claim in run.claims), max(12, width - 36))
    read = max(4, *(len(claim.claimed) for claim in run.claims))
    here = max(4, *(len(claim.shown) for claim in run.claims))
    lines: list[Line] = [
        (Cell(f"  {fitted('CLAIM', room)}  {fitted('READ', read)}  {fitted('HERE', here, 'right')}", "dim"),)
    ]
    for claim in run.claims:
        known = claim.measured is not None
        answer = _ANSWERS.get(claim.answer, "")
        tone: Tone = "watch" if claim.answer in ("less", "unclear") else "ok" if answer else "dim"
        lines.append(
            (
                Cell(f"  {fitted(claim.title, room)}  {fitted(claim.claimed, read)}  "),
                Cell(fitted(claim.shown, here, "right"), "strong" if known else "dim"),
                Cell(f"  {answer}", tone),
            )
        )
        lines += [_indented(part, "dim", 4) for part in wrapped(claim.why, max(8, width - 6))]
    return lines


def going(live: Live, glyphs: Glyphs, *, now: float, width: int, progress: float | None) -> list[Line]:
    """A run under way: where it is, and what it has measured until now, which is graded at its end."""
    left = live.left_s(now)
    share = progress or 0.0
    parts = [
        Cell(" ["),
        Cell(bar(share, 20, glyphs), "info"),
        Cell(f"] {share:4.0%}", "strong"),
        Cell(f"  {len(live.done)} of {len(live.plan)} done" if live.plan else "  it begins", ""),
        Cell("" if left is None else f", about {duration(left)} left", "strong"),
    ]
    lines: list[Line] = [tuple(parts), _plan_line(live, width)]
    if live.at and live.at not in live.done:
        step = f" {live.step}/{live.of}" if live.of else ""
        text = f"{live.at.removeprefix('bench.')}{step}: {live.text}"
        lines += [_indented(part, "info", 1) for part in wrapped(text, width - 2)]
    found = _so_far(live.benchmarks)
    if found:
        lines += [(), *table(found, glyphs, width=width, graded=False)]
        lines += [(), _indented("Grades, shares and the headline come at the end.", "dim", 1)]
    return lines


def _plan_line(live: Live, width: int) -> Line:
    """The plan in its order: what is over, what runs, what comes."""
    cells: list[Cell] = [Cell(" ")]
    used = 1
    for slug in live.plan:
        name = slug.removeprefix("bench.")
        tone: Tone = "ok" if slug in live.done else "info" if slug == live.at else "dim"
        text = f"{'[' if tone == 'info' else ''}{name}{']' if tone == 'info' else ''} "
        if used + len(text) > width - 2:
            cells.append(Cell("…", "dim"))
            break
        cells.append(Cell(text, tone))
        used += len(text)
    return tuple(cells)


def _so_far(results: Sequence[BenchResult]) -> tuple[BenchRecord, ...]:
    """What was told until now as rows; a benchmark that was skipped says so at the end."""
    records = [record_of(result) for result in results]
    first = {record.id: place for place, record in reversed(list(enumerate(records)))}
    told = [record for record in records if record.measured]
    return tuple(sorted(told, key=lambda record: (first[record.id], not record.headline)))
