"""What is typed, read from the terminal: a wait without a clock, and pastes that are no keys."""

from __future__ import annotations

import codecs
import contextlib
import os
import selectors
import signal
import time
from collections.abc import Iterable
from typing import Any

from textual import constants
from textual.drivers.linux_driver import LinuxDriver
from textual.message import Message

from gpuconsole.tui.pasting import PasteParser

_TURN_S = 0.1
"""So often the parser is asked whether an escape character was the Escape key, as long as one may be open."""
_PIECE = 4096


class Terminal(LinuxDriver):
    """Textual's driver, whose input sleeps until something is typed.

    Textual's own looks ten times a second whether an escape character is still alone, for as long as the program is
    open: a tenth of what the console takes. Here that ends when nothing was typed for a while.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._woken, self._waker = os.pipe()
        os.set_blocking(self._waker, False)
        self._open_for_s = max(1.0, 2 * constants.ESCAPE_DELAY)

    def _sigtstp_application(self, *_: object) -> None:
        """Stop, with the terminal as it was before, as soon as nothing else is being done.

        A handler comes in the midst of anything: of writing, say, whose lock it would wait for, for ever.
        """
        if self._auto_restart and self._reads():
            self._loop.call_soon_threadsafe(self._stop)
        else:  # the terminal is somebody else's
            os.kill(os.getpid(), signal.SIGSTOP)

    def _stop(self) -> None:
        if self._reads():
            self.suspend_application_mode()
            self._must_signal_resume = True
        os.kill(os.getpid(), signal.SIGSTOP)

    def _sigcont_application(self, *_: object) -> None:
        """Go on after a stop, as soon as nothing else is being done; in the background, stop again before it draws."""
        if self._auto_restart and self._reads() and self._is_behind():
            os.kill(os.getpid(), signal.SIGSTOP)
        elif self._auto_restart and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._go_on)

    def _go_on(self) -> None:
        """Have the terminal as the console needs it: a shell has had it meanwhile.

        Textual takes it without asking whether it has it: a second thread would read, and one of the two for ever.
        """
        if self._reads():  # stopped without being asked before
            self.suspend_application_mode()
            self._must_signal_resume = True
        if self._must_signal_resume:  # else it is being left
            self.resume_application_mode()

    def _reads(self) -> bool:
        """Whether it has the terminal."""
        return self._key_thread is not None and self._key_thread.is_alive()

    def _is_behind(self) -> bool:
        """Whether the shell has sent it to the background."""
        try:
            return os.tcgetpgrp(self.fileno) != os.getpgrp()
        except OSError:
            return False

    def disable_input(self) -> None:
        """End the reading."""
        with contextlib.suppress(BlockingIOError):  # it has been woken often enough
            os.write(self._waker, b"\0")
        super().disable_input()

    def run_input_thread(self) -> None:
        """Read what is typed and pass it on, until input is disabled."""
        parser = PasteParser(self._debug)
        # A terminal may send anything; what is no text is shown as such, and ends nothing.
        decode = codecs.getincrementaldecoder("utf-8")(errors="replace").decode
        open_until = time.monotonic() + self._open_for_s
        with selectors.SelectSelector() as selector:  # of all kinds this one takes a terminal everywhere
            selector.register(self.fileno, selectors.EVENT_READ)
            selector.register(self._woken, selectors.EVENT_READ)
            while not self.exit_event.is_set():
                ready = selector.select(_TURN_S if time.monotonic() < open_until else None)
                if ready:
                    open_until = time.monotonic() + self._open_for_s
                for key, _ in ready:
                    piece = _read(key.fd)
                    if not piece:  # the terminal is gone, and would be ready for ever
                        selector.unregister(key.fd)
                    elif key.fd == self.fileno and (text := decode(piece)):
                        self._pass_on(parser.feed(text))
                self._pass_on(parser.tick())

    def _pass_on(self, messages: Iterable[Message]) -> None:
        for message in messages:
            self.process_message(message)


def _read(fd: int) -> bytes:
    try:
        return os.read(fd, _PIECE)
    except OSError:  # a terminal that is being taken away
        return b""
