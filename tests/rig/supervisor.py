"""The process that owns a rig's daemons and removes everything the moment its own owner ends, however that ends.

It talks over the packet socket that is its standard input: a JSON packet asks for a program to be started, another
answers and carries the program's pidfd. The socket's end, or the end of the owner's process, is the order to sweep.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import select
import signal
import socket
import subprocess
import sys
import traceback
from pathlib import Path
from typing import IO, Any

from tests.rig.places import MARK, locked
from tests.rig.sweep import CREATION, LOCK, sweep

_PR_SET_CHILD_SUBREAPER = 36
_MS_BIND, _MS_REC = 4096, 16384
PACKET = 128 * 1024
"""Largest packet in bytes; what is asked and answered is far below it."""


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _mount(source: Path | str, target: Path | str, kind: str | None, flags: int) -> None:
    fstype = kind.encode() if kind else None
    if _libc().mount(str(source).encode(), str(target).encode(), fstype, flags, None):
        raise OSError(ctypes.get_errno(), f"mount {source} on {target}")


def make_private_run(folder: Path) -> None:
    """Lay a private /run over the machine's, with all that is in it now.

    containerd's shims keep their sockets under /run/containerd, whatever the configuration says; this keeps them
    out of the machine's. We are in a mount namespace of our own, so nobody else sees it.
    """
    private = folder / "run"
    private.mkdir()
    _mount("tmpfs", private, "tmpfs", 0)
    for entry in Path("/run").iterdir():
        copy = private / entry.name
        if entry.is_symlink():
            copy.symlink_to(os.readlink(entry))
            continue
        if entry.is_dir():
            copy.mkdir()
        else:
            copy.touch()
        _mount(entry, copy, None, _MS_BIND | _MS_REC)
    _mount(private, "/run", None, _MS_BIND | _MS_REC)


def claim_forwarding(folder: Path) -> None:
    """Let the engines believe that the kernel forwards IPv4, as it does wherever Docker is installed.

    Otherwise they warn at every container; to really switch it on would change the machine.
    """
    switch = Path("/proc/sys/net/ipv4/ip_forward")
    if switch.read_text().strip() != "1":
        stand_in = folder / "ip_forward"
        stand_in.write_text("1\n")
        _mount(stand_in, switch, None, _MS_BIND)


def prepare(folder: Path, *, private_run: bool) -> IO[str]:
    """Create the rig's folder and give the lock file that says it is alive."""
    with locked(CREATION):
        folder.mkdir(mode=0o711)
        alive = (folder / LOCK).open("w")
        fcntl.flock(alive, fcntl.LOCK_EX)
    os.dup2(os.open(folder / "supervisor.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
    # Orphans of our daemons (container shims, detached servers) become our children instead of init's.
    _libc().prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    if private_run:
        make_private_run(folder)
        claim_forwarding(folder)
    return alive


def start(request: dict[str, Any], folder: Path) -> tuple[dict[str, Any], list[int]]:
    """Start one program in a session of its own, its output appended to the log the request names.

    Gives the answer and the program's pidfd, opened before it can be reaped.
    """
    environment = {**request["env"], MARK: str(folder)}
    try:
        with open(request["log"], "ab") as log:
            process = subprocess.Popen(
                request["argv"],
                env=environment,
                cwd=request.get("cwd") or folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
    except OSError as error:
        return {"error": str(error)}, []
    process.returncode = 0  # reaped by us below, not by its Popen
    return {"pid": process.pid}, [os.pidfd_open(process.pid)]


def _reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def serve(owner: socket.socket, owner_pid: int, folder: Path) -> None:
    """Answer the owner until it ends."""
    wake_out, wake_in = socket.socketpair()
    wake_in.setblocking(False)
    signal.set_wakeup_fd(wake_in.fileno(), warn_on_full_buffer=False)
    stopping: list[int] = []
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGTERM, lambda number, _: stopping.append(number))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        owner_end = os.pidfd_open(owner_pid)
    except ProcessLookupError:
        return
    owner.send(b'{"ready": true}')
    while not stopping:
        waiting: list[Any] = [owner, owner_end, wake_out]
        ready, _, _ = select.select(waiting, [], [])
        if wake_out in ready:
            wake_out.recv(4096)
            _reap()
        if owner_end in ready:
            return
        if owner in ready:
            packet = owner.recv(PACKET)
            if not packet:
                return
            answer, ends = start(json.loads(packet), folder)
            socket.send_fds(owner, [json.dumps(answer).encode()], ends)
            for end in ends:
                os.close(end)


def main() -> None:
    """Run for the owner at standard input: FOLDER OWNER_PID PRIVATE_RUN(0|1)."""
    folder, owner_pid, private_run = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "1"
    signal.pthread_sigmask(signal.SIG_SETMASK, [])  # what our owner blocks, our daemons must not
    owner = socket.socket(fileno=os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    alive = None
    try:
        alive = prepare(folder, private_run=private_run)
        serve(owner, owner_pid, folder)
    except Exception:
        traceback.print_exc()
        raise
    finally:
        if folder.exists() and alive is not None:
            os.chdir("/")
            sweep(folder, below=os.getpid())


if __name__ == "__main__":
    main()
