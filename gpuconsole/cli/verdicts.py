"""A verdict in a glyph and a word, the same in every table."""

from __future__ import annotations

from gpuconsole.cli.glyphs import Glyphs
from gpuconsole.images.verdict import Word
from gpuconsole.images.verdictwords import plain_words

_GLYPHS = {
    Word.RUNS: ("✓", "+"),
    Word.RUNS_WITH: ("~", "~"),
    Word.UNKNOWN: ("?", "?"),
    Word.WILL_NOT_RUN: ("✗", "x"),
}
_SHORT = {Word.RUNS: "runs", Word.RUNS_WITH: "limits", Word.UNKNOWN: "unknown", Word.WILL_NOT_RUN: "no"}
COLOURS = {Word.RUNS: "green", Word.RUNS_WITH: "yellow", Word.UNKNOWN: "", Word.WILL_NOT_RUN: "red"}
"""Verdict → colour of the terminal; never the only sign."""


def verdict_words(word: Word, glyphs: Glyphs) -> str:
    """``✗ will not run``."""
    return f"{_glyph(word, glyphs)} {plain_words(word)}"


def short_verdict(word: Word, glyphs: Glyphs) -> str:
    """The same for a narrow column: ``✗ no``."""
    return f"{_glyph(word, glyphs)} {_SHORT[word]}"


def _glyph(word: Word, glyphs: Glyphs) -> str:
    return _GLYPHS[word][0 if glyphs.unicode else 1]
