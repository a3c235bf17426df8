"""A benchmark in a few lines, of what the list of runs remembers: beside its container or image, and in the pane."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rich.cells import set_cell_size

from gpuconsole.core.text import duration, plain_line
from gpuconsole.services.runs import Run, RunKind
from gpuconsole.tui.keymap import USUAL, Keymap
from gpuconsole.tui.present.cell import Cell, Tone
from gpuconsole.tui.present.container import check_cell
from gpuconsole.tui.present.details import Field, Line, field
from gpuconsole.tui.theme import Glyphs

_TOLD = ("low", "bad", "wrong", "error", "timeout")
_TONES: dict[str, Tone] = {
    "ok": "ok", "low": "watch", "bad": "critical", "noisy": "watch", "wrong": "critical", "error": "critical",
    "timeout": "watch",
}  # fmt: skip


def scores_in(run: Run) -> tuple[Mapping[str, Any], ...]:
    """The headline score of each benchmark, as the summary of a run has them; none when it is not to be read."""
    try:
        summary = json.loads(run.document or "{}")
    except ValueError:
        return ()
    found = summary.get("benchmarks") if isinstance(summary, dict) else None
    return tuple(each for each in found if isinstance(each, dict)) if isinstance(found, list) else ()


def _text(given: Mapping[str, Any], name: str) -> str:
    value = given.get(name)
    return "" if value is None else plain_line(str(value))


def _number(given: Mapping[str, Any], name: str) -> float | None:
    value = given.get(name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _score_line(given: Mapping[str, Any], glyphs: Glyphs) -> Line:
    from gpuconsole.probes.benchrecords import BenchLevel
    from gpuconsole.probes.benchwords import figure, named, percent, unit_of
    from gpuconsole.tui.present.bench import glyph_of, spelt

    level = _text(given, "level")
    known = level in set(BenchLevel)
    sign = glyph_of(BenchLevel(level), glyphs) if known else glyphs.unknown
    word = "no ref." if level == "no-reference" else level
    name = f"{_text(given, 'code')} {named(_text(given, 'id'), _text(given, 'what'))}".strip()
    name = spelt(name, glyphs)
    score = _number(given, "score")
    told = f"{figure(score)} {unit_of(_text(given, 'unit'))}".rstrip() if score is not None else "–"
    share = percent(_number(given, "datasheet"))
    return (
        Cell(f"{sign} {word:<8}", _TONES.get(level, "dim")),
        Cell(set_cell_size(name, 24) + " ", "dim" if score is None else ""),
        Cell(f"{told:>16}", "dim" if score is None else "strong"),
        Cell(f"  {share} of datasheet" if share else "", "dim"),
    )


def fields(run: Run, glyphs: Glyphs, keys: Keymap = USUAL) -> tuple[Field, ...]:
    """The headline scores of a run; while it runs what ends it."""
    if not run.ended:
        return (field("", Cell(f"the results come one by one; {keys.name('run.cancel')} ends it", "dim")),)
    scores = scores_in(run)
    if not scores:
        return (field("benchmarks", Cell("nothing was measured", "dim")),)
    lines: list[Line] = []
    told: set[str] = set()
    for each in scores:
        lines.append(_score_line(each, glyphs))
        words = _text(each, "words")
        if _text(each, "level") in _TOLD and words and words not in told:
            told.add(words)
            lines.append((Cell("  "), Cell(words, "dim")))
    return (Field("benchmarks", tuple(lines)),)


def bench_field(
    runs: Sequence[Run], subject_id: str, *, now: float, glyphs: Glyphs, keys: Keymap = USUAL, action: str
) -> Field:
    """The benchmark under way and the last one that ended, with what was low; ``action`` is what measures it."""
    from gpuconsole.probes.benchwords import named

    mine = [run for run in runs if run.subject_id == subject_id and run.kind is RunKind.BENCH]
    lines: list[Line] = []
    for run in [run for run in mine if not run.ended][:1]:
        share = "" if run.progress is None else f" {run.progress:.0%}"
        lines.append((Cell(f"runs{share}  ", "info"), Cell(run.headline)))
    ended = [run for run in mine if run.ended]
    measured = [run for run in ended if any(_number(each, "score") is not None for each in scores_in(run))]
    for run in (measured or ended)[:1]:  # one that was cancelled before its turn says nothing of the container
        verdict = check_cell(run, glyphs)
        lines.append((Cell(f"{verdict.text}  ", verdict.tone), Cell(run.headline)))
        lines.append((Cell(f"{duration(now - (run.ended_at or run.started_at))} ago", "dim"),))
        for each in scores_in(run):
            if (level := _text(each, "level")) in _TOLD:
                name = named(_text(each, "id"), _text(each, "what"))
                lines.append((Cell(f"{level} ", _TONES[level]), Cell(f"{name}: {_text(each, 'words')}")))
    return Field("bench", tuple(lines) or ((Cell(f"not measured yet; {keys.name(action)} measures it", "dim"),),))
