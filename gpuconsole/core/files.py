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


def write_whole(path: Path, content: str | bytes) -> None:
    """Put ``content`` in the place of a file's own, also when the machine fails meanwhile; its mode stays.

    Args:
        path: The file, there or not; of a link what it leads to, by its own path.
        content: Text is written in UTF-8.

    Raises:
        OSError: The folder is not there or not writable, the disk is full, or it is a pipe or a device; what is
            there is as it was.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        raise OSError(errno.EINVAL, "it is a pipe or a device, and no file")
    data = content.encode() if isinstance(content, str) else content
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "wb") as file:
            with contextlib.suppress(FileNotFoundError):
                os.fchmod(file.fileno(), path.stat().st_mode & 0o777)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
