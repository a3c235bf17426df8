"""Locks that all gpuconsoles of this machine share, whoever runs them; each ends with its holder, however that ends."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import stat
import tempfile
from pathlib import Path

from gpuconsole.core.text import plain_line
from gpuconsole.core.users import user_name

FOLDER_VARIABLE = "GPUCONSOLE_LOCKS"
"""Names another folder for them, where ``/tmp`` is not one for all users."""
_OF_ALL = Path("/tmp")  # noqa: S108  # what is made there is opened so that nobody's links are followed
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_TRIES = 3
_LONGEST = 500
"""Bytes of a note that are read."""
_NOTE = re.compile(r"(\d+) (.+)")


def shared_folder() -> Path:
    """Where they are; one that every user of the machine can read and write, and the same in every shell.

    So not where ``TMPDIR`` says, which is a user's own, and on many machines another one in each session.
    """
    if named := os.environ.get(FOLDER_VARIABLE):
        return Path(named)
    with contextlib.suppress(OSError):
        mode = _OF_ALL.stat().st_mode
        if stat.S_ISDIR(mode) and mode & stat.S_IWOTH:
            return _OF_ALL
    return Path(tempfile.gettempdir())


class HostLock:
    """One of them.

    Args:
        path: Its file. Beside it stands who has it, in a file of that user's own.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None
        self._noted: Path | None = None

    @property
    def held(self) -> bool:
        """It is ours."""
        return self._descriptor is not None

    def take(self) -> bool | None:
        """Take it if it is free; False while another has it, None where there can be none."""
        if self.held:
            return True
        for _ in range(_TRIES):
            descriptor = self._opened()
            if descriptor is None:
                return None
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                os.close(descriptor)
                return False if isinstance(error, BlockingIOError) else None
            if self._is_at_its_place(descriptor):
                self._descriptor = descriptor
                with contextlib.suppress(OSError):
                    os.utime(descriptor)  # what is old is swept out of /tmp, also while it is locked
                return True
            os.close(descriptor)  # a lock that others do not find any more holds nobody off
        return None

    def note(self, what: str) -> None:
        """Tell others what it is held for; only while it is ours."""
        if not self.held:
            return
        note = self._path.with_name(f"{self._path.name}.{os.geteuid()}")
        with contextlib.suppress(OSError):
            note.unlink(missing_ok=True)  # of one of ours that was killed
            descriptor = os.open(note, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
            self._noted = note
            try:
                os.fchmod(descriptor, 0o644)
                os.write(descriptor, f"{os.getpid()} {what}".encode()[:_LONGEST])
            finally:
                os.close(descriptor)

    def release(self) -> None:
        """Let the next one have it."""
        if self._noted is not None:
            with contextlib.suppress(OSError):
                self._noted.unlink()
            self._noted = None
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def holder(self) -> str:
        """What it was last taken for, by whom, as a phrase; empty when nobody noted it."""
        found: list[tuple[float, str]] = []
        try:
            notes = [each for each in self._path.parent.iterdir() if each.name.startswith(f"{self._path.name}.")]
        except OSError:
            return ""
        for each in notes:
            with contextlib.suppress(OSError, ValueError):
                found.append(_read_note(each))
        return max(found)[1] if found else ""

    def _is_at_its_place(self, descriptor: int) -> bool:
        """The file that was locked is the one that is found there: old files are swept out of ``/tmp``."""
        try:
            return os.path.samestat(os.fstat(descriptor), os.lstat(self._path))
        except OSError:
            return False

    def _opened(self) -> int | None:
        """The file of the lock. It is only read: others' files in a shared folder cannot be opened for more."""
        for more, mode in ((0, 0), (os.O_CREAT | os.O_EXCL, 0o644), (0, 0)):
            try:
                descriptor = os.open(self._path, _FLAGS | more, mode)
            except OSError:
                continue
            if more:
                os.fchmod(descriptor, mode)  # whatever the umask says, others must be able to read it
            return descriptor
        return None


def _read_note(path: Path) -> tuple[float, str]:
    """When it was written, and what it says.

    Raises:
        OSError: It cannot be read.
        ValueError: It is not the note of the user it is named after.
    """
    descriptor = os.open(path, _FLAGS)
    try:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode) or path.suffix != f".{about.st_uid}":
            raise ValueError("not a note of its user")
        match = _NOTE.fullmatch(plain_line(os.read(descriptor, _LONGEST).decode(errors="replace")))
    finally:
        os.close(descriptor)
    if match is None:
        raise ValueError("not a note")
    by = "" if about.st_uid == os.geteuid() else f" by {plain_line(user_name(about.st_uid))}"
    return about.st_mtime, f"{match[2]}{by} (process {match[1]})"
