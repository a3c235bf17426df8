"""What the kernel tells of processes: user, command, memory, CPU, age, container.

It is read from ``/proc`` directly: importing psutil would cost the command line 20 ms and gives no container.
"""

from __future__ import annotations

import os
import pwd
import time

from gpuconsole.core.records import dataclass, field
from gpuconsole.core.text import plain_line
from gpuconsole.host.cgroup import UnknownContainer, read_container_id, read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from pathlib import Path

_INITIAL_PID_NAMESPACE = "pid:[4026531836]"
"""The kernel's fixed number of the namespace it booted in (PROC_PID_INIT_INO)."""
_COMMAND_LIMIT = 1 << 16
_LEEWAY_S = 0.05
"""The kernel counts a start in hundredths of a second."""

FIELDS = ("user", "uid", "command", "host_memory_bytes", "cpu_pct", "started_at", "container_id", "state")
"""What is asked of a process."""

_STATES = {"D": "stuck", "T": "stopped", "t": "stopped", "Z": "defunct", "X": "defunct"}

BLIND = "gpuconsole runs in a container and does not see the host's processes"
BLIND_HINT = "start its container with --pid=host"
WINDOWS = "the driver is Windows', which numbers processes in its own way (WSL)"
OWN_CONTAINER = "it is in the container gpuconsole runs in, whose id cannot be found"
ENDED = "the process ended meanwhile"
ENDED_OR_HIDDEN = "the process ended meanwhile, or /proc hides it from this user (hidepid)"
REUSED = "the process ended, and its pid now belongs to a newer one"
FIRST_LOOK = "it takes two looks"


@dataclass(frozen=True, slots=True)
class ProcessFacts:
    """What is known of one process. Unknown is None, and ``unknown`` says why."""

    pid: int
    user: str | None = None
    uid: int | None = None
    """Its real user id."""
    command: str | None = None
    """Its arguments, harmless; ``[name]`` where it has none, ``[name] <defunct>`` when it ended unreaped."""
    host_memory_bytes: int | None = None
    """Resident set."""
    cpu_pct: float | None = None
    """100 is one core, over the time since the last look."""
    started_at: float | None = None
    """Seconds since the epoch; with the pid it names a process for good."""
    container_id: str | None = None
    """All 64 hex digits; None outside containers, and then not in ``unknown``."""
    state: str | None = None
    """``alive``, ``stuck`` (it waits in the kernel and cannot be ended now), ``stopped``, or ``defunct``: it has ended,
    and its parent has not noticed."""
    unknown: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Stat:
    """The part of ``/proc/<pid>/stat`` that matters here."""

    name: str
    state: str
    cpu_ticks: int
    start_ticks: int
    """Since the machine booted; with the pid it names a process for good."""
    resident_pages: int


def _since_boot_s() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


