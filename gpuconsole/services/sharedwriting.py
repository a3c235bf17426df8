"""Writing what consoles and watches share: at a pace, in one piece, one at a time, whoever knows more before the other.

Of several writers, the one that has watched longest says what is ahead, as long as it goes on; names of containers and
who was given which GPU are taken from whoever asked the engine last. See :mod:`gpuconsole.services.shared`.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from gpuconsole.services.shared import (
    MOST_BYTES,
    PACE_S,
    SCHEMA,
    Shared,
    boot_id,
    read_shared,
    shared_path,
    since_boot_s,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpuconsole.gpu.forecast_model import Assessment
    from gpuconsole.host.model import HostView

_MOST_NAMES = 512
_MOST_PROCESSES = 256
_OLD_S = 7 * 86400.0
_HEARTBEAT = 2
"""What stays the same is written again after so many paces: readers see that somebody still looks."""


class _News(NamedTuple):
    view: HostView
    names: Mapping[str, str] | None


class SharedWriter:
    """Writes on a thread of its own: a disk that hangs holds up nobody who looks.

    Args:
        pace_s: Between two looks of who writes.
        path: The file; None takes the usual one.
    """

    def __init__(self, *, pace_s: float = PACE_S, path: Path | None = None) -> None:
        self._pace_s = max(PACE_S, pace_s)
        self._path = Path(path or shared_path())
        self.name = secrets.token_hex(8)
        """Names this writer in the file."""
        self.since = since_boot_s()
        """When it began to watch."""
        self._boot = boot_id()
        self._news: _News | None = None
        self._there = threading.Event()
        self._thread: threading.Thread | None = None
        self._wrote_at = 0.0
        self._wrote: dict[str, Any] = {}

    def put(self, view: HostView, *, names: Mapping[str, str] | None = None) -> None:
        """Have it written soon; of several only the last.

        Args:
            view: With what is ahead.
            names: Names of containers by id, and then the view says who was given each GPU; None where no engine of
                this machine was asked.
        """
        self._news = _News(view, names)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="shared-writer", daemon=True)
            self._thread.start()
        self._there.set()

    def _run(self) -> None:
        while True:
            self._there.wait()
            self._there.clear()
            news = self._news
            if news is not None:
                # Without a folder to write, or room in it, there is nothing to share, and nothing else is lost.
                with contextlib.suppress(OSError, ValueError):
                    self.write(news.view, names=news.names)
            time.sleep(self._pace_s / 2 if self._pace_s > PACE_S else PACE_S)

    def write(self, view: HostView, *, names: Mapping[str, str] | None = None) -> bool:
        """Write it now, unless another is writing or it says nothing new; whether it was written.

        Raises:
            OSError: The folder cannot be written.
        """
        if not self._boot:
            return False
        body = self._body(view, names)
        now = since_boot_s()
        cpu = self._cpu(view)  # it moves at every look, and alone is no reason to write
        if body == self._wrote and now - self._wrote_at < _HEARTBEAT * self._pace_s:
            return False
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with _alone(self._path) as alone:
            if not alone:
                return False
            whole = self._joined(body, read_shared(self._path), now) | {"cpu": cpu}
            if not self._wrote:
                _tidy(self._path)
            _replace(self._path, json.dumps(whole, allow_nan=False).encode())
        self._wrote, self._wrote_at = body, now
        return True

    def _body(self, view: HostView, names: Mapping[str, str] | None) -> dict[str, Any]:
        gpus = {each.gpu.uuid: _said(each.outlook) for each in view.gpus if each.gpu.uuid and each.outlook is not None}
        processes = [
            [each.gpu.uuid, holder.pid, holder.started_at, _said(holder.outlook)]
            for each in view.gpus
            for holder in each.holders
            if each.gpu.uuid and holder.outlook is not None and holder.started_at is not None
        ]
        given = {each.gpu.uuid: list(each.given_to) for each in view.gpus if each.gpu.uuid}
        return {
            "gpus": gpus,
            "processes": processes[:_MOST_PROCESSES],
            "given": given if names is not None else None,
            "names": dict(list(names.items())[:_MOST_NAMES]) if names is not None else None,
        }

    def _cpu(self, view: HostView) -> list[list[Any]]:
        found = {
            one.pid: [one.pid, one.started_at, one.cpu_pct]
            for each in view.gpus
            for one in each.holders
            if one.cpu_pct is not None and one.started_at is not None
        }
        return list(found.values())[:_MOST_PROCESSES]

    def _joined(self, body: dict[str, Any], there: Shared | None, now: float) -> dict[str, Any]:
        """With what another knows better: what is ahead, who has watched longer; names, who asked an engine."""
        whole = {"schema": SCHEMA, "boot": self._boot, "writer": self.name, "since": self.since, "at": now,
                 "pace_s": self._pace_s, "names_at": now} | body  # fmt: skip
        if there is not None and there.fresh and there.writer != self.name and there.since < self.since:
            whole |= {
                "writer": there.writer, "since": there.since, "at": there.at, "pace_s": there.pace_s,
                "gpus": {uuid: _again(each, now - there.at) for uuid, each in there.gpus.items()},
                "processes": [[one.gpu_uuid, one.pid, one.started_at, _again(one.ahead, now - there.at)]
                              for one in there.processes],
            }  # fmt: skip
        if body["names"] is None:
            whole |= {
                "names": dict(there.names) if there is not None else {},
                "names_at": there.names_at if there is not None else 0.0,
                "given": there.given if there is not None and now - there.names_at < 3 * PACE_S else None,
            }
        return whole


def _said(said: Assessment) -> list[Any]:
    return [said.state.value, said.eta_s, said.rate_bytes_s, said.why]


def _again(ahead: Any, age_s: float) -> list[Any]:
    """As it was written: its time ahead counts from then."""
    return [ahead.state.value, None if ahead.eta_s is None else ahead.eta_s + age_s, ahead.rate_bytes_s, ahead.why]


@contextlib.contextmanager
def _alone(path: Path) -> Any:
    """Whether nobody else writes; who does will be newer than we are."""
    handle = None
    alone = True
    try:
        name = path.with_name(f"{path.name}.lock")
        handle = os.open(name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        alone = False
    except OSError:
        pass  # a disk without locks: exchanged in one piece it is whole all the same
    try:
        yield alone
    finally:
        if handle is not None:
            os.close(handle)


def _replace(path: Path, content: bytes) -> None:
    """Exchange the file in one piece, for this user alone. What is lost with the machine is of no use afterwards."""
    if len(content) > MOST_BYTES:
        raise ValueError("more than a reader takes")
    fresh = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with open(handle, "wb") as file:
            file.write(content)
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def _tidy(path: Path) -> None:
    """Take away what writers left that were killed, and files of machines that are no more."""
    before = time.time() - _OLD_S
    for one in path.parent.glob("shared-*.json*"):
        with contextlib.suppress(OSError):
            if one.lstat().st_mtime < before:
                one.unlink()
