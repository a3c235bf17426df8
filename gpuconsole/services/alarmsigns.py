"""Signs that a terminal shows as a notification of the desktop (OSC 9), for those alone that are known to take them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from gpuconsole.core.text import plain_line
from gpuconsole.services import tmux

_KNOWN = re.compile(r"kitty|ghostty|foot|wezterm|iterm|warpterminal", re.IGNORECASE)
"""Terminals whose manuals name it; others may show it as text, or take it for something else."""
_LONGEST = 200


def notification(text: str, environment: Mapping[str, str]) -> str:
    """What is written to the terminal so that it shows ``text``; empty where nobody knows what it would do.

    Inside tmux that is asked of the terminals that look at it, and tmux must let it through. It may block for a moment.
    """
    sign = f"\x1b]9;gpuconsole: {plain_line(text, limit=_LONGEST)}\x1b\\"
    if environment.get("TMUX"):
        seen = tmux.terminals()
        if not seen or not all(_KNOWN.search(each) for each in seen) or not tmux.passes_through():
            return ""
        doubled = sign.replace("\x1b", "\x1b\x1b")
        return f"\x1bPtmux;{doubled}\x1b\\"
    if environment.get("STY"):  # GNU screen prints what it does not know
        return ""
    names = (environment.get(name, "") for name in ("TERM_PROGRAM", "LC_TERMINAL", "TERM"))
    return sign if any(_KNOWN.search(name) for name in names) else ""
