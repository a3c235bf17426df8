"""Runs that are under way, kept so that one whose program was killed does not vanish.

Each program marks as its own, by a lock that the kernel takes back when the program ends in whatever way, one byte of a
file beside the records: at the place that stands beside each of its runs.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpuconsole.core.store import Store

SCHEMA = """
CREATE TABLE IF NOT EXISTS open_runs (
    id TEXT PRIMARY KEY, kind TEXT NOT NULL, subject TEXT NOT NULL, subject_id TEXT NOT NULL,
    started_at REAL NOT NULL, owner INTEGER NOT NULL
);
"""
_FILE = "gpuconsole.open"
_LOCK = struct.Struct("@hhqqi4x")
"""``struct flock``: kind, from where, start, length, process, which is 0 for a lock that belongs to an open file."""


class OpenRuns:
    """The runs under way in one file of records. The caller sees to its lock.

    Args:
        store: The records; they have :data:`SCHEMA` too.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._descriptor: int | None = None
        self._place: int | None = None

    def add(self, connection: sqlite3.Connection, run: tuple[str, str, str, str, float]) -> None:
        """A run begins: its id, kind, subject, that one's id, and when. Nothing is kept where there can be no lock."""
        owner = self._own_place()
        if owner is not None:
            connection.execute("INSERT OR REPLACE INTO open_runs VALUES (?, ?, ?, ?, ?, ?)", (*run, owner))

    @staticmethod
    def remove(connection: sqlite3.Connection, run_id: str) -> bool:
        """This one is over; False when somebody has said so before."""
        return connection.execute("DELETE FROM open_runs WHERE id = ?", (run_id,)).rowcount > 0

    def abandoned(self) -> list[sqlite3.Row]:
        """Those whose program is gone.

        Raises:
            BadFile: The records cannot be read.
        """
        rows = self._store.rows("SELECT * FROM open_runs")
        return [row for row in rows if not self._is_held(row["owner"])] if rows else []

    def close(self) -> None:
        """Let go; what is still open here counts as abandoned."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = self._place = None

    def _opened(self) -> int | None:
        if self._descriptor is None:
            path = self._store.path.with_name(_FILE)
            try:
                self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            except OSError:
                return None
        return self._descriptor

    def _own_place(self) -> int | None:
        """The byte that is ours; None where files cannot be locked."""
        descriptor = self._opened()
        if self._place is None and descriptor is not None:
            place = int.from_bytes(os.urandom(8)) >> 2
            try:
                fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, _lock(place))
            except OSError:
                return None
            self._place = place
        return self._place

    def _is_held(self, place: int) -> bool:
        """Whether a program that lives has this byte; so it is taken to be where that cannot be told."""
        if place == self._place:
            return True
        descriptor = self._opened()
        if descriptor is None:
            return True
        try:
            answer = fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, _lock(place))
        except (OSError, OverflowError):
            return True
        return bool(_LOCK.unpack(answer)[0] != fcntl.F_UNLCK)


def _lock(place: int) -> bytes:
    return _LOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, place, 1, 0)
