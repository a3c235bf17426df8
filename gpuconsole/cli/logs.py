"""``gpuconsole logs``: a container's output, harmless."""

from __future__ import annotations

import contextlib
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import TextIO

import click

from gpuconsole.cli.context import Settings, pass_settings
from gpuconsole.cli.names import container_argument
from gpuconsole.cli.tables import width_of
from gpuconsole.core.errors import ExitCode
from gpuconsole.services.logtext import LineCleaner
from gpuconsole.services.naming import find

_LONGEST_ON_SCREEN = 8192
_SPAN = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w)")
_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


class _Since(click.ParamType[float]):
    name = "time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        try:
            return since(str(value), now=time.time())
        except ValueError as error:
            self.fail(str(error), param, ctx)


def since(text: str, *, now: float) -> float:
    """Seconds since the epoch of ``10m`` ago, of a date and time, or of such a number itself.

    Raises:
        ValueError: It is none of these.
    """
    text = text.strip()
    if re.fullmatch(r"(?:\d+(?:\.\d+)?(?:ms|s|m|h|d|w))+", text):
        return now - sum(float(amount) * _SECONDS[unit] for amount, unit in _SPAN.findall(text))
    if re.fullmatch(r"\d{9,}(?:\.\d+)?", text):
        return float(text)
    with contextlib.suppress(ValueError, OverflowError):
        return datetime.fromisoformat(text).timestamp()
    raise ValueError(f"{text!r} is no time; write it like 10m, 2h30m, 2026-01-31T12:00 or 2026-01-31T12:00:00Z")


class _Tail(click.ParamType[int | None]):
    name = "count"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int | None:
        if value is None or value == "all":
            return None
        if str(value).isdecimal():
            return int(str(value))
        self.fail(f"{value!r} is neither a number of lines nor 'all'", param, ctx)


@click.command(
    epilog="\b\nExamples:\n  gpuconsole logs train\n  gpuconsole logs -f -n 50 train\n"
    "  gpuconsole logs --since 10m train | grep loss\n  gpuconsole logs --raw train > train.log"
)
@container_argument
@click.option("-f", "--follow", is_flag=True, help="Go on as output comes; ctrl+c ends it.")
@click.option("-n", "--tail", type=_Tail(), default="all", metavar="N", help="The last N lines; 'all' by default.")
@click.option("--since", "start", type=_Since(), metavar="TIME", help="From 10m ago, or from a date and time.")
@click.option("-t", "--timestamps", is_flag=True, help="Begin each line with its time.")
@click.option("--raw", is_flag=True, help="The bytes as they were written.")
@pass_settings
def logs(
    settings: Settings,
    name: str,
    follow: bool,
    tail: int | None,
    start: float | None,
    timestamps: bool,
    raw: bool,
) -> None:
    """Print a container's output; its standard error goes to standard error.

    Escape sequences and control characters are removed, also when the output is piped, and of a progress bar the last
    state is shown. On a terminal very long lines are cut. --raw gives the bytes as they are: a terminal obeys them.
    """
    engine = settings.session().engine
    container = find(engine, name)
    stream = engine.logs(container.id, follow=follow, tail=tail, since=start, timestamps=timestamps)
    try:
        if raw:
            _copy(stream)
        else:
            write_clean(stream, timestamps=timestamps, follow=follow)
    except KeyboardInterrupt:
        # The usual way to leave; the shell is told, the person need not be.
        raise click.exceptions.Exit(int(ExitCode.INTERRUPTED)) from None
    finally:
        stream.close()


def _copy(stream: Iterable[tuple[str, bytes]]) -> None:
    for channel, chunk in stream:
        out = sys.stdout.buffer if channel == "stdout" else sys.stderr.buffer
        out.write(chunk)
        out.flush()


def write_clean(stream: Iterable[tuple[str, bytes]], *, timestamps: bool = False, follow: bool = False) -> None:
    """Write the stream's text, cleaned, each channel to its own; with ``follow`` at once, progress bars included."""
    sink, finish = cleaning_sink(timestamps=timestamps, follow=follow)
    for channel, chunk in stream:
        sink(channel, chunk)
    finish()


def cleaning_sink(
    *, timestamps: bool = False, follow: bool = True
) -> tuple[Callable[[str, bytes], None], Callable[[], None]]:
    """What takes pieces of output and writes them cleaned, and what is called at the end."""
    channels = {
        "stdout": _Channel(sys.stdout, timestamps=timestamps, follow=follow),
        "stderr": _Channel(sys.stderr, timestamps=timestamps, follow=follow),
    }
    last = "stdout"

    def sink(channel: str, chunk: bytes) -> None:
        nonlocal last
        if channel != last:
            channels[last].rest()
        last = channel
        channels[channel].write(chunk)

    def finish() -> None:
        for one in channels.values():
            one.finish()

    return sink, finish


class _Channel:
    """One of our two outputs, with what has been written of its current line."""

    def __init__(self, file: TextIO, *, timestamps: bool, follow: bool) -> None:
        self._out = file.buffer
        self._encoding = file.encoding or "utf-8"
        self._cleaner = LineCleaner(timestamps=timestamps)
        self._on_screen = file.isatty()
        self._follow = follow
        self._length = 0
        """Characters of the line that is being written."""
        self._shown = False
        """An unfinished line stands on the screen, to be written over."""

    def write(self, chunk: bytes) -> None:
        """Write what ``chunk`` completes."""
        text = "".join(self._cut(line) for line in self._cleaner.feed(chunk))
        if text:
            self.rest()
            self._put(text)
        if self._follow:
            self._show_partial()
            self._flush()

    def rest(self) -> None:
        """Take an unfinished line off the screen, before something else is written."""
        if self._shown:
            self._put("\r\x1b[K")
            self._shown = False
        self._flush()

    def finish(self) -> None:
        """Write the unfinished line."""
        self.rest()
        self._put("".join(self._cut(line) for line in self._cleaner.finish()))
        self._flush()

    def _show_partial(self) -> None:
        """Show a progress bar's state now; only a terminal can take it back."""
        partial = self._cleaner.partial if self._on_screen and not self._length else ""
        if not partial:
            return
        columns = shutil.get_terminal_size().columns
        shown = partial[: columns - 1]
        while width_of(shown) > columns - 1:
            shown = shown[:-1]
        self._put(f"\r\x1b[K{shown}")
        self._shown = True

    def _cut(self, piece: str) -> str:
        """``piece`` of a line, without what makes the line too long for a screen."""
        if not self._on_screen:
            return piece
        body, ended = piece.removesuffix("\n"), piece.endswith("\n")
        shown = body[: max(0, _LONGEST_ON_SCREEN - self._length)]
        self._length += len(body)
        if not ended:
            return shown
        hidden, self._length = self._length - _LONGEST_ON_SCREEN, 0
        return f"{shown}… ({hidden:,} more characters; --raw shows all)\n" if hidden > 0 else f"{shown}\n"

    def _put(self, text: str) -> None:
        self._out.write(text.encode(self._encoding, "replace"))

    def _flush(self) -> None:
        self._out.flush()
