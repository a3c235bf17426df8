"""Alarms as rows and as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpuconsole.core.text import duration, shorten
from gpuconsole.gpu.state import MemoryState
from gpuconsole.services.alarmdesk import Listed, Standing
from gpuconsole.services.alarms import Alarm
from gpuconsole.tui.present.cell import Cell, Column, Row, Tone
from gpuconsole.tui.present.details import Field, Line, field, wrapped
from gpuconsole.tui.present.gpu import STATE_TONES
from gpuconsole.tui.theme import Glyphs

if TYPE_CHECKING:
    from gpuconsole.services.alarmdeaths import Ending
    from gpuconsole.tui.keymap import Keymap

COLUMNS = (
    Column("state", "STATE", 11),
    Column("what", "WHAT", 20, grow=3),
    Column("standing", "ALARM", 9),
    Column("since", "SINCE", 7, align="right", rank=2),
    Column("left", "FULL IN", 8, align="right", rank=1),
)
_WORDS = {
    Standing.RINGS: "It stands, and rang.",
    Standing.QUIET: "It stands quietly: it is no more than a risk, or another one rang for the same memory.",
    Standing.ENDED: "It has happened; dismissed, it goes from the list.",
    Standing.OVER: "It rang, and does not stand any more.",
    Standing.DISMISSED: "It was dismissed, and rings again only if it gets worse.",
    Standing.NOTE: "A note: it does not ring.",
}
_TONES: dict[Standing, Tone] = {Standing.RINGS: "accent", Standing.ENDED: "accent"}
_TOAST_TEXT = 170
"""Three lines of it."""


def row(listed: Listed, *, now: float, glyphs: Glyphs) -> Row:
    """One alarm as a row."""
    alarm = listed.alarm
    glyph = {
        MemoryState.IDLE: glyphs.idle,
        MemoryState.RISK: glyphs.risk,
        MemoryState.CRITICAL: glyphs.critical,
        MemoryState.FAILED: glyphs.critical,
    }.get(alarm.state, " ")
    stands = listed.standing not in (Standing.OVER, Standing.DISMISSED)
    tone = STATE_TONES[alarm.state] if stands else "dim"
    left = "" if alarm.eta_s is None or listed.standing is Standing.OVER else f"~{duration(alarm.eta_s)}"
    return Row(
        listed.key,
        (
            Cell(f"{glyph} {alarm.state.value}", tone),
            Cell(alarm.name, "strong" if stands else "dim"),
            Cell(listed.standing.value, _TONES.get(listed.standing, "dim")),
            Cell(duration(max(0.0, now - alarm.at)), "dim"),
            Cell(left, tone),
        ),
    )


def in_full(listed: Listed | None, width: int) -> list[Line]:
    """All of one alarm in rows of ``width`` cells."""
    if listed is None:
        return []
    alarm = listed.alarm
    lines: list[Line] = [(Cell(f" {part}"),) for part in wrapped(alarm.why, max(8, width - 2))]
    trend = " It is a trend: it holds if growth goes on as seen." if alarm.eta_s is not None else ""
    told = f"{_WORDS[listed.standing]}{trend}"
    return [*lines, *((Cell(f" {part}", "dim"),) for part in wrapped(told, max(8, width - 2)))]


def with_ending(fields: Sequence[Field], ending: Ending | None) -> tuple[Field, ...]:
    """A container's details with why it ended and what to do below its state, where more is known than its code."""
    if ending is None or ending.cause is None:
        return tuple(fields)
    why = field("why", Cell(ending.sentence, "" if ending.asked_for else "critical"))
    return (*fields[:1], why, field("what to do", *(Cell(each, "accent") for each in ending.advice)), *fields[1:])


def note_fields(note: str) -> tuple[Field, ...]:
    """What is noted of a process."""
    return (field("note", Cell(note, "watch")),) if note else ()


def toast_title(current: Sequence[Alarm], *, recorded: bool) -> str:
    """``Alarm: critical, a trend``; what was recorded is said to be."""
    first = current[0]
    where = "Alarm in the recording" if recorded else "Alarm"
    trend = ", a trend" if first.eta_s is not None else ""
    return f"{where}: {first.state.value}{trend}"


def toast(current: Sequence[Alarm], keys: Keymap) -> str:
    """What the toast says of all that asks for somebody."""
    first = current[0]
    more = f" And {len(current) - 1} more." if len(current) > 1 else ""
    what_to_do = keys.fill("{app.alarms} lists alarms: dismiss, go there, mark wrong.")
    return f"{shorten(f'{first.name}: {first.why}', _TOAST_TEXT)}{more}\n→ {what_to_do}"
