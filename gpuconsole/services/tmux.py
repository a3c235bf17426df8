"""Windows in the tmux that gpuconsole runs in.

Plain tmux commands: five of them, on every version since 2.6, and nothing to import.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence

from gpuconsole.core.errors import ConsoleError, EngineRefused
from gpuconsole.core.text import plain_line

_TIMEOUT_S = 5
_MARK = "@gpuconsole"
_DECIDING = (
    *(f"DOCKER_{name}" for name in ("HOST", "CONTEXT", "CONFIG", "TLS", "TLS_VERIFY", "CERT_PATH", "API_VERSION")),
    *(f"GPUCONSOLE_{name}" for name in ("HOST", "DEBUG", "CATALOG", "ASCII")),
    *(f"XDG_{name}" for name in ("RUNTIME_DIR", "CONFIG_HOME", "STATE_HOME", "CACHE_HOME", "DATA_HOME")),
    "HOME", "PATH", "PYTHONPATH", "SSH_AUTH_SOCK", "SSH_CONNECTION", "LANG", "LC_ALL", "LC_CTYPE", "NO_COLOR",
    "COLORTERM",
)  # fmt: skip
"""Variables that decide which engine and which files are meant, and how text looks."""
_OF_OURS = re.compile(r"GPUCONSOLE_[A-Z_]+|LC_[A-Z]+")


def inside(environment: Mapping[str, str] | None = None) -> bool:
    """Whether this terminal is a pane of a tmux whose command is at hand."""
    env = os.environ if environment is None else environment
    return bool(env.get("TMUX")) and shutil.which("tmux") is not None


def our_command(arguments: Sequence[str], *, environment: Mapping[str, str] | None = None) -> list[str]:
    """A command line that runs gpuconsole with ``arguments`` and our environment in a window.

    Windows inherit the environment of the tmux server, which may be days old and know another engine. So what decides
    which engine and which configuration is meant goes along, and what is not set here is taken away there.
    """
    env = os.environ if environment is None else environment
    absent = [part for name in _DECIDING if name not in env for part in ("-u", name)]
    carried = [
        f"{name}={value}" for name, value in sorted(env.items()) if name in _DECIDING or _OF_OURS.fullmatch(name)
    ]
    return ["env", *absent, *carried, sys.executable, "-P", "-m", "gpuconsole", *arguments]


def show_window(name: str, command: Sequence[str], *, mark: str) -> bool:
    """Bring a window with ``command`` to the front: the one marked ``mark`` if there is one, else a new one.

    Args:
        name: Its name; characters that mean something to tmux are replaced.
        command: Program and arguments, run without a shell.
        mark: Tells it from the others when it is asked for again.

    Returns:
        Whether it is new.

    Raises:
        ConsoleError: tmux does not do it.
    """
    session = _tmux("display-message", "-p", *_target(), "#{session_id}").strip()
    for line in _tmux("list-windows", "-t", session, "-F", f"#{{window_id}} #{{{_MARK}}}").splitlines():
        window, _, its_mark = line.partition(" ")
        if its_mark == mark:
            _tmux("select-window", "-t", window)
            return False
    safe = re.sub(r"[^A-Za-z0-9_-]", "_", name)[:40] or "container"
    window = _tmux(
        "new-window", "-P", "-F", "#{window_id}", "-t", f"{session}:", "-n", safe, *_folder(), *command
    ).strip()
    _tmux("set-option", "-w", "-t", window, _MARK, mark)
    return True


def tell(text: str) -> None:
    """Show ``text`` for a moment in the status line of everybody who looks at our session; nobody is no failure."""
    if not inside():
        return
    # What the line may hold is a format: its signs are doubled. (-l, which takes it as it is, came with tmux 3.4.)
    literal = plain_line(text, limit=200).replace("#", "##").replace("%", "%%")
    with contextlib.suppress(ConsoleError):
        session = _tmux("display-message", "-p", *_target(), "#{session_id}").strip()
        for client in _tmux("list-clients", "-t", session, "-F", "#{client_name}").split():
            _tmux("display-message", "-c", client, "--", literal)


def terminals() -> tuple[str, ...]:
    """What each terminal that looks at our session says it is, ``xterm-256color kitty(0.32.0)``; none outside tmux."""
    if not inside():
        return ()
    with contextlib.suppress(ConsoleError):
        session = _tmux("display-message", "-p", *_target(), "#{session_id}").strip()
        told = _tmux("list-clients", "-t", session, "-F", "#{client_termname} #{client_termtype}")
        return tuple(line.strip() for line in told.splitlines())
    return ()


def passes_through() -> bool:
    """Whether tmux hands on to those terminals what is wrapped for them: asked for since 3.3, never refused before."""
    try:
        return _tmux("show-options", "-Apv", *_target(), "allow-passthrough").strip() in ("on", "all")
    except ConsoleError as error:
        return re.search(r"(?:invalid|unknown) option", error.message) is not None


def copy(text: str) -> None:
    """Put ``text`` into the buffer that tmux pastes, and where it can, into the terminal's clipboard."""
    if not inside():
        return
    for options in (("-w",), ()):  # -w came with tmux 3.2
        with contextlib.suppress(ConsoleError):
            _tmux("load-buffer", *options, "-", given=text.encode())
            return


def _folder() -> tuple[str, ...]:
    try:
        return "-c", os.getcwd()
    except OSError:  # it was removed; tmux has a default
        return ()


def _target() -> tuple[str, ...]:
    """The pane we run in: the person may be looking at another one."""
    pane = os.environ.get("TMUX_PANE", "")
    return ("-t", pane) if re.fullmatch(r"%\d+", pane) else ()


def _tmux(*arguments: str, given: bytes = b"") -> str:
    try:
        done = subprocess.run(["tmux", *arguments], capture_output=True, check=False, input=given, timeout=_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _failed(str(error)) from error
    if done.returncode != 0:
        raise _failed(done.stderr.decode(errors="replace"))
    return done.stdout.decode(errors="replace")


def _failed(words: str) -> ConsoleError:
    return EngineRefused(f"tmux did not do it: {plain_line(words)}.", hint="Pass --here to stay in this terminal.")
