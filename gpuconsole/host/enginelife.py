"""When the engine of this machine began, was told to stop, and the machine was shut down: who ended containers."""

from __future__ import annotations

import json
import re
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gpuconsole.host.engineprocess import engine_process

if TYPE_CHECKING:
    import psutil

_WTMP = Path("/var/log/wtmp")
_RECORD = struct.Struct("<h2xi32s4s32s256shhiii16s20x")
"""``struct utmp`` of Linux on 64 bits: kind, pid, line, id, user, host, exit, session, seconds, microseconds."""
_RUN_LEVEL = 1
_MOST_BYTES = 4 << 20
_ANSWER_S = 2.0
_UNIT = re.compile(r"[A-Za-z0-9:_.\\@-]+\.service")
_STOPPING = "ActiveExitTimestamp"


@dataclass(frozen=True, slots=True)
class EngineLife:
    """What is known of the engine's and the machine's ups and downs, in seconds since the epoch."""

    began_at: float | None = None
    """When the engine that runs now was started."""
    stopping_at: float | None = None
    """When the engine was last told to stop, as the service manager has it."""
    shutdowns: tuple[float, ...] = ()
    """When the machine was shut down in order, as far back as is remembered."""


def engine_life(path: str) -> EngineLife:
    """Of the engine that listens at a socket of this machine."""
    import psutil

    process = engine_process(path)
    try:
        if process is None or process.name().startswith("podman"):
            return EngineLife()  # Podman's containers live on without it
        return EngineLife(process.create_time(), _stopping(process), shutdowns())
    except psutil.Error:
        return EngineLife()


def _stopping(process: psutil.Process) -> float | None:
    """What the service manager says of the unit that the engine runs in; None where there is no such manager."""
    try:
        groups = Path(f"/proc/{process.pid}/cgroup").read_text(errors="replace")
    except OSError:
        return None
    found = unit_of(groups)
    if found is None:
        return None
    unit, of_user = found
    command = ["systemctl", *(["--user"] if of_user else []), "show", unit, f"--property={_STOPPING}",
               "--timestamp=unix"]  # fmt: skip
    try:
        done = subprocess.run(command, capture_output=True, check=False, timeout=_ANSWER_S, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.SubprocessError):
        return None
    return stopping_in(done.stdout.decode(errors="replace"))


def unit_of(groups: str) -> tuple[str, bool] | None:
    """The service that a process belongs to, and whether it is one of a user's; ``groups`` is its cgroup file."""
    for line in groups.splitlines():
        path = line.split(":", 2)[-1]
        names = [part for part in path.split("/") if _UNIT.fullmatch(part) and not part.startswith("user@")]
        if names:
            return names[-1], "/user@" in path
    return None


def stopping_in(text: str) -> float | None:
    """The time in what ``systemctl show --timestamp=unix`` prints; None when it has none, or is an older one's."""
    match = re.search(rf"^{_STOPPING}=@(\d+)$", text, re.MULTILINE)
    return float(match[1]) if match else None


def shutdowns(path: Path = _WTMP) -> tuple[float, ...]:
    """When the machine was shut down in order; empty where that is not written down."""
    try:
        with path.open("rb") as file:
            file.seek(0, 2)
            size = file.tell() // _RECORD.size * _RECORD.size
            file.seek(max(0, size - _MOST_BYTES // _RECORD.size * _RECORD.size))
            content = file.read(_MOST_BYTES // _RECORD.size * _RECORD.size)
    except OSError:
        return ()
    whole = content[: len(content) // _RECORD.size * _RECORD.size]
    records = _RECORD.iter_unpack(whole)
    return tuple(
        float(record[9]) for record in records if record[0] == _RUN_LEVEL and record[4].startswith(b"shutdown\0")
    )


def stopped_by_hand(root_dir: str, container_id: str) -> bool | None:
    """Whether somebody had Docker stop or kill a container; None where its own notes may not be read.

    What an engine ends because it stops itself does not count there.
    """
    try:
        notes = json.loads((Path(root_dir) / "containers" / container_id / "config.v2.json").read_bytes())
    except (OSError, ValueError):
        return None
    said = notes.get("HasBeenManuallyStopped") if isinstance(notes, dict) else None
    return said if isinstance(said, bool) else None
