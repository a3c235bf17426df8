"""The lock file of the folder one works in: found, read, and changed so that no other writer's pins are lost."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from gpuconsole.core.errors import BadFile, ConsoleError
from gpuconsole.core.store import Store
from gpuconsole.core.text import plain_line
from gpuconsole.images.pins import FILE_NAME, Pin, Pins, read_pins, write_pins

_MOST_BYTES = 4 * 2**20
_SCHEMA = "CREATE TABLE IF NOT EXISTS lock_files (path TEXT PRIMARY KEY)"


@dataclass(frozen=True, slots=True)
class LockFile:
    """A project's lock file, whether it is there yet or not."""

    path: Path

    @property
    def shown(self) -> str:
        """The path, harmless; from the folder one is in where that is shorter."""
        with contextlib.suppress(OSError, ValueError):
            if self.path.parent == Path.cwd():
                return f"./{self.path.name}"
        return plain_line(str(self.path))

    def pins(self) -> dict[str, Pin]:
        """The pins in it; none when there is no such file.

        Raises:
            BadFile: It cannot be read, or has mistakes.
        """
        return read_pins(self._text(), where=self.shown)

    def _text(self) -> str:
        try:
            with self.path.open("rb") as file:
                content = file.read(_MOST_BYTES + 1)
        except FileNotFoundError:
            return ""
        except OSError as error:
            raise BadFile(
                f"{self.shown} cannot be read: {error.strerror}.", hint="Look at what it is and who may read it."
            ) from error
        if len(content) > _MOST_BYTES:
            raise BadFile(f"{self.shown} is too large for a lock file.", hint="Look at what it is.")
        try:
            return content.decode()
        except UnicodeDecodeError as error:
            raise BadFile(f"{self.shown} is not text in UTF-8.", hint="Mend it, or remove it.") from error

    def change(self, edit: Callable[[Pins], Pins]) -> dict[str, Pin]:
        """Write what ``edit`` makes of the pins, and return that; the file is whole at every moment.

        Raises:
            BadFile: It has mistakes, or cannot be read or written.
        """
        try:
            with _alone(self.path.parent):
                text = self._text()
                before = read_pins(text, where=self.shown)
                after = dict(edit(before))
                if after != before:
                    self._write(write_pins(text, after, where=self.shown))
        except OSError as error:
            raise BadFile(
                f"{self.shown} cannot be written: {error.strerror}.",
                hint="Make the folder writable, or work in one that is.",
            ) from error
        remember(self.path)
        return after

    def _write(self, text: str) -> None:
        # A link stays a link: what it leads to is replaced.
        path = self.path.resolve()
        fresh = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        try:
            with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "w", encoding="utf-8") as file:
                with contextlib.suppress(FileNotFoundError):
                    os.fchmod(file.fileno(), path.stat().st_mode & 0o777)
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(path)
        except BaseException:
            fresh.unlink(missing_ok=True)
            raise


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep other writers of this folder's lock file waiting; where the file system cannot, go on without."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def lock_file(folder: Path | None = None) -> LockFile:
    """The lock file that counts in ``folder``: the nearest upward, else the one that would be made there.

    Args:
        folder: None takes the one this program works in.

    Raises:
        BadFile: That folder is gone.
    """
    try:
        folder = folder or Path.cwd()
    except FileNotFoundError as error:
        raise BadFile("The folder you are in is gone.", hint="Go to one that is there: cd ~") from error
    for each in (folder, *folder.parents):
        path = each / FILE_NAME
        with contextlib.suppress(OSError):
            if path.is_file():
                return LockFile(path)
    return LockFile(folder / FILE_NAME)


def remember(path: Path) -> None:
    """Note that this user has pins in ``path``, so that nothing pinned there is pruned from elsewhere."""
    with contextlib.suppress(BadFile):  # where nothing can be remembered, a pin is worth having all the same
        store = Store(_SCHEMA)
        with store.writing() as connection:
            connection.execute("INSERT OR IGNORE INTO lock_files VALUES (?)", (str(path.resolve()),))
        store.close()


@dataclass(frozen=True, slots=True)
class AllPins:
    """The pins of every lock file that this user has used on this machine."""

    pins: tuple[tuple[LockFile, Pin], ...] = ()
    unread: tuple[ConsoleError, ...] = ()
    """Why a lock file that is there could not be read."""


def all_pins(folder: Path | None = None) -> AllPins:
    """The pins of the lock file that counts in ``folder`` and of all remembered ones; those that are gone are left out.

    Raises:
        BadFile: What is remembered cannot be read.
    """
    store = Store(_SCHEMA)
    known = [Path(row["path"]) for row in store.rows("SELECT path FROM lock_files ORDER BY path")]
    store.close()
    here = lock_file(folder).path
    found: list[tuple[LockFile, Pin]] = []
    unread: list[ConsoleError] = []
    for path in dict.fromkeys((here.resolve(), *known)):
        file = LockFile(here if path == here.resolve() else path)
        try:
            found.extend((file, pin) for pin in file.pins().values())
        except BadFile as error:
            unread.append(error)
    return AllPins(tuple(found), tuple(unread))
