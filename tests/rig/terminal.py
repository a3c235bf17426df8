"""A program in a terminal of our own: what it writes, what we type, and the line that breaks."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.rig.places import MARK, RigError


def _take_terminal() -> None:
    """Make standard input the controlling terminal of the new session."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


_READING = {(number, "0x0") for number in ("0", "63")} | {(number, "0x1") for number in ("23", "270", "72")}
"""read(0, …) and select or pselect6 over it, as x86-64 and aarch64 number them."""


class Terminal:
    """A pseudo-terminal with one program in it."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        folder: Path,
        columns: int = 80,
        rows: int = 24,
    ) -> None:
        """Start the program; `folder` is the rig's, whose end it does not survive."""
        self._master, slave = pty.openpty()
        self.resize(columns, rows)
        self.process = subprocess.Popen(
            argv,
            env={**env, MARK: str(folder)},
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=_take_terminal,
        )
        os.close(slave)
        self._written = bytearray()
        self._wake_reader, self._wake = os.pipe()
        self._reader = threading.Thread(target=self._read, daemon=True, name="terminal")
        self._reader.start()

    def _read(self) -> None:
        while True:
            ready, _, _ = select.select([self._master, self._wake_reader], [], [])
            if self._wake_reader in ready:
                return
            try:
                piece = os.read(self._master, 65536)
            except OSError:  # the program closed its end
                return
            if not piece:
                return
            self._written += piece

    @property
    def text(self) -> str:
        """Give everything written so far, escape sequences included."""
        return bytes(self._written).decode(errors="replace")

    def resize(self, columns: int, rows: int) -> None:
        """Give the terminal another size; the program is told."""
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def send(self, text: str) -> None:
        """Type."""
        os.write(self._master, text.encode())

    def wait_for(self, text: str, *, patience_s: float = 60) -> None:
        """Wait until a text has been written."""
        deadline = time.monotonic() + patience_s
        while text not in self.text:
            if time.monotonic() > deadline:
                raise RigError(f"{text!r} does not appear; written so far:\n{self.text[-2000:]}")
            if self.process.poll() is not None and not self._reader.is_alive() and text not in self.text:
                raise RigError(f"ended with {self.process.returncode} before {text!r}:\n{self.text[-2000:]}")
            time.sleep(0.03)

    def wait_until_it_reads(self, *, patience_s: float = 60) -> None:
        """Wait until the program stands in a call that takes what is typed."""
        deadline = time.monotonic() + patience_s
        while (standing := self._call()) not in _READING:
            if time.monotonic() > deadline:
                raise RigError(f"it does not read but stands in {standing}; written so far:\n{self.text[-2000:]}")
            time.sleep(0.03)

    def _call(self) -> tuple[str, ...]:
        """Give the system call that its first thread is in and that call's first argument."""
        try:
            return tuple(Path(f"/proc/{self.process.pid}/syscall").read_text().split()[:2])
        except OSError as error:
            return (str(error),)

    def wait(self, *, patience_s: float = 60) -> int:
        """Wait for the program's end and give its exit code."""
        return self.process.wait(timeout=patience_s)

    def freeze(self) -> None:
        """Stop the program without ending it."""
        self.process.send_signal(signal.SIGSTOP)

    def cut(self) -> None:
        """Kill the program at once, as a lost connection does."""
        self.process.kill()
        self.process.wait()

    def hang_up(self) -> None:
        """Take the terminal away from under the program."""
        self._let_go()
        os.close(self._master)
        self._master = -1

    def _let_go(self) -> None:
        # The reader first: it would go on with whatever file gets the closed one's number.
        os.write(self._wake, b".")
        self._reader.join()

    def close(self) -> None:
        """End the program and close the terminal."""
        if self.process.poll() is None:
            self.cut()
        self._let_go()
        for end in (self._master, self._wake, self._wake_reader):
            if end >= 0:
                os.close(end)
