"""The folder of the small files that containers are given: names of users, Jupyter's tokens."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from gpuconsole.core.paths import state_dir
from gpuconsole.host.folders import filesystem_of, mount_table

_NETWORK = ("nfs", "cifs", "smb", "fuse", "lustre", "beegfs", "ceph", "afs", "9p")
"""Beginnings of the kinds of file systems whose files an engine that runs as root may not see."""
_PRIVATE = 0o700
_SELINUX_NAME = "security.selinux"
_SELINUX_LABEL = b"system_u:object_r:container_file_t:s0\0"


def launch_dir(*, mounts: tuple[tuple[str, str], ...] | None = None) -> Path:
    """The folder: in the state folder, or on a disk of this machine where that is on another's; not created here.

    Args:
        mounts: What :func:`gpuconsole.host.folders.mount_table` gives; None reads it.
    """
    kind = filesystem_of(os.path.realpath(state_dir()), mount_table() if mounts is None else mounts) or ""
    if kind.startswith(_NETWORK):
        return Path(f"/var/tmp/gpuconsole-{os.getuid()}")  # noqa: S108  # made private, and refused when it is another's
    return state_dir()


def is_ours(path: str) -> bool:
    """Whether a file of the host is one of these."""
    return any(path.startswith(f"{folder}/") for folder in {str(launch_dir()), str(state_dir())})


def make_private(folder: Path) -> None:
    """Make a folder of ours, with those above it, that nobody else can look into or put something into.

    Raises:
        OSError: It cannot be made, or is somebody else's.
    """
    top = launch_dir()
    top.parent.mkdir(parents=True, exist_ok=True)
    for one in (*reversed([above for above in folder.parents if above.is_relative_to(top)]), folder):
        one.mkdir(mode=_PRIVATE, exist_ok=True)
    for one in {top, folder}:
        found = one.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid not in (0, os.geteuid()):
            raise PermissionError(1, "it is somebody else's")
    folder.chmod(_PRIVATE)


def let_containers_read(path: Path, *, selinux: bool) -> None:
    """Let any user of a container read a file that is mounted into it; the folder keeps others on this machine out.

    Args:
        path: The file.
        selinux: The engine confines containers with SELinux, so that the file needs their label.

    Raises:
        OSError: Its mode cannot be set.
    """
    path.chmod(0o644)
    if selinux:
        with contextlib.suppress(OSError):  # where a label cannot be set, none is looked at
            os.setxattr(path, _SELINUX_NAME, _SELINUX_LABEL)
