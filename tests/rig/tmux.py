"""A private tmux server: own socket, no configuration, panes of a known size."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.rig.debian import Toolset, library_path, unpacked
from tests.rig.owner import Daemon, Rig, wait_until
from tests.rig.places import RigError, tail
from tests.rig.terminal import Terminal

_TOOLS = Toolset(
    name="tmux",
    suite="bookworm",
    packages=("tmux",),
    programs=("usr/bin/tmux",),
    libraries=("libevent-core-2.1-7", "libutempter0", "libtinfo6"),
)


@dataclass(frozen=True, slots=True)
class Pane:
    """One pane of a private server."""

    server: Tmux
    id: str

    def send(self, text: str) -> None:
        """Type text as it is."""
        self.server.run("send-keys", "-t", self.id, "-l", "--", text)

    def keys(self, *names: str) -> None:
        """Press keys by tmux's names: Enter, Escape, C-c, Up …"""
        self.server.run("send-keys", "-t", self.id, *names)

    def capture(self, *, escapes: bool = False) -> str:
        """Give what the pane shows."""
        return self.server.run("capture-pane", "-p", "-t", self.id, *(["-e"] if escapes else []))

    def wait_for(self, text: str | re.Pattern[str], *, patience_s: float = 60) -> str:
        """Wait until the pane shows a text, or something of a pattern, and give what it shows.

        A line that was typed into a shell is on the pane before what it prints: of a text that stands in the
        line itself, ask by a pattern that only the answer fits.
        """
        pattern = re.compile(re.escape(text)) if isinstance(text, str) else text
        deadline = time.monotonic() + patience_s
        while not pattern.search(shown := self.capture()):
            if time.monotonic() > deadline:
                raise RigError(f"{pattern.pattern!r} does not appear; the pane shows:\n{shown}")
            time.sleep(0.05)
        return shown

    def resize(self, columns: int, rows: int) -> None:
        """Give the pane's window another size."""
        self.server.run("resize-window", "-t", self.id, "-x", str(columns), "-y", str(rows))

    @property
    def command(self) -> str:
        """Give the name of the program in the foreground."""
        return self.server.run("display-message", "-p", "-t", self.id, "#{pane_current_command}").strip()


class Tmux:
    """A tmux server of our own; its panes start with the environment it was given, as a user's do."""

    def __init__(self, rig: Rig, *, term: str = "tmux-256color", env: Mapping[str, str] | None = None) -> None:
        """Start the server.

        Args:
            rig: whose supervisor runs it.
            term: TERM inside its panes.
            env: environment of the server, which panes inherit; HOME is private whatever it says.
        """
        self.rig = rig
        self.folder = rig.subfolder("t")
        self.socket = self.folder / "socket"
        installed = shutil.which("tmux")
        root = None if installed else unpacked(_TOOLS)
        self._program = installed or f"{root}/usr/bin/tmux"
        self._environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            **(env or {}),
            "HOME": str(self.folder),
            "SHELL": "/bin/sh",
            "TMUX_TMPDIR": str(self.folder),
            **(library_path(root) if root else {}),
        }
        log = self.folder / "log"
        argv = [self._program, "-S", str(self.socket), "-f", "/dev/null", "-D"]
        self.daemon: Daemon = rig.start(argv, env=self._environment, log=log)
        try:
            wait_until(self._answers, what="tmux", daemon=self.daemon)
        except RigError as error:
            raise RigError(f"{error}: {tail(log)}") from error
        for option, value in (("default-terminal", term), ("status", "off")):
            self.run("set-option", "-g", option, value)

    def _answers(self) -> bool:
        """Tell whether the server is up: its socket is there before anybody listens at it."""
        try:
            self.run("show-options", "-g", "status")
        except RigError:
            return False
        return True

    def run(self, *arguments: str) -> str:
        """Run a tmux command and give what it prints."""
        argv = [self._program, "-S", str(self.socket), *arguments]
        done = subprocess.run(
            argv, env=self._environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RigError(f"tmux {shlex.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    def session(
        self,
        command: str | Sequence[str] = "",
        *,
        columns: int = 80,
        rows: int = 24,
        env: Mapping[str, str] | None = None,
        folder: Path | None = None,
    ) -> Pane:
        """Open a session with one pane, in it a command or a shell."""
        text = command if isinstance(command, str) else shlex.join(command)
        given = [part for key, value in (env or {}).items() for part in ("-e", f"{key}={value}")]
        size = ["-x", str(columns), "-y", str(rows)]
        where = ["-c", str(folder or self.folder)]
        told = self.run("new-session", "-d", "-P", "-F", "#{pane_id}", *size, *where, *given, *([text] if text else []))
        return Pane(self, told.strip())

    def windows(self) -> list[str]:
        """Give the names of all windows, in order."""
        return self.run("list-windows", "-a", "-F", "#{window_name}").splitlines()

    def attach(self, pane: Pane, *, columns: int = 80, rows: int = 24) -> Terminal:
        """Attach a real client in a terminal of its own: it hears the bell and sees messages."""
        environment = {**self._environment, "TERM": "xterm-256color"}
        argv = [self._program, "-S", str(self.socket), "attach-session", "-t", pane.id]
        return Terminal(argv, env=environment, folder=self.rig.folder, columns=columns, rows=rows)

    def environment(self) -> dict[str, str]:
        """Give what makes a program believe that it runs in this server."""
        session = self.run("display-message", "-p", "#{pid},#{session_id}").strip().replace("$", "")
        return {"TMUX": f"{self.socket},{session}", "TERM": "tmux-256color", "TMUX_TMPDIR": str(self.folder)}

    def close(self) -> None:
        """End the server and all in it."""
        self.daemon.stop(patience_s=5)
