"""Files written so that whoever reads them sees the old content or the new, never half of one."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from pathlib import Path


def remedy(error: OSError, otherwise: str) -> str:
    """What to do when a file cannot be written: make room where there is none, ``otherwise`` for all else."""
    if error.errno == errno.EDQUOT:
        return "Make room: your quota on that disk is used up."
    return "Make room on the disk it lies on." if error.errno == errno.ENOSPC else otherwise


def write_whole(path: Path, text: str) -> None:
    """Put ``text`` in the place of a file's content, also when the machine fails meanwhile; its mode stays.

    Args:
        path: The file, there or not; of a link what it leads to, by its own path.
        text: Written in UTF-8.

    Raises:
        OSError: The folder is not there or not writable, or the disk is full; the file is as it was.
    """
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
