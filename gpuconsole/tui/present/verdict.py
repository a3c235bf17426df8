"""A verdict as cells: a glyph and a word, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuconsole.tui.present.cell import EMPTY, Cell, Tone
from gpuconsole.tui.theme import Glyphs

if TYPE_CHECKING:
    from gpuconsole.images.verdict import Verdict, Word

_TONES: dict[str, Tone] = {"runs": "ok", "runs_with": "watch", "unknown": "dim", "will_not_run": "critical"}


def _glyph(word: Word, glyphs: Glyphs) -> str:
    signs = {
        "runs": glyphs.ok, "runs_with": glyphs.watch, "unknown": glyphs.unknown, "will_not_run": glyphs.critical,
    }  # fmt: skip
    return signs[word.value]


def tone(word: Word) -> Tone:
    """How a verdict is meant; never the only sign of it."""
    return _TONES[word.value]


def cell(verdict: Verdict | None, glyphs: Glyphs) -> Cell:
    """``✓ runs``; a dash while nobody has judged it yet."""
    return EMPTY if verdict is None else word_cell(verdict.word, glyphs)


def word_cell(word: Word, glyphs: Glyphs) -> Cell:
    """``✖ will not run``."""
    from gpuconsole.images.verdictwords import plain_words

    return Cell(f"{_glyph(word, glyphs)} {plain_words(word)}", tone(word))


def why(verdict: Verdict | None) -> str:
    """The reasons that decide, in one line; of one that runs, the first."""
    if verdict is None:
        return ""
    from gpuconsole.images.verdictwords import decisive

    told = decisive(verdict, of_the_machine=True)
    return "; ".join(told) or (verdict.reasons[0].text if verdict.reasons else "")


def fits(verdict: Verdict | None) -> bool:
    """Whether it is known to run, with or without limits."""
    return verdict is not None and verdict.word.value in ("runs", "runs_with")


def lines(verdict: Verdict | None, glyphs: Glyphs, *, instead: str | None = None) -> tuple[tuple[Cell, ...], ...]:
    """The verdict in words: of each kind of GPU, with every reason; then what would run.

    Args:
        verdict: The verdict.
        glyphs: The signs to draw with.
        instead: The nearest image that would run.
    """
    if verdict is None:
        return ((Cell("–  not judged yet", "dim"),),)
    from gpuconsole.images.verdictwords import grouped

    found: list[tuple[Cell, ...]] = []
    judged: dict[tuple[Word, tuple[str, ...]], list[str]] = {}
    for each in verdict.gpus:
        judged.setdefault((each.word, tuple(reason.text for reason in each.reasons)), []).append(each.gpu)
    for (word, reasons), names in judged.items():
        for _, label in grouped(("", name) for name in names):
            found.append((word_cell(word, glyphs), Cell(f"  on {label}", "dim")))
        found += [(Cell("  "), Cell(text, "" if place == 0 else "dim")) for place, text in enumerate(reasons)]
    if instead is not None:
        found.append((Cell("→ instead  ", "accent"), Cell(instead)))
    return tuple(found)
