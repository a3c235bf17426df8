"""A run in full: of a check every check with its reason and remedy."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rich.cells import set_cell_size

from gpuconsole.core.text import duration, plain_line
from gpuconsole.services.runs import Run, RunKind, RunState
from gpuconsole.tui.keymap import USUAL, Keymap
from gpuconsole.tui.present.cell import Cell, Tone
from gpuconsole.tui.present.details import Field, Line, field
from gpuconsole.tui.present.gpu import bar
from gpuconsole.tui.theme import Glyphs

_BAR = 20
_NAME = 18
_TONES: dict[RunState, Tone] = {
    RunState.RUNNING: "info",
    RunState.OK: "ok",
    RunState.WARN: "watch",
    RunState.FAILED: "critical",
    RunState.CANCELLED: "dim",
}


@dataclass(frozen=True, slots=True)
class Check:
    """One check as the report tells it."""

    name: str
    status: str
    why: str
    fix: str = ""
    seconds: float | None = None


def checks_in(run: Run) -> tuple[Check, ...]:
    """The checks in a run's report; none when there is no report, or it is not to be read."""
    found = _report(run).get("checks")
    if not isinstance(found, list):
        return ()
    return tuple(_check(each) for each in found if isinstance(each, dict))


def _report(run: Run) -> Mapping[str, Any]:
    try:
        report = json.loads(run.document or "{}")
    except ValueError:
        return {}
    return report if isinstance(report, dict) else {}


def _check(given: Mapping[str, Any]) -> Check:
    seconds = given.get("seconds")
    return Check(
        name=_text(given, "id").removeprefix("check."),
        status=_text(given, "status"),
        why=_text(given, "why"),
        fix=_text(given, "fix"),
        seconds=seconds if isinstance(seconds, int | float) else None,
    )


def _text(given: Mapping[str, Any], name: str) -> str:
    value = given.get(name)
    return "" if value is None else plain_line(str(value))


def fields(run: Run, *, now: float, glyphs: Glyphs, keys: Keymap = USUAL) -> tuple[Field, ...]:
    """Everything known of a run."""
    took = duration((run.ended_at or now) - run.started_at)
    state: Line = (Cell(run.state.value, _TONES[run.state]),)
    if run.progress is not None:
        state = (*state, Cell(f"  {bar(run.progress, _BAR, glyphs)} {run.progress:.0%}", "info"))
    return (
        Field("state", (state,)),
        field("", run.headline),
        field("of", run.subject),
        field("", Cell(run.subject_id, "dim")),
        field("began", f"{duration(now - run.started_at)} ago, {'took' if run.ended else 'for'} {took}"),
        *(_check_fields(run, glyphs, keys) if run.kind is RunKind.CHECK else ()),
    )


def _check_fields(run: Run, glyphs: Glyphs, keys: Keymap) -> tuple[Field, ...]:
    environment = _report(run).get("environment")
    checks = checks_in(run)
    if not checks:
        words = f"the report comes at the end; {keys.name('run.cancel')} ends the check"
        words = "there is no report of this run" if run.ended else words
        return (field("checks", Cell(words, "dim")),)
    lines = [line for check in checks for line in _check_lines(check, glyphs)]
    return (
        *(_environment(environment) if isinstance(environment, dict) else ()),
        Field("checks", tuple(lines)),
    )


def _environment(given: Mapping[str, Any]) -> tuple[Field, ...]:
    names = {"torch": "torch", "torch_cuda": "CUDA", "cudnn": "cuDNN", "driver": "driver", "python": "Python"}
    versions = " · ".join(f"{word} {_text(given, name)}" for name, word in names.items() if _text(given, name))
    gpus = given.get("gpus")
    seen = [each for each in gpus if isinstance(each, dict)] if isinstance(gpus, list) else []
    return (
        field("inside", versions),
        field(
            "GPUs seen", *(f"{_text(each, 'position')}  {_text(each, 'name')}  {_text(each, 'uuid')}" for each in seen)
        ),
    )


def _check_lines(check: Check, glyphs: Glyphs) -> list[Line]:
    """A glyph and a word, the check, why; below it what to do."""
    signs: dict[str, tuple[str, Tone]] = {
        "ok": (glyphs.ok, "ok"),
        "warn": (glyphs.watch, "watch"),
        "fail": (glyphs.critical, "critical"),
        "skip": (glyphs.idle, "dim"),
    }
    glyph, tone = signs.get(check.status, (glyphs.unknown, "dim"))
    head = Cell(f"{glyph} {check.status:<4} ", tone)
    name = Cell(set_cell_size(check.name, _NAME) + " ", "dim" if check.status in ("ok", "skip") else "strong")
    lines: list[Line] = [(head, name, Cell(check.why, "dim" if check.status == "skip" else ""))]
    if check.fix:
        lines.append((Cell("       "), Cell(f"→ {check.fix}", "accent")))
    return lines
