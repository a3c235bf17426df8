"""A witness: what the console, tmux and `status` say of a memory, look by look, until its holder is dead, and after."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.rig.terminal import Terminal
from tests.tui.in_tmux import wait

GIB = 2**30
_FULL = re.compile(r"\b(risk|critical)\b")
"""The states that announce it."""
_CONSOLE, _DESK = "watch", "desk"


@dataclass(frozen=True, slots=True)
class Seen:
    """One look at all places."""

    at: float
    """Seconds since the witness sat down."""
    used_gib: float | None
    state: str
    """As `status --json` has it."""
    eta_s: float | None
    line: str
    """What `status --tmux` gives for the status bar, without colours."""
    console: str
    """The console's screen, which nobody has in front."""
    belled: bool
    """tmux marks the console's window."""
    message: str
    """The last message that tmux showed to who sits in the other window; empty while there was none."""

    @property
    def words(self) -> str:
        """The console's words, however they are wrapped."""
        return " ".join(re.sub("[▌│]", " ", self.console).split())


class Witness:
    """Sits in one window of tmux while the console is open in another.

    Args:
        tmux: The program with the socket of a private server.
        env: The environment of all: it leads to the GPUs and the engine.
        folder: Ends what is left when it is gone.
        gpu: Index of the GPU that is watched.
    """

    def __init__(self, tmux: Sequence[str], env: Mapping[str, str], folder: Path, *, gpu: int = 0) -> None:
        self._tmux, self._env, self._gpu = list(tmux), {**env, "TERM": "xterm-256color"}, gpu
        self._env.pop("TMUX", None)
        self.terminal = Terminal(
            [*self._tmux, "-f", "/dev/null", "-u", "new-session", "-s", "witness", "-n", _DESK, "sh"],
            env=self._env, folder=folder, columns=120, rows=36,
        )  # fmt: skip
        wait(lambda: _DESK in self.ask("list-windows", "-F", "#{window_name}"), what="tmux")
        self.ask("set-option", "-g", "monitor-bell", "on")
        self.ask("set-option", "-g", "display-time", "4000")
        command = shlex.join([sys.executable, "-m", "gpuconsole"])
        self.ask("new-window", "-d", "-n", _CONSOLE, command)
        wait(lambda: "[Containers" in self.screen(), what="the console", shown=self.screen)
        self.began = time.monotonic()
        self.seen: list[Seen] = []

    def ask(self, *arguments: str) -> str:
        """What a command of tmux prints."""
        done = subprocess.run([*self._tmux, *arguments], env=self._env, capture_output=True, text=True, check=False)
        return done.stdout

    def screen(self) -> str:
        """What the console shows."""
        return self.ask("capture-pane", "-p", "-t", f"witness:{_CONSOLE}")

    def run(self, *arguments: str) -> str:
        """What a command of gpuconsole prints."""
        command = [sys.executable, "-m", "gpuconsole", *arguments]
        return subprocess.run(command, env=self._env, capture_output=True, text=True, check=False).stdout

    def look(self) -> Seen:
        """Look at all places once."""
        gpu: dict[str, Any] = next(
            (each for each in json.loads(self.run("status", "--json"))["gpus"] if each["index"] == self._gpu), {}
        )
        used, flags = gpu.get("memory_used_bytes"), self.ask("list-windows", "-F", "#{window_name} #{window_bell_flag}")
        told = [line for line in self.ask("show-messages").splitlines() if "message: gpuconsole: " in line]
        seen = Seen(
            at=time.monotonic() - self.began,
            used_gib=None if used is None else used / GIB,
            state=str(gpu.get("state")),
            eta_s=gpu.get("eta_s"),
            line=re.sub(r"#\[[^]]*\]", "", self.run("status", "--tmux")).strip(),
            console=self.screen(),
            belled=f"{_CONSOLE} 1" in flags,
            message=told[0].partition("message: ")[2] if told else "",  # the newest stands first
        )
        self.seen.append(seen)
        return seen

    def until(self, true: Callable[[Seen], object], *, seconds: float) -> Seen:
        """Look until ``true`` holds of a look; that look."""
        end = time.monotonic() + seconds
        while not true(seen := self.look()):
            assert time.monotonic() < end, f"not within {seconds:.0f} s; seen last:\n{seen}"
            time.sleep(0.2)
        return seen

    def first(self, true: Callable[[Seen], object]) -> Seen | None:
        """The first look of which ``true`` holds."""
        return next((each for each in self.seen if true(each)), None)

    def press(self, *keys: str) -> None:
        """Press keys in the console."""
        self.ask("send-keys", "-t", f"witness:{_CONSOLE}", *keys)

    def close(self) -> None:
        """Leave."""
        self.ask("kill-server")
        self.terminal.close()


def announced_in_console(seen: Seen) -> bool:
    """The console names a memory that runs full."""
    return _FULL.search(seen.console) is not None


def announced_in_status(seen: Seen) -> bool:
    """`status` does, as JSON and in the status bar."""
    return _FULL.fullmatch(seen.state) is not None and _FULL.search(seen.line) is not None


def announced_in_tmux(seen: Seen) -> bool:
    """tmux told who sits in another window."""
    return bool(seen.message)


def announced(seen: Seen) -> bool:
    """Anybody said anything."""
    return (
        any(place(seen) for place in (announced_in_console, announced_in_status)) or seen.belled or bool(seen.message)
    )
