"""Everything on the screen in ASCII, where the terminal has no other signs; each sign keeps its cells."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

from rich.cells import cell_len
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

_SIGNS = {
    "–": "-", "—": "-", "…": "~", "·": "|", "→": ">", "←": "<", "×": "x", "▾": "v", "▸": ">", "⏎": "|", "°": " ",
    "“": '"', "”": '"', "‘": "'", "’": "'", "█": "#", "µ": "u",
    "μ": "u",
}  # fmt: skip
_FRAMES = {"╭╮╰╯┌┐└┘├┤┬┴┼╔╗╚╝┏┓┗┛": "+", "─━═": "-", "│┃║": "|"}


@lru_cache(maxsize=4096)
def in_ascii(sign: str) -> str:
    """One sign in ASCII, of the same width."""
    if sign in _SIGNS:
        return _SIGNS[sign]
    for signs, instead in _FRAMES.items():
        if sign in signs:
            return instead
    width = cell_len(sign)
    if "\u2580" <= sign <= "\u259f":  # blocks: edges of scrollbars and boxes
        return " " * width
    base = unicodedata.normalize("NFKD", sign)[:1]
    return base if base.isascii() and base.isprintable() and width == 1 else "?" * width


class AsciiFilter(LineFilter):
    """Applied to every line on its way to the terminal."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """The same line in ASCII."""
        return [
            segment if segment.control or segment.text.isascii() else segment._replace(text=_text(segment.text))
            for segment in segments
        ]


def _text(text: str) -> str:
    return "".join(sign if sign.isascii() else in_ascii(sign) for sign in text)
