"""Lines of output kept in bounded memory, searched, and cut to what a screen shows of them."""

from __future__ import annotations

import functools
import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from datetime import datetime

from rich.cells import cell_len, get_character_cell_size

from gpuconsole.core.text import shorten
from gpuconsole.services.logfollow import LogLine, LogState, LogStatus
from gpuconsole.tui.present.cell import Cell

MOST_LINES = 20_000
MOST_CHARACTERS = 8 * 1024 * 1024


class LogBuffer:
    """The newest lines, numbered from 0 as they came; a line's number stays when older ones go."""

    def __init__(self) -> None:
        self._lines: list[LogLine] = []
        self._characters = 0
        self.first = 0
        """Number of the oldest line that is kept: so many were dropped."""
        self.mixed = False
        """Lines of both standard output and standard error came."""
        self._channels: set[str] = set()

    @property
    def end(self) -> int:
        """One more than the number of the newest line: so many came."""
        return self.first + len(self._lines)

    def __getitem__(self, number: int) -> LogLine:
        return self._lines[number - self.first]

    @property
    def lines_kept(self) -> Sequence[LogLine]:
        """All that are kept, oldest first."""
        return self._lines

    def add(self, lines: Sequence[LogLine]) -> None:
        """Take in ``lines``, letting go of the oldest where they are too many or too long."""
        self._lines += lines
        self._characters += sum(len(line.text) for line in lines)
        self._channels.update(line.channel for line in lines)
        self.mixed = len(self._channels) > 1
        over = max(0, len(self._lines) - MOST_LINES)
        self._characters -= sum(len(line.text) for line in self._lines[:over])
        while self._characters > MOST_CHARACTERS and over < len(self._lines) - 1:
            self._characters -= len(self._lines[over].text)
            over += 1
        if over:
            del self._lines[:over]
            self.first += over

    def takes(self, lines: int, characters: int) -> bool:
        """Whether so much more can be taken in without letting go of anything."""
        return len(self._lines) + lines <= MOST_LINES and self._characters + characters <= MOST_CHARACTERS

    def matching(self, words: str, *, start: int | None = None) -> list[int]:
        """Numbers of the lines with ``words`` in them, from ``start`` on; a capital among them makes case matter."""
        if not words:
            return []
        start = self.first if start is None else max(start, self.first)
        tail = self._lines[start - self.first :]
        if words != words.lower():
            return [number for number, line in enumerate(tail, start) if words in line.text]
        return [number for number, line in enumerate(tail, start) if words in line.text.lower()]


class Finder:
    """What is looked for in a buffer, and where it is."""

    def __init__(self, buffer: LogBuffer) -> None:
        self._buffer = buffer
        self.words = ""
        """What is looked for."""
        self.matches: list[int] = []
        """Numbers of the lines it is in."""
        self.found: int | None = None
        """Number of the line it was found in last."""

    def look_for(self, words: str) -> None:
        """Find ``words`` in every line."""
        self.words, self.found, self.matches = words, None, self._buffer.matching(words)

    def grow(self, start: int) -> None:
        """Keep in step with a buffer that lost its oldest lines, and got those from ``start`` on."""
        if not self.words:
            return
        del self.matches[: bisect_left(self.matches, self._buffer.first)]
        self.matches += self._buffer.matching(self.words, start=start)
        if self.found is not None and self.found < self._buffer.first:
            self.found = None

    def step(self, step: int, *, top: int) -> int | None:
        """The next line with the words, the first time from line ``top`` on; past the end, from the beginning."""
        if not self.matches:
            return None
        if self.found is None:
            place = min(bisect_left(self.matches, top), len(self.matches) - 1)
        else:
            place = (bisect_left(self.matches, self.found) + step) % len(self.matches)
        self.found = self.matches[place]
        return self.found

    def summary(self) -> str:
        """``loss 3/17``."""
        if not self.words:
            return ""
        place = f"{bisect_left(self.matches, self.found) + 1:,}/" if self.found is not None else ""
        return f"{shorten(self.words, 20)} {place}{len(self.matches):,}"


