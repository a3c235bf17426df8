"""The store: one SQLite file in the state folder, shared by every gpuconsole of this user.

Many may read and write at once. A file that is damaged is set aside, never trusted and never in the way.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from gpuconsole.core.errors import BadFile
from gpuconsole.core.paths import state_dir

FILE = "gpuconsole.db"
"""Its name in the state folder."""
_BUSY_TIMEOUT_S = 5.0


class Store:
    """Tables in one file.

    Args:
        schema: ``CREATE TABLE IF NOT EXISTS …`` statements; columns are only ever added.
        path: The file; its folder is made. None takes ``gpuconsole.db`` in the state folder.

    Raises:
        BadFile: The folder cannot be written, so nothing can be remembered.
    """

    def __init__(self, schema: str, *, path: Path | None = None) -> None:
        self._schema = schema
        self._path = path or state_dir() / FILE
        self._lock = threading.Lock()
        self._connection = self._open()

    @property
    def path(self) -> Path:
        """The file."""
        return self._path

    def _open(self) -> sqlite3.Connection:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise self._unwritable(error) from error
        try:
            return self._connect()
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError) and "malformed" not in str(error):
                raise self._unwritable(error) from error
            self._set_aside()
            try:
                return self._connect()
            except sqlite3.DatabaseError as again:
                raise self._unwritable(again) from again

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, timeout=_BUSY_TIMEOUT_S, check_same_thread=False)
        try:
            connection.row_factory = sqlite3.Row
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
            with connection:
                connection.executescript(self._schema)
        except sqlite3.DatabaseError:
            connection.close()
            raise
        return connection

    def _set_aside(self) -> None:
        for suffix in ("", "-wal", "-shm"):
            part = self._path.with_name(self._path.name + suffix)
            with contextlib.suppress(OSError):
                part.replace(part.with_name(f"{self._path.name}.damaged{suffix}"))

    def _unwritable(self, error: Exception) -> BadFile:
        return BadFile(
            f"gpuconsole cannot keep its records in {self._path}: {error}.",
            hint="Make the folder writable, or set XDG_STATE_HOME to one that is.",
        )

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction: all of it or nothing.

        Raises:
            BadFile: The file cannot be written.
        """
        try:
            with self._lock, self._connection:
                yield self._connection
        except sqlite3.DatabaseError as error:
            raise self._unwritable(error) from error

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[sqlite3.Row]:
        """What a query finds.

        Raises:
            BadFile: The file cannot be read.
        """
        try:
            with self._lock:
                return self._connection.execute(query, values).fetchall()
        except sqlite3.DatabaseError as error:
            raise self._unwritable(error) from error

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()
