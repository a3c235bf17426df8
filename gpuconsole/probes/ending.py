"""The payload ended before its time, and nothing of it left behind."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from gpuconsole.core.errors import ConsoleError
from gpuconsole.probes.place import Place, finish

_COMMAND_S = 10.0
_FOLDER = re.compile(r"gpuconsole-check-\w{4,32}")
_KILL = (
    "import os, sys\n"
    "for group in map(int, sys.argv[1:]):\n"
    "    try:\n"
    "        os.killpg(group, 9)\n"
    "    except OSError:\n"
    "        pass\n"
)
_REMOVE = "import shutil, sys; shutil.rmtree(sys.argv[1], ignore_errors=True)"


@dataclass(slots=True)
class Traces:
    """What the payload has put into its place: process groups and a folder."""

    groups: list[int] = field(default_factory=list)
    folder: str = ""
    python: str = ""
    """An interpreter that is there."""

    def add_folder(self, folder: str, *, workdir: str) -> None:
        """Note the folder it made; a path that cannot be one of its own is not taken, since it will be removed."""
        parent, _, name = folder.rpartition("/")
        if not self.folder and parent in ("/tmp", "/dev/shm", workdir.rstrip("/")) and _FOLDER.fullmatch(name):  # noqa: S108
            self.folder = folder

    def add_group(self, number: float | None) -> None:
        """Note a process group; numbers that cannot be one are not taken."""
        # As a group, 0 and 1 would mean other processes than the payload's.
        if number is not None and number > 1 and int(number) not in self.groups:
            self.groups.append(int(number))


def kill(place: Place, traces: Traces, *, ended: Callable[[float], bool]) -> bool:
    """Kill the payload's process groups by a second process beside it; whether that ended it.

    An engine cannot kill what ``exec`` started. So ``kill`` does it, or the shell's own, or Python.

    Args:
        place: Where it runs.
        traces: Its groups.
        ended: Waits so many seconds for the payload's end, and says whether it came.
    """
    groups = [str(number) for number in traces.groups]
    if not groups:
        return ended(0.0)
    marked = [f"-{number}" for number in groups]
    commands = [["kill", "-KILL", "--", *marked], ["sh", "-c", f"kill -KILL -- {' '.join(marked)}"]]
    if traces.python:
        commands.append([traces.python, "-S", "-c", _KILL, *groups])
    for command in commands:
        _command(place, command)
        if ended(2.0):
            return True
    return False


def remove_folder(place: Place, traces: Traces) -> None:
    """Remove the payload's folder, if it made one."""
    if traces.folder and traces.python:
        _command(place, [traces.python, "-S", "-c", _REMOVE, traces.folder])


def _command(place: Place, command: list[str]) -> None:
    try:
        process = place.start(command)
        process.close_input()
        finish(process, timeout_s=_COMMAND_S)
    except ConsoleError:
        pass  # no such program there, or the place is gone: the caller sees whether the payload ended