def spans(text: str, words: str) -> list[tuple[int, int]]:
    """Where ``words`` stand in ``text``."""
    if not words:
        return []
    flags = re.IGNORECASE if words == words.lower() else 0
    return [match.span() for match in re.finditer(re.escape(words), text, flags)]


def shown(line: LogLine) -> str:
    """The line's text as it stands on a screen."""
    return line.text.expandtabs(8) if "\t" in line.text else line.text


def _narrow(text: str) -> bool:
    """Every character takes one cell."""
    return text.isascii() or cell_len(text) == len(text)


def cut(text: str, left: int, width: int) -> tuple[int, int]:
    """Start and end of what stands in the ``width`` cells after the first ``left`` of ``text``."""
    if text.isascii():
        return min(left, len(text)), min(left + width, len(text))
    position, start = 0, len(text) if left else 0
    for index, char in enumerate(text):
        if position < left:
            position += get_character_cell_size(char)
            start = index + 1
            continue
        size = get_character_cell_size(char)
        if position + size > left + width:
            return start, index
        position += size
    return start, len(text)


@functools.lru_cache(maxsize=256)
def pieces(text: str, width: int) -> tuple[tuple[int, int], ...]:
    """Starts and ends of the rows that ``text`` takes in ``width`` cells; one at least."""
    if width <= 0 or not text:
        return ((0, len(text)),)
    if _narrow(text):
        return tuple((start, min(start + width, len(text))) for start in range(0, len(text), width))
    rows, start, used = [], 0, 0
    for index, char in enumerate(text):
        size = get_character_cell_size(char)
        if used + size > width and index > start:
            rows.append((start, index))
            start, used = index, 0
        used += size
    return (*rows, (start, len(text)))


def height(text: str, width: int) -> int:
    """How many rows ``text`` takes in ``width`` cells."""
    if text.isascii():
        return max(1, -(-len(text) // width)) if width > 0 else 1
    return len(pieces(text, width))


def stamp_words(stamp: str, *, brief: bool) -> str:
    """When a line was written, in local time; as wide whatever it says."""
    width = 9 if brief else 15
    try:
        at = datetime.fromisoformat(stamp).astimezone()
    except ValueError:
        return " " * width
    return at.strftime("%H:%M:%S " if brief else "%m-%d %H:%M:%S ")


_STATES = {
    LogState.OPENING: "opens",
    LogState.ENDED: "ended",
    LogState.LOST: "engine lost",
    LogState.REFUSED: "no output",
    LogState.GONE: "removed",
}


def top_line(
    name: str, status: LogStatus, *, following: bool, news: str, count: int, dropped: int, found: str, width: int
) -> tuple[Cell, ...]:
    """Whose output it is, how it is followed, how many lines there are, what is looked for."""
    state = _STATES.get(status.state)
    if state is None:
        state = "following" if following else f"paused{news}"
    lines = f"{count:,} line{'' if count == 1 else 's'}" + (f", {dropped:,} dropped" if dropped else "")
    right = " · ".join(part for part in (found, lines) if part) + " "
    room = max(0, width - len(right) - 1)
    left = shorten(f" {name} ", max(4, room - len(state) - 3))
    tone = {LogState.LOST: "risk", LogState.GONE: "critical"}.get(status.state, "ok" if following else "watch")
    middle = f" {state}"
    gap = max(1, width - cell_len(left) - len(middle) - len(right))
    return Cell(left, "strong"), Cell(middle, tone), Cell(" " * gap), Cell(right, "dim")  # type: ignore[arg-type]


def as_text(lines: Iterable[LogLine], *, stamps: bool) -> str:
    """Lines as they are copied or saved."""
    return "\n".join(f"{line.stamp} {line.text}" if stamps and line.stamp else line.text for line in lines)
