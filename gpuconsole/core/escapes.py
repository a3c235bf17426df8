"""What a terminal would obey in a text, taken out of it: the part of :func:`gpuconsole.core.text.plain` with patterns.

Most text has nothing of it, and a program that meets none, as a ``status`` mostly, does without this module.
"""

from __future__ import annotations

import re

# A string sequence that is never closed ends with its line, so that it cannot hide what follows.
_ESCAPES = re.compile(
    r"""
    \x1b\][^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c|(?=\n)|\Z)             # OSC … BEL or ST
  | \x1b[PX^_][^\x1b\x9c\n]*(?:\x1b\\|\x9c|(?=\n)|\Z)                   # DCS, SOS, PM, APC … ST
  | [\x90\x98\x9d\x9e\x9f][^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c|(?=\n)|\Z)  # the same, begun by a C1 byte
  | (?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?                                   # CSI
  | \x1b[ -/]*[0-~]?                               # two-character escapes and charset choices
    """,
    re.VERBOSE,
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
# Marks that reorder or hide text without a width of their own: bidi controls, invisible joiners used to disguise
# names, line and paragraph separators, BOM, and tag characters.
_DISGUISES = re.compile(
    "[\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
_LINE_BREAKS = re.compile(r"\r\n|[\u2028\u2029\x85]")
_BACKSPACES = re.compile(r"[^\x08\n]\x08")


def without_escapes(text: str) -> str:
    """``text`` as :func:`gpuconsole.core.text.plain` promises it."""
    text = _ESCAPES.sub("", _LINE_BREAKS.sub("\n", text))
    if "\x08" in text:
        text = _BACKSPACES.sub("", text)
    if "\r" in text:
        text = "\n".join(_last_state(line) for line in text.split("\n"))
    return _DISGUISES.sub("", _CONTROLS.sub("", text))


def _last_state(line: str) -> str:
    parts = [part for part in line.split("\r") if part]
    return parts[-1] if parts else ""
