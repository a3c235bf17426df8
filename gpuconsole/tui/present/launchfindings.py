"""What stands under the launch form's rows: what is wrong, what is likely to fail, and the key that mends it."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpuconsole.core.text import plain_line, shorten
from gpuconsole.launch.preflight import Severity
from gpuconsole.tui.keymap import USUAL
from gpuconsole.tui.present.cell import Cell, Tone
from gpuconsole.tui.present.launchform import FIELDS, MORE_KEYS, Field
from gpuconsole.tui.present.launchtext import Lines, wrapped
from gpuconsole.tui.theme import Glyphs

if TYPE_CHECKING:
    from gpuconsole.launch.changes import Change
    from gpuconsole.launch.preflight import Finding
    from gpuconsole.launch.spec import FieldProblem
    from gpuconsole.tui.keymap import Keymap

_TONES: Mapping[Severity, Tone] = {Severity.REFUSE: "critical", Severity.WARN: "watch", Severity.HINT: "dim"}
_FORCE = re.compile(r"[Pp]ass --force [a-z-]+")
_OR_FORCE = re.compile(r",? or pass --force [a-z-]+[^.]*")
_LONGEST_KEY_WORDS = 34
_LEAST_TEXT = 16
"""Cells that a sentence has at least beside what its keys do; with less only the keys are named."""


@dataclass(frozen=True, slots=True)
class Remark:
    """One thing to say beside a field."""

    option: str
    """As the command line calls it."""
    severity: Severity
    sentence: str
    fix: str = ""
    slug: str = ""
    """Empty of what is simply wrong in a field."""
    change: Change | None = None
    forceable: bool = False
    """It is refused, and could be lifted."""
    forced: bool = False
    """It would be refused, and was lifted."""

    @property
    def stands(self) -> bool:
        """It is in the way."""
        return self.severity is Severity.REFUSE and not self.forced

    @property
    def field(self) -> Field | None:
        """The form's field it belongs to; None when the form has no such field."""
        return next((field for field in FIELDS if self.option in field.options), None)

    @property
    def rarely_needed(self) -> bool:
        """Its field is one of those that are usually hidden."""
        return self.field is not None and self.field.key in MORE_KEYS

    @property
    def text(self) -> str:
        """All of it."""
        return f"{self.sentence} {self.fix}".rstrip()


def remarks_of(
    problems: Iterable[FieldProblem],
    findings: Iterable[Finding],
    force: Collection[str] = (),
    keys: Keymap = USUAL,
) -> tuple[Remark, ...]:
    """What is to be said, what is in the way first and hints last.

    Args:
        problems: What is wrong in fields.
        findings: What preflight found.
        force: Slugs that are lifted.
        keys: Which key lifts one.
    """
    found = [_of_problem(problem) for problem in problems]
    found += [_of_finding(finding, {str(slug) for slug in force}, keys) for finding in findings]
    order = list(Severity)
    found.sort(key=lambda remark: (not remark.stands, order.index(remark.severity)))
    return tuple(dict.fromkeys(found))


def _of_problem(problem: FieldProblem) -> Remark:
    sentence = plain_line(problem.message).rstrip(".") + "."
    return Remark(problem.field, Severity.REFUSE, sentence, change=problem.change)


def _of_finding(finding: Finding, force: Collection[str], keys: Keymap) -> Remark:
    forced = finding.forceable and finding.severity is Severity.REFUSE and finding.slug in force
    return Remark(
        finding.field,
        Severity.WARN if forced else finding.severity,
        plain_line(finding.sentence),
        _by_key(plain_line(finding.fix if forced else finding.remedy), forced, keys),
        finding.slug,
        finding.change,
        forceable=finding.forceable and finding.severity is Severity.REFUSE and not forced,
        forced=forced,
    )


def _by_key(fix: str, forced: bool, keys: Keymap) -> str:
    """What to do, by the form's key where the command line has an option for it."""
    if forced:
        return _OR_FORCE.sub("", fix)
    key = keys.name("launch.force")
    return _FORCE.sub(lambda found: f"{'Press' if found[0][0] == 'P' else 'press'} {key}", fix)


def to_mend(remarks: Sequence[Remark], key: str | None) -> Remark | None:
    """What one key mends: what stands at the field ``key``, else the first that can be."""
    return _first([remark for remark in remarks if remark.change is not None], key)


def to_force(remarks: Sequence[Remark], key: str | None) -> Remark | None:
    """The refusal that one key lifts: the one at the field ``key``, else the first that can be."""
    return _first([remark for remark in remarks if remark.forceable], key)


def _first(remarks: Sequence[Remark], key: str | None) -> Remark | None:
    here = (remark for remark in remarks if remark.field is not None and remark.field.key == key)
    return next(here, remarks[0] if remarks else None)


def change_words(change: Change) -> str:
    """What a key does to the field: ``writes device=1``, ``adds memlock=-1``, ``empties it``."""
    value = plain_line(change.value or "")
    if change.value is None:
        return "takes it out" if change.instead else "empties it"
    if value == "":
        return "writes ''"
    return f"adds {value}" if change.add else f"writes {value}"


def _key_words(remark: Remark, keys: Keymap) -> str:
    parts = []
    if remark.change is not None:
        parts.append(f"{keys.name('launch.mend')} {shorten(change_words(remark.change), _LONGEST_KEY_WORDS)}")
    if remark.forceable:
        parts.append(f"{keys.name('launch.force')} forces it")
    if remark.forced:
        parts.append("forced")
    return " · ".join(parts)


