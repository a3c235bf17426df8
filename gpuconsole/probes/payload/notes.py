"""Stray output of a worker kept as notes: so many lines, so long, and a count of what was left out."""

from __future__ import annotations

from typing import Callable

MOST_LINES = 40
LONGEST_LINE = 400


class Notes:
    """Turns a worker's output into notes and stops keeping it when there is too much.

    Args:
        tell: Is given the stream's name and one line.
    """

    def __init__(self, tell: Callable[[str, str], None]) -> None:
        self._tell = tell
        self._kept = 0
        self._seen: set[str] = set()
        self._partial: dict[str, bytes] = {}
        self._dropped_bytes = 0

    def feed(self, stream: str, data: bytes) -> None:
        """Take what the worker wrote; once enough is kept it is counted and forgotten."""
        if self._kept >= MOST_LINES:
            self._dropped_bytes += len(data)
            return
        *lines, rest = (self._partial.get(stream, b"") + data).split(b"\n")
        if len(rest) > 4 * LONGEST_LINE:
            # A line without an end is told once, and what follows of it counts as left out.
            self._dropped_bytes += len(rest) - 4 * LONGEST_LINE
            lines.append(rest[: 4 * LONGEST_LINE])
            rest = b""
        self._partial[stream] = rest
        for line in lines:
            self._keep(stream, line)

    def _keep(self, stream: str, line: bytes) -> None:
        text = " ".join(line.decode("utf-8", "replace").split())
        if not text or text in self._seen:
            return
        if self._kept >= MOST_LINES:
            self._dropped_bytes += len(line) + 1
            return
        self._kept += 1
        self._seen.add(text)
        self._tell(stream, text if len(text) <= LONGEST_LINE else text[: LONGEST_LINE - 1] + "…")

    def close(self) -> None:
        """Tell the last lines that had no end, and how much was left out."""
        for stream, rest in sorted(self._partial.items()):
            self._keep(stream, rest)
        self._partial.clear()
        if self._dropped_bytes:
            self._tell("stdout", "{} more bytes of output were left out".format(self._dropped_bytes))
            self._dropped_bytes = 0
