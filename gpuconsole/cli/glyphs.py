"""What the terminal at hand can show: colours, and characters beyond ASCII."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_ASCII = str.maketrans({"–": "-", "—": "-", "…": "~", "·": "|", "°": "", "→": "->", "└": "`", "×": "x"})


@dataclass(frozen=True, slots=True)
class Glyphs:
    """How output may look."""

    unicode: bool = True
    colour: bool = False
    width: int | None = None
    """Cells of a line; None where nothing is to be cut, as in a pipe."""

    def bar(self, share: float | None, cells: int) -> str:
        """A horizontal bar, ``cells`` wide; any share above nothing shows. Blank when unknown."""
        if share is None:
            return " " * cells
        share = min(1.0, max(0.0, share))
        if not self.unicode:
            filled = max(round(share * cells), 1 if share else 0)
            return "#" * filled + "." * (cells - filled)
        eighths = max(round(share * cells * 8), 1 if share else 0)
        whole, rest = divmod(eighths, 8)
        return ("█" * whole + (_EIGHTHS[rest] if rest else "")).ljust(cells)

    def text(self, text: str) -> str:
        """``text`` as the terminal can show it."""
        if self.unicode:
            return text
        return text.translate(_ASCII).encode("ascii", errors="replace").decode("ascii")


def glyphs_of_stdout(environment: Mapping[str, str] = os.environ) -> Glyphs:
    """What stdout is able to show: by the locale, the terminal's type, ``NO_COLOR``, and whether it is a terminal."""
    terminal = sys.stdout.isatty()
    kind = environment.get("TERM", "")
    return Glyphs(
        unicode=speaks_utf8(environment) and kind not in ("dumb", "linux"),
        colour=terminal and not environment.get("NO_COLOR") and kind != "dumb",
        width=shutil.get_terminal_size().columns if terminal else None,
    )


def speaks_utf8(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether locale and stdout take UTF-8. Python writes UTF-8 in the C locale too, where a terminal may not."""
    locale = next((environment[name] for name in ("LC_ALL", "LC_CTYPE", "LANG") if environment.get(name)), "")
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    return encoding == "utf8" and "utf8" in locale.lower().replace("-", "")
