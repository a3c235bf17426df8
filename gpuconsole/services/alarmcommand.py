"""The user's own command for an alarm: run once by whichever console is first, without a shell, never two at a time."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from gpuconsole.core.config import config_path
from gpuconsole.core.errors import BadFile, ConsoleError
from gpuconsole.core.paths import state_dir
from gpuconsole.core.text import plain_line
from gpuconsole.services.alarmfile import AlarmFile
from gpuconsole.services.alarms import AGAIN_S, Alarm

TIMEOUT_S = 10.0
_TURN_S = 30.0
"""So long one waits for the command of another alarm."""
_TRY_S = 0.1
_HINT = "Correct [alarms] command in your configuration, or take it out."


def run_command(
    command: Sequence[str],
    alarm: Alarm,
    file: AlarmFile,
    *,
    config: Path | None = None,
    lock: Path | None = None,
    timeout_s: float = TIMEOUT_S,
) -> None:
    """Run the user's command for ``alarm``, unless a console did so already. It blocks until the command ended.

    The alarm's text is its last argument, and with the alarm's parts in its environment (``GPUCONSOLE_ALARM_…``).
    What it writes is thrown away.

    Args:
        command: Program and arguments.
        alarm: What is told.
        file: What consoles remember together.
        config: Where the command was read; None takes the usual file.
        lock: Locked while a command runs; None takes the usual file.
        timeout_s: The command is ended after so long.

    Raises:
        ConsoleError: It could not be run, failed, or took too long.
    """
    config = config or config_path()
    _refuse_strangers(config)
    with _turn(lock or state_dir() / "alarms.command.lock"):
        if file.claim(alarm.keys, alarm.state, time.time(), within_s=AGAIN_S):
            _run([*command, alarm.sentence], {**os.environ, **variables(alarm)}, timeout_s)


def variables(alarm: Alarm) -> dict[str, str]:
    """The alarm as a program reads it; what is not known is not there."""
    known: dict[str, object] = {
        "TEXT": alarm.sentence,
        "STATE": alarm.state.value,
        "SUBJECT": alarm.subject.value if alarm.subject is not None else "several",
        "NAME": alarm.name,
        "GPU": alarm.gpu,
        "PID": alarm.pid,
        "ETA_S": None if alarm.eta_s is None else round(alarm.eta_s),
        "CONTAINER_ID": alarm.container_id,
    }
    return {f"GPUCONSOLE_ALARM_{name}": str(value) for name, value in known.items() if value is not None}


def _refuse_strangers(config: Path) -> None:
    """Only what the user alone can have written is run: not with another's file, as under sudo."""
    try:
        found = config.stat()
    except OSError:
        return  # it was read before; who took it away cannot have changed the command
    if found.st_uid not in (os.geteuid(), 0) or found.st_mode & 0o002:
        whose = "others may write it" if found.st_mode & 0o002 else "it is not yours"
        raise BadFile(
            f"The alarm command is not run: {whose}, the file {plain_line(str(config))}.",
            hint="Make it a file that you own and others cannot write.",
        )


@contextlib.contextmanager
def _turn(path: Path) -> Iterator[None]:
    """While no other command runs, of whichever console; where nothing can be locked, at once."""
    handle = None
    try:
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        end = time.monotonic() + _TURN_S
        while handle is not None and time.monotonic() < end:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                time.sleep(_TRY_S)
        yield
    finally:
        if handle is not None:
            os.close(handle)


def _run(arguments: Sequence[str], environment: dict[str, str], timeout_s: float) -> None:
    name = plain_line(arguments[0], limit=80)
    nothing = subprocess.DEVNULL
    try:
        process = subprocess.Popen(
            arguments, stdin=nothing, stdout=nothing, stderr=nothing, env=environment, start_new_session=True
        )
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise _failed(f"The alarm command {name} cannot be run: {plain_line(why)}.") from error
    try:
        code = process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)  # it leads its session, with all that it started
        process.wait()
        raise _failed(f"The alarm command {name} was ended: it took longer than {timeout_s:g} s.") from None
    if code != 0:
        how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
        raise _failed(f"The alarm command {name} ended {how}.")


def _failed(words: str) -> ConsoleError:
    return BadFile(words, hint=_HINT)
