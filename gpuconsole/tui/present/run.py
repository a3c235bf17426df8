"""A run as a row."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from gpuconsole.core.text import duration
from gpuconsole.services.runs import Run, RunKind, RunState
from gpuconsole.tui.present.cell import EMPTY, Cell, Column, Row, Tone
from gpuconsole.tui.present.gpu import bar
from gpuconsole.tui.present.image import brief_name
from gpuconsole.tui.theme import Glyphs

if TYPE_CHECKING:
    from gpuconsole.services.probelive import Live

COLUMNS = (
    Column("kind", "WHAT", 7),
    Column("subject", "OF", 14, grow=1),
    Column("state", "STATE", 11),
    Column("ago", "BEGAN", 12, rank=2),
    Column("took", "TOOK", 6, align="right", rank=3),
    Column("headline", "HOW IT WENT", 26, grow=4, rank=0),
)
_TONES: dict[RunState, Tone] = {
    RunState.RUNNING: "info",
    RunState.OK: "ok",
    RunState.WARN: "watch",
    RunState.FAILED: "critical",
    RunState.CANCELLED: "dim",
}


def row(run: Run, *, now: float, glyphs: Glyphs, live: Live | None = None) -> Row:
    """One run as a row; ``live`` is how far a check or benchmark of this console is."""
    state = word(run) if run.progress is None else f"{bar(run.progress, 6, glyphs)} {run.progress:3.0%}"
    took_s = run.took_s(now)
    return Row(
        run.id,
        (
            Cell(run.kind.value),
            Cell(_subject(run), "strong"),
            Cell(state, _TONES[run.state]),
            Cell(f"{duration(now - run.started_at)} ago", "dim"),
            EMPTY if took_s is None else Cell(duration(took_s), "dim"),
            Cell(run.headline if live is None or run.ended else _going(run, live, now)),
        ),
    )


def under_way(runs: Iterable[Run]) -> dict[str, Run]:
    """What is worked on → the run that does so, of several the first: by its id, of pulls and builds by its name."""
    found: dict[str, Run] = {}
    for run in runs:
        if not run.ended and run.kind is not RunKind.LAUNCH:  # it makes a container, and is about none till then
            found[run.subject_id or run.subject] = run
    return found


def mark(run: Run, glyphs: Glyphs, *, rings: bool = False) -> Cell:
    """What stands beside a thing that a run is about: a sign and what is done with it."""
    return Cell(f"{glyphs.ring if rings else ''}{glyphs.busy}{'' if rings else ' '}{run.kind.value}", "info")


def _going(run: Run, live: Live, now: float) -> str:
    """How long it usually still takes, which of how many it is at, and what that does."""
    left_s = live.left_s(now)
    left = "" if left_s is None else f"{duration(left_s)} left · "
    step = f"{live.step}/{live.of} " if live.of and live.at else ""
    return f"{left}{step}{run.headline}"


def word(run: Run) -> str:
    """How it is; of a launch that made a container, how that is."""
    if run.kind is RunKind.LAUNCH and run.subject_id and run.state is RunState.CANCELLED:
        return "stopped"
    return "up" if run.up else run.state.value


def _subject(run: Run) -> str:
    """Of whom; an official image in few words, since it is told apart by its end."""
    return brief_name(run.subject) if run.kind is RunKind.PULL else run.subject


def matches(run: Run, words: Iterable[str]) -> bool:
    """Every word is in what it is, of whom, or how it went."""
    text = f"{run.kind.value} {run.subject} {word(run)} {run.headline}".lower()
    return all(word in text for word in words)
