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
from gpuconsole.core.paths import STORE, state_dir

FILE = STORE
"""Its name in the state folder."""
_BUSY_TIMEOUT_S = 5.0


def damaged_file(path: Path | None = None) -> Path:
    """Where records that were found damaged are set aside, whether there are any or not."""
    path = path or state_dir() / FILE
    return path.with_name(f"{path.name}.damaged")


def _is_damage(error: sqlite3.DatabaseError) -> bool:
    # What is wrong with a statement, a lock or a disk comes as one of its subclasses.
    return type(error) is sqlite3.DatabaseError or "malformed" in str(error)


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
        self._inode: int | None = None
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
            if not _is_damage(error):
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
        self._inode = self._inode_now()
        return connection

    def _inode_now(self) -> int | None:
        try:
            return self._path.stat().st_ino
        except OSError:
            return None

    def _set_aside(self) -> None:
        for suffix in ("", "-wal", "-shm"):
            part = self._path.with_name(self._path.name + suffix)
            with contextlib.suppress(OSError):
                part.replace(part.with_name(f"{damaged_file(self._path).name}{suffix}"))

    def _failure(self, error: sqlite3.DatabaseError) -> BadFile:
        """What to raise; damage that was met while reading or writing is set aside, so that the next try works."""
        if not _is_damage(error):
            return self._unwritable(error)
        with self._lock:
            self._connection.close()
            if self._inode_now() == self._inode:  # else another gpuconsole has set it aside already
                self._set_aside()
            try:
                self._connection = self._connect()
            except sqlite3.DatabaseError as again:
                return self._unwritable(again)
        return BadFile(
            f"The records in {self._path} are damaged: they were set aside as {damaged_file(self._path).name} there, "
            "and new ones are begun.",
            hint="Do it once more; what was remembered until now is not known any more.",
        )

    def _unwritable(self, error: Exception) -> BadFile:
        if "locked" in str(error):
            return BadFile(
                f"gpuconsole cannot keep its records in {self._path}: another program keeps it locked.",
                hint=f"Try again; 'fuser {self._path}' names who has it open.",
            )
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
            raise self._failure(error) from error

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[sqlite3.Row]:
        """What a query finds.

        Raises:
            BadFile: The file cannot be read.
        """
        try:
            with self._lock:
                return self._connection.execute(query, values).fetchall()
        except sqlite3.DatabaseError as error:
            raise self._failure(error) from error

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()
