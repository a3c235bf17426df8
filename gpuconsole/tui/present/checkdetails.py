"""A check in full: every check with its state, why, and what to do, those that failed first; live while it runs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.cells import set_cell_size

from gpuconsole.core.text import plain_line
from gpuconsole.services.probelive import Live
from gpuconsole.services.runs import Run
from gpuconsole.tui.keymap import Keymap
from gpuconsole.tui.present.cell import Cell, Tone
from gpuconsole.tui.present.details import Field, Line, field
from gpuconsole.tui.theme import Glyphs

_NAME = 18
_ORDER = ("fail", "warn", "ok", "skip")
_COUNTED = {"fail": "failed", "warn": "warned", "ok": "ok", "skip": "skipped"}


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
    found = report_of(run).get("checks")
    if not isinstance(found, list):
        return ()
    return tuple(_check(each) for each in found if isinstance(each, dict))


def report_of(run: Run) -> Mapping[str, Any]:
    """The report of a run; empty when there is none, or it is not to be read."""
    try:
        report = json.loads(run.document or "{}")
    except ValueError:
        return {}
    return report if isinstance(report, dict) else {}


def _check(given: Mapping[str, Any]) -> Check:
    seconds = given.get("seconds")
    return Check(
        name=text_in(given, "id").removeprefix("check."),
        status=text_in(given, "status"),
        why=text_in(given, "why"),
        fix=text_in(given, "fix"),
        seconds=seconds if isinstance(seconds, int | float) else None,
    )


def text_in(given: Mapping[str, Any], name: str) -> str:
    """A text of a report, on one line; empty when it is not there."""
    value = given.get(name)
    return "" if value is None else plain_line(str(value))


def check_fields(run: Run, glyphs: Glyphs, keys: Keymap, live: Live | None = None) -> tuple[Field, ...]:
    """What the checks of a run told, those that failed first; of one under way what they have told until now."""
    environment = report_of(run).get("environment")
    checks = checks_in(run) or _told_by(live)
    more = _to_come(live) if not run.ended else ()
    if not checks and not more:
        words = f"the report comes at the end; {keys.name('run.cancel')} ends the check"
        words = "there is no report of this run" if run.ended else words
        return (field("checks", Cell(words, "dim")),)
    ordered = sorted(checks, key=lambda check: _ORDER.index(check.status) if check.status in _ORDER else 0)
    lines = [line for check in ordered for line in _check_lines(check, glyphs)]
    if more:
        words = f"{len(more)} to come: {', '.join(more)}; {keys.name('run.cancel')} ends the check"
        lines.append((Cell(f"{glyphs.idle}      "), Cell(words, "dim")))
    return (
        *(_environment(environment) if isinstance(environment, dict) else ()),
        field("in all", _counts(checks)),
        Field("checks", tuple(lines)),
    )


def _told_by(live: Live | None) -> tuple[Check, ...]:
    return () if live is None else tuple(
        Check(each.id.removeprefix("check."), each.status.value, each.why, each.fix, each.seconds)
        for each in live.checks
    )  # fmt: skip


def _to_come(live: Live | None) -> tuple[str, ...]:
    return () if live is None else tuple(
        slug.removeprefix("check.") for slug in live.plan if slug not in live.done and slug != live.at
    )  # fmt: skip


def _counts(checks: Sequence[Check]) -> str:
    """``1 failed, 2 warned, 20 ok, 2 skipped``."""
    counts = {status: sum(check.status == status for check in checks) for status in _ORDER}
    return ", ".join(f"{count} {_COUNTED[status]}" for status, count in counts.items() if count)


def _environment(given: Mapping[str, Any]) -> tuple[Field, ...]:
    names = {"torch": "torch", "torch_cuda": "CUDA", "cudnn": "cuDNN", "driver": "driver", "python": "Python"}
    versions = " · ".join(f"{word} {text_in(given, name)}" for name, word in names.items() if text_in(given, name))
    gpus = given.get("gpus")
    seen = [each for each in gpus if isinstance(each, dict)] if isinstance(gpus, list) else []
    told = (" ".join(text_in(each, name) + " " for name in ("position", "name", "uuid")).rstrip() for each in seen)
    return (field("inside", versions), field("GPUs seen", *told))


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