class ProcessTable:
    """Looks processes up; remembers their CPU time from one look to the next.

    Args:
        proc: Where the process file system is mounted.
        mask: Takes a process's arguments, and gives them as they may be shown: without the secrets in them.
    """

    def __init__(self, proc: Path | str = "/proc", *, mask: Callable[[Sequence[str]], Sequence[str]] = tuple) -> None:
        self._proc = str(proc)
        self._mask = mask
        self._ticks_per_s = os.sysconf("SC_CLK_TCK")
        self._page_size = os.sysconf("SC_PAGE_SIZE")
        self._cpu: dict[int, tuple[int, int, float]] = {}
        """Pid → start, CPU ticks, and when that was, of the last look."""
        self._users: dict[int, str | None] = {}
        self._booted_at: float | None = None
        self._blind: bool | None = None
        self._windows: bool | None = None

    @property
    def blind(self) -> bool:
        """Whether this program lives in a pid namespace of its own, where the host's pids mean nothing."""
        if self._blind is None:
            try:
                self._blind = os.readlink(f"{self._proc}/self/ns/pid") != _INITIAL_PID_NAMESPACE
            except OSError:
                self._blind = False
        return self._blind

    @property
    def proc(self) -> str:
        """Where the process file system is mounted."""
        return self._proc

    @property
    def windows(self) -> bool:
        """Whether this is a Linux within Windows (WSL), whose driver it uses."""
        if self._windows is None:
            try:
                self._windows = b"microsoft" in _read(f"{self._proc}/version").lower()
            except OSError:
                self._windows = False
        return self._windows

    def look(self, pids: Collection[int], *, listed_at: float, known: Collection[str] = ()) -> dict[int, ProcessFacts]:
        """Look ``pids`` up now.

        Args:
            pids: As the host numbers them.
            listed_at: When they were seen, in seconds since the epoch: a process that began later merely got the
                same number.
            known: Ids of the engine's containers, as far as the caller knows them.
        """
        if self.blind:
            reason = WINDOWS if self.windows else f"{BLIND}; {BLIND_HINT}"
            return {pid: ProcessFacts(pid, unknown=dict.fromkeys(FIELDS, reason)) for pid in pids}
        listed_after_boot_s = _since_boot_s() - (time.time() - listed_at)
        found = {pid: self._facts(pid, listed_after_boot_s, known) for pid in pids}
        self._cpu = {pid: seen for pid, seen in self._cpu.items() if pid in found}
        return found

    def _facts(self, pid: int, listed_after_boot_s: float, known: Collection[str]) -> ProcessFacts:
        folder = f"{self._proc}/{pid}"
        unknown: dict[str, str] = {}
        try:
            stat = _stat(_read(f"{folder}/stat"))
            if stat.start_ticks / self._ticks_per_s > listed_after_boot_s + _LEEWAY_S:
                return _without(pid, REUSED)
            uid = _real_uid(_read(f"{folder}/status"))
            command = self._command(folder, stat)
            container_id = self._container_id(folder, known, unknown)
            if _stat(_read(f"{folder}/stat")).start_ticks != stat.start_ticks:
                return _without(pid, REUSED)
        except (FileNotFoundError, ProcessLookupError):
            return _without(pid, WINDOWS if self.windows else ENDED_OR_HIDDEN if self._hides() else ENDED)
        except PermissionError:
            return _without(pid, "this user may not look at it")
        except (OSError, ValueError, IndexError) as error:
            return _without(pid, f"/proc cannot be read ({type(error).__name__})")
        user = self._user(uid)
        if user is None:
            unknown["user"] = f"this machine has no user with the id {uid}"
        cpu_pct = self._cpu_pct(pid, stat)
        if cpu_pct is None:
            unknown["cpu_pct"] = FIRST_LOOK
        return ProcessFacts(
            pid=pid,
            user=user,
            uid=uid,
            command=command,
            host_memory_bytes=stat.resident_pages * self._page_size,
            cpu_pct=cpu_pct,
            started_at=self._boot_time() + stat.start_ticks / self._ticks_per_s,
            container_id=container_id,
            state=_STATES.get(stat.state, "alive"),
            unknown=unknown,
        )

    @staticmethod
    def _container_id(folder: str, known: Collection[str], unknown: dict[str, str]) -> str | None:
        try:
            return read_container_id(folder, known=known)
        except UnknownContainer:
            unknown["container_id"] = OWN_CONTAINER
            return None

    def _command(self, folder: str, stat: _Stat) -> str:
        if stat.state in "ZX":
            return f"[{stat.name}] <defunct>"
        with open(f"{folder}/cmdline", "rb") as file:
            arguments = file.read(_COMMAND_LIMIT).rstrip(b"\0").split(b"\0")
        shown = self._mask([argument.decode(errors="replace") for argument in arguments])
        return plain_line(" ".join(shown)) or f"[{stat.name}]"

    def _cpu_pct(self, pid: int, stat: _Stat) -> float | None:
        now = time.monotonic()
        seen = self._cpu.get(pid)
        self._cpu[pid] = (stat.start_ticks, stat.cpu_ticks, now)
        if seen is None or seen[0] != stat.start_ticks or now <= seen[2]:
            return None
        return round((stat.cpu_ticks - seen[1]) / self._ticks_per_s / (now - seen[2]) * 100, 1)

    def average_cpu_pct(self, pid: int) -> float | None:
        """CPU use since the process began, by its last look; None for one that was not found."""
        seen = self._cpu.get(pid)
        if seen is None:
            return None
        start_ticks, cpu_ticks, looked_at = seen
        age_s = _since_boot_s() - (time.monotonic() - looked_at) - start_ticks / self._ticks_per_s
        return round(cpu_ticks / self._ticks_per_s / max(age_s, 1 / self._ticks_per_s) * 100, 1)

    def _user(self, uid: int) -> str | None:
        if uid not in self._users:
            try:
                self._users[uid] = plain_line(pwd.getpwuid(uid).pw_name)
            except (KeyError, OverflowError, OSError):
                self._users[uid] = None
        return self._users[uid]

    def _boot_time(self) -> float:
        """When the machine booted, in seconds since the epoch, as the kernel rounds it."""
        if self._booted_at is None:
            try:
                lines = _read(f"{self._proc}/stat").splitlines()
                self._booted_at = float(next(line for line in lines if line.startswith(b"btime ")).split()[1])
            except (OSError, StopIteration, ValueError, IndexError):
                self._booted_at = time.time() - _since_boot_s()
        return self._booted_at

    def _hides(self) -> bool:
        """Whether ``/proc`` is mounted so that it hides other users' processes from this one."""
        try:
            mounts = read_text(f"{self._proc}/self/mounts")
        except OSError:
            return False
        return any(
            parts[2] == "proc"
            and "hidepid=" in parts[3]
            and "hidepid=0" not in parts[3]
            and "hidepid=off" not in parts[3]
            for parts in (line.split() for line in mounts.splitlines())
            if len(parts) > 3
        )


def _without(pid: int, reason: str) -> ProcessFacts:
    return ProcessFacts(pid, unknown=dict.fromkeys(FIELDS, reason))


def _stat(data: bytes) -> _Stat:
    """Parse ``/proc/<pid>/stat``; the name in it may hold anything, parentheses and blanks too."""
    before, _, after = data.rpartition(b")")
    fields = after.split()
    return _Stat(
        name=plain_line(before.partition(b"(")[2]),
        state=fields[0].decode("ascii"),
        cpu_ticks=int(fields[11]) + int(fields[12]),
        start_ticks=int(fields[19]),
        resident_pages=int(fields[21]),
    )


def _real_uid(data: bytes) -> int:
    """The real user id in ``/proc/<pid>/status``."""
    for line in data.splitlines():
        if line.startswith(b"Uid:"):
            return int(line.split()[1])
    raise ValueError("no Uid line")
