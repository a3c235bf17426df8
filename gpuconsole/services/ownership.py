"""Whose a container is: what decides whether an action asks harder."""

from __future__ import annotations

import os
import pwd

from gpuconsole.engine.model import Container
from gpuconsole.launch.labels import USER


def main_process_uid(pid: int, *, proc: str = "/proc") -> int | None:
    """Real user id of a process on this machine; None when it cannot be seen."""
    try:
        with open(f"{proc}/{pid}/status", encoding="utf-8", errors="replace") as status:
            for line in status:
                if line.startswith("Uid:"):
                    return int(line.split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return None


def user_name(uid: int) -> str:
    """Name of a user, or the number when it has none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def caller_name() -> str:
    """Login name of who runs gpuconsole; behind ``sudo`` the one who called it."""
    if os.geteuid() == 0 and (name := os.environ.get("SUDO_USER")):
        return name
    return user_name(os.getuid())


def someone_elses(container: Container, *, local: bool) -> str | None:
    """The user a container belongs to, when that is known not to be the caller.

    Our label decides. Without it the main process does, unless it runs as root: in containers nearly all do, whoever
    launched them.
    """
    me = caller_name()
    if label := container.labels.get(USER):
        return None if label in (me, str(os.getuid())) else label
    uid = main_process_uid(container.pid) if local and container.pid is not None else None
    if uid in (None, 0, os.getuid()) or user_name(uid or 0) == me:
        return None
    return user_name(uid or 0)
