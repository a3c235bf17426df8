"""Whose a container is: what decides whether an action asks harder."""

from __future__ import annotations

import os
from pathlib import Path

from gpuconsole.core.users import caller_name, user_name
from gpuconsole.engine.model import Container
from gpuconsole.host.cgroup import read_container_id
from gpuconsole.launch.labels import USER


def main_process(container: Container, *, proc: Path = Path("/proc")) -> Path | None:
    """Folder of a container's main process in ``/proc``; None when it is not to be seen from here.

    Its control group must name the container: seen from inside another container, the engine's pids are those of
    other processes.
    """
    if container.pid is None:
        return None
    folder = proc / str(container.pid)
    try:
        return folder if read_container_id(folder) == container.id else None
    except OSError:
        return None


def main_process_uid(container: Container, *, proc: Path = Path("/proc")) -> int | None:
    """Real user id of a container's main process; None when it cannot be seen from here."""
    folder = main_process(container, proc=proc)
    try:
        lines = (folder / "status").read_text(errors="replace").splitlines() if folder else []
    except OSError:
        return None
    uids = [line.split()[1] for line in lines if line.startswith("Uid:\t")]
    return int(uids[0]) if uids else None


def someone_elses(container: Container, *, local: bool) -> str | None:
    """The user a container belongs to, when that is known not to be the caller.

    Our label decides. Without it the main process does, unless it runs as root: in containers nearly all do, whoever
    launched them.
    """
    me = caller_name()
    if label := container.labels.get(USER):
        return None if label in (me, str(os.getuid())) else label
    uid = main_process_uid(container) if local else None
    if uid in (None, 0, os.getuid()) or user_name(uid or 0) == me:
        return None
    return user_name(uid or 0)
