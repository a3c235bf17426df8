"""The lock file of the folder one works in: found, read, and changed so that no other writer's pins are lost.

A folder above, such as /tmp, may be anybody's, and a project may be cloned from anywhere. So a lock file above counts
only when the caller or root wrote it, only a plain file is read, and a link leads to a file beside it or nowhere.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from gpuconsole.core.errors import BadFile, ConsoleError
from gpuconsole.core.files import remedy, write_whole
from gpuconsole.core.store import Store
from gpuconsole.core.text import plain_line
from gpuconsole.core.users import user_name
from gpuconsole.images.pins import FILE_NAME, Pin, Pins, read_pins, write_pins

_MOST_BYTES = 4 * 2**20
_SCHEMA = "CREATE TABLE IF NOT EXISTS lock_files (path TEXT PRIMARY KEY)"


@dataclass(frozen=True, slots=True)
class LockFile:
    """A project's lock file, whether it is there yet or not."""

    path: Path
    passed_over: Path | None = field(default=None, compare=False)
    """A nearer one, in a folder above, that is a stranger's and does not count."""

    @property
    def note(self) -> str | None:
        """A sentence about the one that was passed over; None when none was."""
        if self.passed_over is None:
            return None
        try:
            owner = user_name(self.passed_over.lstat().st_uid)
        except OSError:
            owner = "somebody else"
        return (
            f"{plain_line(str(self.passed_over))} belongs to {plain_line(owner)} and does not count here; "
            "it does in its own folder."
        )

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
            content = self._content()
        except FileNotFoundError:
            return ""
        except OSError as error:
            raise BadFile(
                f"{self.shown} cannot be read: {error.strerror}.", hint="Look at what it is and who may read it."
            ) from error
        if content is None:
            raise BadFile(
                f"{self.shown} cannot be read: it is not a plain file.", hint="Look at what it is; a lock file is text."
            )
        if len(content) > _MOST_BYTES:
            raise BadFile(f"{self.shown} is too large for a lock file.", hint="Look at what it is.")
        try:
            return content.decode()
        except UnicodeDecodeError as error:
            raise BadFile(f"{self.shown} is not text in UTF-8.", hint="Mend it, or remove it.") from error

    def _content(self) -> bytes | None:
        """What is in it, somewhat more than a lock file can be at most; None when it is not a plain file."""
        if not stat.S_ISREG(self.path.stat().st_mode):  # to open a device can do something
            return None
        # It may be another one by now; a pipe would keep waiting whoever opens it.
        with open(os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return None
            return file.read(_MOST_BYTES + 1)

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
                hint=remedy(error, "Make the folder writable, or work in one that is."),
            ) from error
        remember(self.path)
        return after

    def _write(self, text: str) -> None:
        # A link stays a link: what it leads to is replaced. One that comes with a project could lead to any file.
        path = Path(os.path.realpath(self.path))
        if path.parent != Path(os.path.realpath(self.path.parent)):
            raise BadFile(
                f"{self.shown} is a link to {plain_line(str(path))}, which is not in its folder, and is not changed.",
                hint="Put a plain file in the place of the link.",
            )
        write_whole(path, text)


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

    Above ``folder`` only those count that belong to the caller or to root.

    Args:
        folder: None takes the one this program works in.

    Raises:
        BadFile: That folder is gone.
    """
    try:
        folder = folder or Path.cwd()
    except FileNotFoundError as error:
        raise BadFile("The folder you are in is gone.", hint="Go to one that is there: cd ~") from error
    own = folder / FILE_NAME
    if os.path.lexists(own):
        return LockFile(own)
    passed_over = None
    for above in folder.parents:
        path = above / FILE_NAME
        owners = _owners(path)
        if owners and owners <= _trusted():
            return LockFile(path, passed_over)
        passed_over = passed_over or (path if owners else None)
    return LockFile(own, passed_over)


def _owners(path: Path) -> set[int]:
    """Who may have written a plain file, and the link that leads to it; none when there is no such file."""
    try:
        file = path.stat()
        return {file.st_uid, path.lstat().st_uid} if stat.S_ISREG(file.st_mode) else set()
    except OSError:
        return set()


def _trusted() -> set[int]:
    """Root and the caller; behind ``sudo`` also who called it."""
    trusted = {0, os.geteuid()}
    if os.geteuid() == 0 and (caller := os.environ.get("SUDO_UID", "")).isdecimal():
        trusted.add(int(caller))
    return trusted


def remember(path: Path) -> None:
    """Note that this user has pins in ``path``, so that nothing pinned there is pruned from elsewhere."""
    with contextlib.suppress(BadFile):  # where nothing can be remembered, a pin is worth having all the same
        store = Store(_SCHEMA)
        with store.writing() as connection:
            connection.execute("INSERT OR IGNORE INTO lock_files VALUES (?)", (os.path.realpath(path),))
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
    real = Path(os.path.realpath(here))
    for path in dict.fromkeys((real, *known)):
        file = LockFile(here if path == real else path)
        try:
            found.extend((file, pin) for pin in file.pins().values())
        except BadFile as error:
            unread.append(error)
    return AllPins(tuple(found), tuple(unread))
