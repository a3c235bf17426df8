"""Ending a GPU process: one's own, another user's only when that is meant, and none that has its number by now."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

from gpuconsole.core.errors import ConsoleError, NotFound, Refused
from gpuconsole.core.users import caller_name, user_name

if TYPE_CHECKING:
    from gpuconsole.host.model import Holder

SOMEBODY = "an unknown user"
_SAME_START_S = 2.0


def someone_elses_process(holder: Holder) -> str | None:
    """The user a process belongs to, when that is not known to be the caller; the superuser is one user of many."""
    if holder.user is None:
        return SOMEBODY
    return None if holder.user == caller_name() else holder.user


def end_process(holder: Holder, *, others: bool = False) -> str:
    """Send SIGTERM to a process; returns what is to be told.

    Args:
        holder: The process, as it was seen.
        others: Also when it is another user's, as far as the kernel lets the caller.

    Raises:
        Refused: It is somebody else's, or it cannot be told which process it is.
        NotFound: It has ended.
        ConsoleError: The kernel does not hold on to processes.
    """
    descriptor = _held(holder.pid)
    try:
        _need_the_same(holder)
        if not others:
            _need_own(holder.pid)
        signal.pidfd_send_signal(descriptor, signal.SIGTERM)
    except ProcessLookupError as error:
        raise _ended(holder.pid) from error
    except PermissionError as error:
        raise Refused(f"You may not end process {holder.pid}.", hint="Its owner or root can.") from error
    finally:
        os.close(descriptor)
    return f"Asked process {holder.pid} to end (SIGTERM)."


def _held(pid: int) -> int:
    """A file descriptor that names the process for good: a pid used again is another process."""
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError as error:
        raise _ended(pid) from error
    except (OSError, OverflowError, AttributeError) as error:
        # An old kernel, or a Python built for one; a sandbox; no descriptor left; no such number.
        why = error.strerror if isinstance(error, OSError) else error
        raise ConsoleError(
            f"Process {pid} cannot be held on to, so it is not ended: {why}.",
            hint=f"Look whether it is still the same one, then: kill {pid}",
        ) from error


def _need_the_same(holder: Holder) -> None:
    """That it is the process that was seen; looked at while its descriptor is open."""
    if holder.started_at is None:
        # Seen from inside a container, the driver's pids are those of other processes.
        raise Refused(
            f"When process {holder.pid} began is not known, so it could be another one by now.",
            hint="End it where it can be seen.",
        )
    started = _started_at(holder.pid)
    if abs(started - holder.started_at) > _SAME_START_S:
        raise Refused(f"Process {holder.pid} is another one by now.", hint="Look again.")


def _need_own(pid: int) -> None:
    """That its user now is the caller."""
    import psutil

    try:
        owner = user_name(psutil.Process(pid).uids().real)
    except psutil.NoSuchProcess as error:
        raise _ended(pid) from error
    except psutil.Error:
        owner = SOMEBODY
    if owner != caller_name():
        raise Refused(f"Process {pid} belongs to {owner}.", hint="Ask them to end it.")


def _started_at(pid: int) -> float:
    import psutil

    try:
        return psutil.Process(pid).create_time()
    except psutil.NoSuchProcess as error:
        raise _ended(pid) from error
    except psutil.Error as error:
        raise Refused(f"Process {pid} does not show itself.", hint="Its owner or root can end it.") from error


def _ended(pid: int) -> NotFound:
    return NotFound(f"Process {pid} has ended.", hint="")
