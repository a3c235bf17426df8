"""A run in full: of a check every check with its reason and remedy."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rich.cells import set_cell_size

from gpuconsole.core.text import duration, plain_line
from gpuconsole.services.buildmeter import BuildState
from gpuconsole.services.pulling import PullState
from gpuconsole.services.runs import Run, RunKind, RunState
from gpuconsole.tui.keymap import USUAL, Keymap
from gpuconsole.tui.present.benchbrief import fields as bench_fields
from gpuconsole.tui.present.cell import Cell, Tone
from gpuconsole.tui.present.details import Field, Line, field
from gpuconsole.tui.present.gpu import bar
from gpuconsole.tui.present.layers import layer_line, layer_order
from gpuconsole.tui.theme import Glyphs

_BAR = 20
_LOG = 60
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


def fields(
    run: Run,
    *,
    now: float,
    glyphs: Glyphs,
    keys: Keymap = USUAL,
    pull: PullState | None = None,
    build: BuildState | None = None,
    width: int = 80,
) -> tuple[Field, ...]:
    """Everything known of a run.

    Args:
        run: The run.
        now: Seconds since the epoch.
        glyphs: The signs to draw with.
        keys: What the keys are.
        pull: Of a pull of this console, how far it is or was.
        build: Of a build of this console that is under way, how far it is.
        width: Cells there are for all of it.
    """
    took = duration((run.ended_at or now) - run.started_at)
    state: Line = (Cell(run.state.value, _TONES[run.state]),)
    if run.progress is not None:
        state = (*state, Cell(f"  {bar(run.progress, _BAR, glyphs)} {run.progress:.0%}", "info"))
    return (
        Field("state", (state,)),
        *_told(run),
        field("of", run.subject),
        field("", Cell(run.subject_id, "dim")),
        field("began", f"{duration(now - run.started_at)} ago, {'took' if run.ended else 'for'} {took}"),
        *(_check_fields(run, glyphs, keys) if run.kind is RunKind.CHECK else ()),
        *(bench_fields(run, glyphs, keys) if run.kind is RunKind.BENCH else ()),
        *(_pull_fields(run, pull, glyphs, keys, width) if run.kind is RunKind.PULL else ()),
        *(_build_fields(run, build, glyphs, keys, width) if run.kind is RunKind.BUILD else ()),
    )


def _told(run: Run) -> tuple[Field, ...]:
    """How it went; what to do about it stands below, where the report tells them apart."""
    report = _report(run)
    if run.state is RunState.FAILED and _text(report, "message"):
        return (field("", _text(report, "message")), field("what to do", Cell(_text(report, "hint"), "accent")))
    return (field("", run.headline),)


def _pull_fields(run: Run, pull: PullState | None, glyphs: Glyphs, keys: Keymap, width: int) -> tuple[Field, ...]:
    report = _report(run)
    digest = field("digest", _text(report, "digest"))
    if run.ended:
        again = f"{keys.name('image.pull')} pulls it again; layers that were complete are kept"
        return (digest,) if run.state is RunState.OK else (field("again", Cell(again, "dim")),)
    return _layers(pull, glyphs, keys, width)


def _layers(pull: PullState | None, glyphs: Glyphs, keys: Keymap, width: int) -> tuple[Field, ...]:
    if pull is None or not pull.each:
        return (field("layers", Cell(f"none told yet; {keys.name('run.cancel')} cancels it", "dim")),)
    lines = [layer_line(layer, glyphs, width - 14) for layer in sorted(pull.each, key=layer_order)]
    return (Field("layers", tuple(lines)), field("", Cell(f"{keys.name('run.cancel')} cancels it", "dim")))


def _build_fields(run: Run, build: BuildState | None, glyphs: Glyphs, keys: Keymap, width: int) -> tuple[Field, ...]:
    report = _report(run)
    log = report.get("log")
    written = [plain_line(str(line)) for line in log][-_LOG:] if isinstance(log, list) else []
    versions = " · ".join(f"{name} {_text(report, name)}" for name in ("torch", "cuda") if _text(report, name))
    told = (field("inside", versions), field("base", _text(report, "base")))
    if run.ended:
        return (*told, field("log", *(Cell(line, "dim") for line in written)))
    if build is not None and build.pull is not None:
        return (field("base", "it is being pulled"), *_layers(build.pull, glyphs, keys, width))
    doing = f"{build.step}/{build.steps}  {build.words}" if build is not None and build.step else "it begins"
    said = (build.line, build.download) if build is not None else ()
    lines = [*(plain_line(line) for line in said if line), f"{keys.name('run.cancel')} cancels it"]
    return (field("step", doing), field("", *(Cell(line, "dim") for line in lines)))


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
