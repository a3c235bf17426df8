"""A verdict in a glyph and a word, the same in every table."""

from __future__ import annotations

from gpuconsole.cli.glyphs import Glyphs
from gpuconsole.images.verdict import Word

_GLYPHS = {
    Word.RUNS: ("✓", "+"),
    Word.RUNS_WITH: ("~", "~"),
    Word.UNKNOWN: ("?", "?"),
    Word.WILL_NOT_RUN: ("✗", "x"),
}
_WORDS = {
    Word.RUNS: ("runs", "runs"),
    Word.RUNS_WITH: ("with limits", "limits"),
    Word.UNKNOWN: ("unknown", "unknown"),
    Word.WILL_NOT_RUN: ("will not run", "no"),
}
COLOURS = {Word.RUNS: "green", Word.RUNS_WITH: "yellow", Word.UNKNOWN: "", Word.WILL_NOT_RUN: "red"}
"""Verdict → colour of the terminal; never the only sign."""


def plain_words(word: Word) -> str:
    """The verdict in words: ``will not run``."""
    return _WORDS[word][0]


def verdict_words(word: Word, glyphs: Glyphs) -> str:
    """``✗ will not run``."""
    return f"{_glyph(word, glyphs)} {_WORDS[word][0]}"


def short_verdict(word: Word, glyphs: Glyphs) -> str:
    """The same for a narrow column: ``✗ no``."""
    return f"{_glyph(word, glyphs)} {_WORDS[word][1]}"


def _glyph(word: Word, glyphs: Glyphs) -> str:
    return _GLYPHS[word][0 if glyphs.unicode else 1]
