"""Looking again every few seconds: redrawn in place on a terminal, one after the other elsewhere."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_ENTER = "\x1b[?1049h\x1b[?25l\x1b[?7l"
"""The other screen, no cursor, no wrapping."""
_LEAVE = "\x1b[?7h\x1b[?25h\x1b[?1049l"
_HOME = "\x1b[H"
_TO_END_OF_LINE = "\x1b[K"
_TO_END_OF_SCREEN = "\x1b[J"


def repeat(show: Callable[[], None], *, every_s: float) -> None:
    """Call ``show`` every ``every_s`` seconds until ctrl+c or nobody reads: both end a watch, neither is a failure."""
    try:
        while True:
            due = time.monotonic() + every_s
            show()
            time.sleep(max(0.0, due - time.monotonic()))
    except KeyboardInterrupt:
        return
    except BrokenPipeError:
        os.dup2(
            os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno()
        )  # what is still buffered would fail again at exit


@contextmanager
def screen() -> Iterator[Callable[[str], None]]:
    """A function that shows a text in place of the one before; the terminal is left as it was, on SIGTERM too.

    Where stdout is no terminal, or one that obeys nothing, texts follow each other, an empty line between.
    """
    if not sys.stdout.isatty() or os.environ.get("TERM") in (None, "", "dumb"):
        yield _append
        return
    before = signal.signal(signal.SIGTERM, _leave)
    try:
        _write(_ENTER)
        yield _draw
    finally:
        _write(_LEAVE)
        signal.signal(signal.SIGTERM, before)


def _leave(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def _append(text: str) -> None:
    _write(f"{text}\n\n")


def _draw(text: str) -> None:
    lines = text.split("\n")
    height = shutil.get_terminal_size().lines
    if len(lines) > height:
        hidden = len(lines) - height + 1
        lines = [*lines[: height - 1], f"({hidden} more lines: enlarge the terminal)"]
    _write(_HOME + f"{_TO_END_OF_LINE}\n".join(lines) + _TO_END_OF_LINE + _TO_END_OF_SCREEN)


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