def _keys_alone(remark: Remark, keys: Keymap) -> str:
    """The keys without what they do, which the footer says."""
    names = ("launch.mend" if remark.change is not None else "", "launch.force" if remark.forceable else "")
    return " ".join(keys.name(name) for name in names if name)


@dataclass(frozen=True, slots=True)
class Rest:
    """What is not said beside a field."""

    remark: Remark
    text: str
    alone: bool = False
    """Nothing of it is."""


@dataclass(frozen=True, slots=True)
class Said:
    """Where each remark is told."""

    beside: Mapping[str, Lines]
    """First field of a row → the lines under it."""
    below: tuple[Rest, ...]
    """What has no row, or no room there for all of it."""


def arranged(
    remarks: Sequence[Remark],
    rows: Iterable[Sequence[Field]],
    *,
    glyphs: Glyphs,
    keys: Keymap,
    width: int,
    room: int,
    each: int,
    more: bool,
    here: str | None = None,
) -> Said:
    """Put remarks under the rows of their fields, as far as there is room.

    Args:
        remarks: Most important first.
        rows: The form's rows.
        glyphs: The signs to draw with.
        keys: Which keys do what.
        width: Cells of a line under a row.
        room: Lines that may stand under all rows together; what is in the way gets one in any case.
        each: Lines that one may take; those in no way share what room is left.
        more: The rarely needed rows are open.
        here: The field in focus, whose remarks come before those of others that are in no way.
    """
    groups = {field.key: group for group in rows for field in group}
    beside: dict[str, Lines] = {}
    below: list[Rest] = []
    ordered = sorted(remarks, key=lambda one: not one.stands and (one.field is None or one.field.key != here))
    for left, remark in zip(range(len(ordered), 0, -1), ordered, strict=True):
        field = remark.field
        group = groups.get(field.key) if field is not None else None
        if field is None or group is None or (remark.rarely_needed and not more) or (room < 1 and not remark.stands):
            below.append(Rest(remark, remark.text, alone=True))
            continue
        label = f"{field.label}: " if len(group) > 1 else ""
        rows_here = each if remark.stands else max(1, min(each, room // left))
        lines, rest = _lines(remark, label, glyphs, keys, width=width, rows=rows_here)
        beside[group[0].key] = [*beside.get(group[0].key, []), *lines]
        room -= len(lines)
        if rest:
            below.append(Rest(remark, rest))
    return Said(beside, tuple(below))


def _lines(remark: Remark, label: str, glyphs: Glyphs, keys: Keymap, *, width: int, rows: int) -> tuple[Lines, str]:
    """A remark in at most so many lines, the keys at its end; and what of it is not there."""
    start, told = f"{_sign(remark, glyphs)} {label}", _key_words(remark, keys)

    def fitting(text: str) -> Lines:
        text = text if told else text.rstrip(".")
        return _fitting(f"{start}{text}", told, _TONES[remark.severity], width=width, rows=rows)

    brief, full = fitting(remark.sentence), fitting(remark.text)
    said_by_key = remark.change is not None or remark.forced
    if full and (not said_by_key or len(full) == len(brief)):
        return full, ""
    if brief:
        return brief, "" if said_by_key else remark.fix
    whole = wrapped(f"{start}{remark.sentence}", width, _TONES[remark.severity])
    kept, rest = whole[: rows - 1], " ".join(line[0].text.strip() for line in whole[rows - 1 :])
    if told and width - 4 - len(told) < min(_LEAST_TEXT, width // 3):
        told = _keys_alone(remark, keys)
    space = width - 2 - (len(told) + 1 if told else 0)
    if len(rest) > space:
        rest = f"{textwrap.shorten(rest, space - 2, placeholder='').rstrip('.,;:')} {glyphs.ellipsis}"
    return [*kept, _ended((Cell(f" {rest}", _TONES[remark.severity]),), told)], remark.text


def _fitting(text: str, told: str, tone: Tone, *, width: int, rows: int) -> Lines:
    """``text`` and the keys in at most so many lines; empty when they do not fit."""
    lines = wrapped(text, width, tone)
    if told and len(lines[-1][0].text) + 1 + len(told) > width - 1:
        lines.append((Cell(""),))
    if len(lines) > rows:
        return []
    return [*lines[:-1], _ended(lines[-1], told)]


def _ended(line: tuple[Cell, ...], told: str) -> tuple[Cell, ...]:
    return (*line, Cell(f" {told}", "accent")) if told else line


def _sign(remark: Remark, glyphs: Glyphs) -> str:
    return {Severity.REFUSE: glyphs.critical, Severity.WARN: glyphs.watch, Severity.HINT: glyphs.idle}[remark.severity]


def below_lines(rests: Iterable[Rest], glyphs: Glyphs, keys: Keymap, width: int) -> Lines:
    """What is not said beside the fields, each with its field."""
    lines: Lines = []
    for rest in rests:
        remark, field = rest.remark, rest.remark.field
        label = field.label if field is not None else remark.option
        told = _key_words(remark, keys) if rest.alone else ""
        text = f"{_sign(remark, glyphs)} {label}: {rest.text}"
        rows = wrapped(text, width, _TONES[remark.severity])
        if told and len(rows[-1][0].text) + 1 + len(told) > width - 1:
            rows.append((Cell(""),))
        lines += [*rows[:-1], _ended(rows[-1], told)]
    return lines
