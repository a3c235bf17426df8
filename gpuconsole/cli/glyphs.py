"""What the terminal at hand can show: colours, and characters beyond ASCII."""

from __future__ import annotations

import codecs
import os
import sys

from gpuconsole.core.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_ASCII = str.maketrans({"–": "-", "—": "-", "…": "~", "·": "|", "°": "", "→": "->", "└": "`", "×": "x"})


_CODES = {"red": 31, "green": 32, "yellow": 33, "blue": 34, "magenta": 35, "cyan": 36}
"""The terminal's own colours, which its user has chosen."""


def styled(text: str, colour: str | None = None, *, bold: bool = False) -> str:
    """``text`` in a colour of the terminal, or bold, or as it is; what follows it is plain."""
    codes = ([str(_CODES[colour])] if colour else []) + (["1"] if bold else [])
    return f"\x1b[{';'.join(codes)}m{text}\x1b[0m" if codes else text


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


def glyphs_of_stdout() -> Glyphs:
    """What stdout is able to show: by locale and encoding, the terminal's type, ``NO_COLOR``, and being one at all."""
    terminal = sys.stdout.isatty()
    width = None
    if terminal:
        import shutil

        width = shutil.get_terminal_size().columns
    kind = os.environ.get("TERM", "")
    return Glyphs(
        unicode=writes_utf8() and _locale_is_utf8() and kind not in ("dumb", "linux"),
        colour=terminal and not os.environ.get("NO_COLOR") and kind != "dumb",
        width=width,
    )


def writes_utf8() -> bool:
    """Whether stdout takes any character."""
    return codecs.lookup(sys.stdout.encoding or "ascii").name in ("utf-8", "utf-8-sig")


def _locale_is_utf8() -> bool:
    """Whether the user's locale is one of UTF-8.

    In the C locale Python writes UTF-8 all the same, and sets ``LC_CTYPE`` to say so; the terminal knows nothing of it,
    so what counts is the environment that this program was started with.
    """
    started_with = _first_environment()
    name = next((started_with[name] for name in ("LC_ALL", "LC_CTYPE", "LANG") if started_with.get(name)), "C")
    return "utf8" in name.lower().replace("-", "")


def _first_environment() -> Mapping[str, str]:
    try:
        with open("/proc/self/environ", "rb") as file:
            entries = file.read().split(b"\0")
    except OSError:
        return os.environ
    pairs = (os.fsdecode(entry).partition("=") for entry in entries)
    return {name: value for name, _, value in pairs}
