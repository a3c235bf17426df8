"""What is pasted into a field: several lines become words, lines of their own, or only the first is taken."""

from __future__ import annotations

import re

from gpuconsole.core.text import plain
from gpuconsole.tui.present.launchform import Shape

_CONTINUED = re.compile(r"[ \t]+\\\n[ \t]*|\\\n")
"""A shell's line that goes on in the next one, with the indent of that one."""


def taken(text: str, shape: Shape) -> tuple[str, tuple[str, ...]]:
    """What of a pasted text stands in the field, and the further lines that have no place in it.

    Args:
        text: As it was pasted.
        shape: How the field is read.
    """
    text = plain(re.sub(r"\r\n?", "\n", text))
    if shape is Shape.WORDS:
        text = _CONTINUED.sub(lambda found: " " if found[0][0] in " \t" else "", text)
    lines = [line for line in text.split("\n") if line.strip()]
    if len(lines) < 2:
        return "".join(lines), ()  # blanks at its ends may join it to what stands there
    if shape is Shape.WORDS:
        return " ".join(line.strip() for line in lines), ()
    return lines[0].strip(), tuple(line.strip() for line in lines[1:])
