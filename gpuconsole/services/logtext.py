r"""Log output made harmless while it streams: whole lines, the last state of progress bars, bounded memory."""

from __future__ import annotations

import codecs
import re

from gpuconsole.core.text import plain

_COMPACT_ABOVE = 64 * 1024
"""Characters of one unfinished line above which overwritten progress states are let go."""
_PIECE_ABOVE = 256 * 1024
"""Characters of one unfinished line above which it is given out in pieces."""
_LONGEST_ESCAPE = 256
_TIMESTAMP = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d) ")


class LineCleaner:
    r"""Cleans one output stream. What :meth:`feed` gives, joined, is the harmless text.

    Each string it gives is one line with its ``\n``; only of a line longer than any sane one come pieces without.

    Args:
        timestamps: Each entry begins with a timestamp of the engine, which no carriage return may overwrite.
    """

    def __init__(self, *, timestamps: bool = False) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._pending = ""
        self._timestamps = timestamps

    def feed(self, data: bytes) -> list[str]:
        """Take in ``data`` and give the lines that it completes."""
        text = self._decoder.decode(data)
        if self._timestamps and self._pending:
            # The engine stamps every entry, and a line longer than 16 KiB is several entries.
            text = _TIMESTAMP.sub("", text)
        *lines, self._pending = (self._pending + text).split("\n")
        done = [f"{self._clean(line)}\n" for line in lines]
        if len(self._pending) > _COMPACT_ABOVE:
            done.extend(self._relieve())
        return done

    @property
    def partial(self) -> str:
        """What the unfinished line shows now, such as a progress bar; empty when there is none."""
        return self._clean(self._pending) if self._pending else ""

    def finish(self) -> list[str]:
        """The unfinished line, ended; nothing when there is none."""
        self._pending += self._decoder.decode(b"", final=True)
        rest, self._pending = self._clean(self._pending), ""
        return [f"{rest}\n"] if rest else []

    def _clean(self, line: str) -> str:
        stamp = _TIMESTAMP.match(line) if self._timestamps else None
        return stamp[0] + plain(line[stamp.end() :]) if stamp else plain(line)

    def _relieve(self) -> list[str]:
        """Let go of what later output can no longer change."""
        if "\r" in self._pending:
            head, _, tail = self._pending.rpartition("\r")
            self._pending = f"{self._clean(head)}\r{tail}"
        if len(self._pending) <= _PIECE_ABOVE:
            return []
        # An escape sequence must not be cut in two: its second half would be taken for text.
        cut = self._pending.rfind("\x1b", len(self._pending) - _LONGEST_ESCAPE)
        cut = cut if cut > 0 else len(self._pending)
        piece, self._pending = self._pending[:cut], self._pending[cut:]
        return [self._clean(piece)]
