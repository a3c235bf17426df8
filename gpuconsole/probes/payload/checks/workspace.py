"""C20: work can be saved: the working folder takes a file and gives it back, and has room."""

from __future__ import annotations

import errno
import os
import tempfile
import time
from typing import Any

from gpuconsole.probes.payload import environment
from gpuconsole.probes.payload.outcome import FAIL, OK, WARN, Context, Outcome, size

_BYTES = 4 << 20
LOW_BYTES = 20 << 30
_NETWORK = ("nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "lustre", "beegfs", "ceph", "fuse.glusterfs", "virtiofs")


def run(context: Context) -> Outcome:
    """Create, sync, rename, read back and delete a file; look at owner, room and file system."""
    folder = context.workdir or os.getcwd()
    kind, mount = file_system(folder, environment.read("/proc/self/mountinfo") or "")
    value: dict[str, Any] = {"path": folder, "file_system": kind, "mount": mount, "user": os.getuid()}
    try:
        value["write_mb_s"] = round(round_trip(folder), 1)
        value["owner"] = os.stat(folder).st_uid
        stat = os.statvfs(folder)
        value["free_bytes"] = stat.f_frsize * stat.f_bavail
    except OSError as error:
        value["error"] = errno.errorcode.get(error.errno or 0, str(error.errno))
        why, fix = cannot(folder, error, os.getuid())
        return Outcome(FAIL, why, fix, value)
    value["temporary"] = temporary()
    value["root_is_root"] = root_is_root(environment.read("/proc/self/uid_map") or "")
    worries = judge(value, ephemeral=context.ephemeral)
    if worries:
        return Outcome(WARN, "; ".join(why for why, _ in worries), worries[0][1], value)
    pace = "{} synced at {:.0f} MB/s".format(size(_BYTES), value["write_mb_s"])
    why = "{} can be written ({}), {} free".format(folder, pace, size(value["free_bytes"]))
    return Outcome(OK, why, "", value)


def round_trip(folder: str) -> float:
    """Write a file there and read it back; returns megabytes per second of the synced write.

    Raises:
        OSError: A step failed, or the file came back different (EIO).
    """
    content = os.urandom(65536) * (_BYTES // 65536)
    first = os.path.join(folder, ".gpuconsole-check-{}".format(os.getpid()))
    second = first + "-renamed"
    try:
        begun = time.monotonic()
        fd = os.open(first, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        seconds = time.monotonic() - begun
        os.rename(first, second)
        with open(second, "rb") as file:
            if file.read() != content:
                raise OSError(errno.EIO, "the file came back different")
    finally:
        for path in (first, second):
            try:
                os.unlink(path)
            except OSError:
                pass
    return len(content) / 1e6 / max(seconds, 1e-6)


def cannot(folder: str, error: OSError, user: int) -> tuple[str, str]:
    """Why the folder cannot be used, and what to do."""
    number = error.errno
    if number == errno.EROFS:
        return "{} is read-only".format(folder), "Mount a folder there without :ro, or launch without --read-only."
    if number in (errno.EACCES, errno.EPERM):
        return (
            "user {} may not write {}".format(user, folder),
            "Launch it as the owner of that folder (--user), or change the owner of the mounted folder.",
        )
    if number in (errno.ENOSPC, errno.EDQUOT):
        return "there is no room in {}".format(folder), "Free some space on the disk under it."
    if number == errno.ENOENT:
        return "{} does not exist".format(folder), "Launch it with --workdir on a folder that exists."
    return "{} cannot be written: {}".format(folder, error.strerror or error), "Look at the disk under it."


def file_system(folder: str, mountinfo: str) -> tuple[str | None, str | None]:
    """Type and mount point of the file system ``folder`` is on, by the text of ``mountinfo``."""
    best: tuple[str | None, str | None] = (None, None)
    path = os.path.realpath(folder)
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        fields = left.split(" ")
        if len(fields) < 5 or not right:
            continue
        point = _unescape(fields[4])
        inside = path == point or path.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best[1] or ""):
            best = (right.split(" ")[0], point)
    return best


def _unescape(text: str) -> str:
    for code, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, char)
    return text


def temporary() -> str | None:
    """The folder Python would use for temporary files, without ours; None when there is none."""
    ours = os.environ.get("GPUCONSOLE_TMPDIR")
    if ours is None:
        return tempfile.gettempdir()
    saved = os.environ.get("TMPDIR")
    if ours:
        os.environ["TMPDIR"] = ours
    else:
        os.environ.pop("TMPDIR", None)
    previous, tempfile.tempdir = tempfile.tempdir, None
    try:
        return tempfile.gettempdir()
    except OSError:
        return None
    finally:
        tempfile.tempdir = previous
        if saved is not None:
            os.environ["TMPDIR"] = saved


def root_is_root(uid_map: str) -> bool:
    """User 0 in here is user 0 of the machine."""
    fields = uid_map.split()
    return len(fields) < 3 or fields[:2] == ["0", "0"]


def judge(value: dict[str, Any], *, ephemeral: bool) -> list[tuple[str, str]]:
    """What is worth a warning, each with its remedy, the weightiest first."""
    worries = []
    folder, kind = value["path"], value["file_system"]
    if value["free_bytes"] < LOW_BYTES:
        why = "{} has {} free, little for checkpoints".format(folder, size(value["free_bytes"]))
        worries.append((why, "Free some space, or mount a larger disk there."))
    if value["temporary"] is None:
        worries.append(("there is no folder for temporary files", "Launch it with a writable /tmp: --tmpfs /tmp."))
    mounted = kind not in ("overlay", "tmpfs")
    if mounted and value["user"] == 0 and value["owner"] != 0 and value["root_is_root"]:
        why = "files made in {} will belong to root, the folder to user {}".format(folder, value["owner"])
        worries.append((why, "Launch it with --user {}.".format(value["owner"])))
    if kind == "overlay" and not ephemeral:
        worries.append(("{} goes away with the container".format(folder), "Mount a folder of the host there: -v."))
    elif kind == "tmpfs" and not ephemeral:
        worries.append(("{} is in memory and goes away with the container".format(folder), "Mount a folder there: -v."))
    elif kind in _NETWORK:
        why = "{} is on the network ({})".format(folder, kind)
        worries.append((why, "Keep data that is read often on a local disk."))
    return worries
