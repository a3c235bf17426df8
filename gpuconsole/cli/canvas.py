"""A picture on the terminal that is drawn again and again in its own place."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Sequence

from gpuconsole.cli.tables import fitting


class Canvas:
    """Lines on stderr in the place of the last ones.

    Args:
        text: Writes a line in the characters the terminal has.
    """

    def __init__(self, text: Callable[[str], str]) -> None:
        self._text = text
        self._drawn = 0

    @property
    def room(self) -> tuple[int, int]:
        """Columns and rows there are for a picture."""
        width, height = shutil.get_terminal_size()
        return width - 1, height - 1

    def put(self, lines: Sequence[str]) -> None:
        """Draw these lines, each cut to the terminal; none takes the picture away."""
        width, _ = self.room
        above = f"\x1b[{self._drawn}A" if self._drawn else ""
        text = "".join(f"{self._text(line[: fitting(line, width)])}\x1b[K\n" for line in lines)
        try:
            sys.stderr.write(f"{above}\r{text}\x1b[J")
            sys.stderr.flush()
        except OSError:  # the terminal is gone; what is drawn about ends by its own signal
            return
        self._drawn = len(lines)
