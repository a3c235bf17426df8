"""Ending one of one's own GPU processes, and no other that has its number by now."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

from gpuconsole.core.errors import NotFound, Refused
from gpuconsole.core.users import caller_name

if TYPE_CHECKING:
    from gpuconsole.host.model import Holder

_SAME_START_S = 2.0


def end_process(holder: Holder) -> str:
    """Send SIGTERM to a process of one's own; returns what is to be told.

    Raises:
        Refused: It is somebody else's, or another process by now.
        NotFound: It has ended.
    """
    if holder.user not in (None, caller_name()) and os.geteuid() != 0:
        raise Refused(f"Process {holder.pid} belongs to {holder.user}.", hint="Ask them to end it.")
    try:
        # The file descriptor names the process for good: a pid used again is another process.
        descriptor = os.pidfd_open(holder.pid)
    except ProcessLookupError as error:
        raise NotFound(f"Process {holder.pid} has ended.", hint="") from error
    try:
        started = _started_at(holder.pid)
        if holder.started_at is not None and started is not None and abs(started - holder.started_at) > _SAME_START_S:
            raise Refused(f"Process {holder.pid} is another one by now.", hint="Look again.")
        signal.pidfd_send_signal(descriptor, signal.SIGTERM)
    except PermissionError as error:
        raise Refused(f"You may not end process {holder.pid}.", hint="Its owner or root can.") from error
    finally:
        os.close(descriptor)
    return f"Asked process {holder.pid} to end (SIGTERM)."


def _started_at(pid: int) -> float | None:
    import psutil

    try:
        return psutil.Process(pid).create_time()
    except psutil.Error:
        return None
