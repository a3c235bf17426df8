"""A person at a terminal, whose keys are counted and who keeps what was seen."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Collection
from pathlib import Path

from tests.tui.in_tmux import PATIENCE_S, wait

MOST_KEYS = 10
"""From a free GPU to a launched, checked and joined container."""
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_NAMES = {"\r": "enter", "\x02": "ctrl+b", "\x1b": "esc"}


def inert(text: str) -> str:
    """The text without what tells one machine from another, each line as long as it was."""
    name = socket.gethostname().partition(".")[0]
    if len(name) > 2:
        text = text.replace(name, "gpu-box".ljust(len(name))[: len(name)])
    return _UUID.sub("00000000-0000-4000-8000-000000000000", text)


class Person:
    """Types, counts the keys, and keeps what was seen after each.

    Args:
        front: Gives what the window in front shows.
        send: Types into the terminal.
    """

    def __init__(self, front: Callable[[], str], send: Callable[[str], None]) -> None:
        self._front = front
        self._send = send
        self.keys: list[str] = []
        self._recording: list[str] = []

    def press(self, key: str, why: str) -> None:
        """Press one key."""
        self.keys.append(_NAMES.get(key, key))
        self._note(f"key {len(self.keys)}: {self.keys[-1]}  ({why})")
        self._send(key)

    def see(self, *words: str, seconds: float = PATIENCE_S) -> str:
        """Wait until the window in front shows the words; what it shows."""
        wait(lambda: all(word in self._front() for word in words), what=f"{words}", seconds=seconds, shown=self._front)
        shown = self._front()
        self._note(shown.rstrip())
        return shown

    def verdict(self) -> str:
        """Wait until the check in the list of runs has ended; its state."""

        def states() -> list[str]:
            return [line.split()[2] for line in self._front().splitlines() if line.split()[:1] == ["check"]]

        wait(lambda: set(states()) & {"ok", "warn", "failed"}, what="the end of the check", seconds=3 * PATIENCE_S,
             shown=self._front)  # fmt: skip
        self._note(self._front().rstrip())
        return states()[0]

    def _note(self, text: str) -> None:
        self._recording.append(text)

    def write(self, path: Path) -> None:
        """Write the recording."""
        path.write_text("\n\n".join([*self._recording, f"{len(self.keys)} keys: {' '.join(self.keys)}"]) + "\n")


def from_a_free_gpu(person: Person, *, verdicts: Collection[str], offered: str = "pytorch") -> None:
    """Launch what the form proposes, check it, and join it.

    Args:
        person: Sits before the main screen of a console without containers.
        verdicts: How the check may end.
        offered: A word of the image that the form proposes.
    """
    person.see("✓ free", "No containers yet")
    person.press("n", "launch a container")
    person.see(offered, "docker run")
    person.press("\r", "as it is proposed")
    person.see("leaves it running")
    person.press("\x02", "tmux:")
    person.press("p", "back to the console")
    person.see("[Containers 1]", f"{offered}-")
    person.press("c", "check it")
    person.press("4", "how it went")
    found = person.verdict()
    assert found in verdicts, f"the check ended with {found}, not {' or '.join(verdicts)}"
    person.press("1", "the containers")
    person.see("[Containers 1]", f"{offered}-")
    person.press("a", "join it")
    person.see("leaves it running")
    assert len(person.keys) <= MOST_KEYS, person.keys
