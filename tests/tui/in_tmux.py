"""The console in a real terminal: a shell in a tmux pane on the rig, and the program started in it as a person does."""

from __future__ import annotations

import os
import re
import shlex
import signal
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.rig.nvml import NvmlBox
from tests.rig.tmux import Pane, Tmux

PATIENCE_S = 60.0
"""CI is slow and noisy."""
_MAIN = "[Containers"
LEFT = re.compile(r"^left (\d+)", re.MULTILINE)
"""What the shell says of the exit code; the line that was typed has ``left $?`` in it."""


def wait(
    true: Callable[[], object], *, what: str, seconds: float = PATIENCE_S, shown: Callable[[], str] = lambda: ""
) -> None:
    """Wait until ``true`` holds; ``shown`` gives what is told when it never does."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"not within {seconds:.0f} s: {what}\n{shown()}"
        time.sleep(0.05)


def alive(pid: int) -> bool:
    """Whether a process lives, unreaped ones not counted."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def below(pid: int) -> list[int]:
    """The processes below a process, however deep."""
    try:
        children = [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []
    return [each for child in children for each in (child, *below(child))]


@dataclass(slots=True)
class Seat:
    """A person's terminal: a shell in a pane, with the engine and the GPUs of the test."""

    pane: Pane
    shell: int
    """Its pid."""

    def type(self, line: str) -> None:
        """Type a line into the shell."""
        self.pane.send(line)
        self.pane.keys("Enter")

    def sane(self) -> str:
        """What the terminal's settings are, as ``stty`` has them; asked of the shell."""
        self.pane.keys("C-l")
        self.type("clear; stty -g; echo asked-$?")
        shown = self.pane.wait_for("asked-0", patience_s=PATIENCE_S)
        return next(line for line in shown.splitlines() if line.count(":") > 10)

    def mend(self) -> None:
        """Put right what a program that was killed left the terminal as, as a person does: typed blind."""
        # An enter that is typed is only one again once stty is done: what is typed next has to wait for it.
        self.pane.send("stty sane; printf '\\033[?1049l'; clear; echo sane-$((40+2))")
        self.pane.keys("C-j")
        self.pane.wait_for("sane-42", patience_s=PATIENCE_S)

    def start(
        self, *arguments: str, program: tuple[str, ...] = ("-m", "gpuconsole"), until: str | re.Pattern[str] = _MAIN
    ) -> int:
        """Start the console, wait for its main screen, and give its pid; 0 when it has ended."""
        self.type(f"clear; {shlex.join([sys.executable, *program, *arguments])}; echo left $?")
        self.pane.wait_for(until, patience_s=PATIENCE_S)
        return next(iter(below(self.shell)), 0)

    def left(self) -> int:
        """Wait until it has ended; its exit code."""
        found = LEFT.search(self.pane.wait_for(LEFT, patience_s=PATIENCE_S))
        assert found is not None
        return int(found[1])

    def history(self) -> str:
        """What the pane shows, and what was written before it."""
        return self.pane.server.run("capture-pane", "-p", "-S", "-500", "-t", self.pane.id)

    @property
    def modes(self) -> dict[str, str]:
        """What the pane was told: the other screen, mouse reports, cursor keys, the cursor."""
        names = ("alternate_on", "mouse_any_flag", "keypad_cursor_flag", "cursor_flag")
        told = self.pane.server.run("display-message", "-p", "-t", self.pane.id, " ".join(f"#{{{n}}}" for n in names))
        return dict(zip(names, told.split(), strict=True))


CALM = {"alternate_on": "0", "mouse_any_flag": "0", "keypad_cursor_flag": "0", "cursor_flag": "1"}
"""The modes of a terminal that nobody has."""


def seat(
    tmux: Tmux,
    host: str,
    nvml: NvmlBox,
    home: Path,
    *,
    columns: int = 80,
    rows: int = 24,
    more: Mapping[str, str] | None = None,
) -> Seat:
    """A person's terminal on the engine at ``host`` and the GPUs of ``nvml``."""
    inherited = {
        name: value for name, value in os.environ.items() if name.startswith(("XDG_", "DOCKER_CONFIG", "GPUCONSOLE_L"))
    }
    env: Mapping[str, str] = {
        **inherited,
        **{name: nvml.env()[name] for name in ("LD_LIBRARY_PATH", "GPUCONSOLE_NVML_STATE")},
        "DOCKER_HOST": host,
        "PS1": "$ ",
        "PYTHONPATH": str(Path(__file__).parents[2]),
        **(more or {}),
    }
    pane = tmux.session("sh", columns=columns, rows=rows, env=env, folder=home)
    pane.wait_for("$", patience_s=PATIENCE_S)
    pid = int(tmux.run("display-message", "-p", "-t", pane.id, "#{pane_pid}"))
    return Seat(pane, [pid, *below(pid)][-1])  # tmux starts a command by a shell of its own


def signalled(pid: int, number: signal.Signals) -> float:
    """Send a signal and wait for the process's end; the seconds it took."""
    began = time.monotonic()
    os.kill(pid, number)
    wait(lambda: not alive(pid), what=f"its end after {number.name}")
    return time.monotonic() - began
