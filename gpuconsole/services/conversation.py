"""A person at this terminal talks to a process in a container.

Docker's own command is not needed for it, so gpuconsole works where only the engine's socket is; and unlike that
command this one can be left at any time, even when the engine is frozen.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import termios
import threading
import tty
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import TYPE_CHECKING

from gpuconsole.core.errors import ConsoleError

if TYPE_CHECKING:
    from gpuconsole.engine.protocol import InteractiveProcess

_OUTPUT_ENDED = 0
"""What the reading thread writes into the pipe that wakes the loop; other numbers are signals."""
_CHUNK = 65536
_CROWDED_S = 0.02
_MOST_WAITING = 16
"""Pieces of input the engine has not taken yet, beyond which no more is read."""
_REFUSALS = (b"OCI runtime exec failed", b"unable to find ", b"no users found", b"no groups found")
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGWINCH)
_ENTER_SCREEN, _LEAVE_SCREEN = b"\x1b[?1049h", b"\x1b[?1049l"
_CALM = b"\x1b[?1000;1002;1003;1006;2004l\x1b[?1l\x1b>\x1b[?25h\x1b[0m\r\n"
"""Mouse reports, bracketed paste and cursor modes off: what an abandoned program may have left on."""

Sink = Callable[[str, bytes], None]
"""Takes ``("stdout" | "stderr", bytes)``."""


class Outcome(StrEnum):
    """How a conversation ended."""

    ENDED = "ended"
    """Its output ended; that the process has ended too, its exit code says."""
    DETACHED = "detached"
    """The person left, and the process goes on."""
    HUNG_UP = "hung-up"
    """Our terminal went away."""
    TERMINATED = "terminated"
    """We were told to stop."""


def terminal_size(fd: int = 0) -> tuple[int, int]:
    """Rows and columns of a terminal; 24×80 when it does not say."""
    try:
        size = os.get_terminal_size(fd)
    except OSError:
        return 24, 80
    return (size.lines or 24), (size.columns or 80)


def write_through(channel: str, data: bytes) -> None:
    """Write bytes as they are to our own standard output or standard error."""
    fd = 1 if channel == "stdout" else 2
    while data:
        data = data[os.write(fd, data) :]


class Conversation:
    """Keys go in, output comes out, until one side ends it.

    Args:
        process: The other side.
        keys: What the person types to leave; empty when there are no such keys.
        terminal: Our terminal is given to the process: raw keys, its size.
        sink: Takes the output.
    """

    def __init__(self, process: InteractiveProcess, *, keys: bytes, terminal: bool, sink: Sink = write_through) -> None:
        self._process = process
        self._keys = keys
        self._terminal = terminal
        self._sink = sink
        self._typed = b""
        self._failure: BaseException | None = None
        self._screen_tail = b""
        self._other_screen = False
        self._resized = threading.Event()
        self._lock = threading.Lock()
        self._over = False
        self.refusal = b""
        """What the engine may have written in the place of output, since the program could not be started; kept back,
        and only the exit code can tell."""

    def run(self) -> Outcome:
        """Talk until it ends; the terminal is as it was afterwards.

        Raises:
            ConsoleError: The connection failed.
        """
        # Where the person's own shell would see ctrl+c, the process does, and nothing may be lost in between.
        with _woken() as (wakeup, waker), _raw(0) if self._terminal else contextlib.nullcontext():
            threading.Thread(target=self._read_output, args=(waker,), name="output", daemon=True).start()
            if self._terminal:
                threading.Thread(target=self._follow_size, name="size", daemon=True).start()
            try:
                outcome = self._loop(wakeup)
            finally:
                with self._lock:  # the pipe is closed next, and its number may be given to another file
                    self._over = True
                self._resized.set()
            if self._terminal and outcome is not Outcome.ENDED:
                self._calm_terminal()
        self._process.close()
        if isinstance(self._failure, ConsoleError) and outcome is Outcome.ENDED:
            raise self._failure
        return outcome

    def _loop(self, wakeup: int) -> Outcome:
        stdin_open = True
        while True:
            crowded = self._process.backlog > _MOST_WAITING
            watched = [wakeup, 0] if stdin_open and not crowded else [wakeup]
            ready, _, _ = select.select(watched, [], [], _CROWDED_S if crowded else None)
            if wakeup in ready and (outcome := self._heed(os.read(wakeup, 256))) is not None:
                return outcome
            if 0 not in ready:
                continue
            data = self._typed_now()
            if not data:
                self._process.close_input()
                stdin_open = False
                if self._terminal:
                    return Outcome.HUNG_UP
            elif self._pass_on(data):
                return Outcome.DETACHED

    def _heed(self, numbers: bytes) -> Outcome | None:
        """Act on signals and on the end of the output."""
        if signal.SIGHUP in numbers:
            return Outcome.HUNG_UP
        if signal.SIGTERM in numbers:
            return Outcome.TERMINATED
        if signal.SIGWINCH in numbers:
            self._resized.set()
        if _OUTPUT_ENDED in numbers:
            return Outcome.ENDED
        return Outcome.DETACHED if signal.SIGINT in numbers else None

    def _typed_now(self) -> bytes:
        try:
            return os.read(0, _CHUNK)
        except OSError:  # the terminal is gone
            return b""

    def _pass_on(self, data: bytes) -> bool:
        """Give what was typed to the process; say whether it was the keys to leave by.

        Their last one is kept back. The engine, which looks for them too, takes them in a started process for a
        failure and kills it (Docker 20.10 to 26.1 at least); a connection that is closed leaves it alone.
        """
        seen = self._typed + data
        end = seen.find(self._keys) + len(self._keys) if self._keys and self._keys in seen else None
        if end is None:
            self._typed = seen[-len(self._keys) + 1 :] if len(self._keys) > 1 else b""
            self._process.write(data)
            return False
        before = data[: max(0, end - len(self._typed) - 1)]
        if before:
            self._process.write(before)
        return True

    def _read_output(self, waker: int) -> None:
        """Pass output on, on a thread of its own."""
        first = True
        try:
            for channel, data in self._process.output:
                if first and data.startswith(_REFUSALS):
                    self.refusal = data
                elif not self._over:
                    self._watch_screen(data)
                    self._sink(channel, data)
                first = False
        except (ConsoleError, OSError) as error:
            self._failure = error
        with self._lock, contextlib.suppress(OSError):
            if not self._over:
                os.write(waker, bytes([_OUTPUT_ENDED]))

    def _watch_screen(self, data: bytes) -> None:
        """Remember whether a full-screen program has the terminal."""
        seen = self._screen_tail + data
        entered, left = seen.rfind(_ENTER_SCREEN), seen.rfind(_LEAVE_SCREEN)
        if entered != left:
            self._other_screen = entered > left
        self._screen_tail = seen[-len(_ENTER_SCREEN) + 1 :]

    def _calm_terminal(self) -> None:
        with contextlib.suppress(OSError):
            write_through("stdout", (_LEAVE_SCREEN if self._other_screen else b"") + _CALM)

    def _follow_size(self) -> None:
        """Tell the process the terminal's size after each change; the newest is what counts."""
        while True:
            self._resized.wait()
            self._resized.clear()
            if self._over:
                return
            rows, columns = terminal_size()
            self._process.resize(rows=rows, columns=columns)


@contextlib.contextmanager
def _raw(fd: int) -> Iterator[None]:
    """Every key as it is typed, and the terminal's settings as they were afterwards, whatever happens."""
    before = termios.tcgetattr(fd)
    # TCSADRAIN, since flushing would lose keys typed ahead.
    tty.setraw(fd, termios.TCSADRAIN)
    try:
        yield
    finally:
        with contextlib.suppress(termios.error):
            termios.tcsetattr(fd, termios.TCSADRAIN, before)


@contextlib.contextmanager
def _woken() -> Iterator[tuple[int, int]]:
    """A pipe (to read, to write) into which signals write their numbers; the signals do nothing else meanwhile."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    # What the caller ignores stays ignored: nohup, and jobs in the background of a shell without job control.
    heard = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    handlers = {number: signal.signal(number, lambda *_: None) for number in heard}
    previous = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    sys.stdout.flush()
    try:
        yield reading, writing
    finally:
        signal.set_wakeup_fd(previous)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        os.close(reading)
        os.close(writing)
