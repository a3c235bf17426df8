"""The interpreter that has gpuconsole loaded and forks a process for each run; see prepared.py.

Over the packet socket that is its standard input it is sent arguments, environment and folder with three pipes, and
answers with a pipe of its own: there the number of the run's process stands, and its exit status when it has ended.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import io
import json
import os
import pkgutil
import signal
import socket
import sys
import threading
from typing import Any

_PACKET = 1 << 20


def load() -> None:
    """Import what the command line imports, at once or when a command needs it."""
    for name in (
        "gpuconsole.cli",
        "gpuconsole.services",
        "gpuconsole.engine",
        "gpuconsole.images",
        "gpuconsole.launch",
    ):
        package = importlib.import_module(name)
        for module in pkgutil.walk_packages(package.__path__, f"{name}.", onerror=lambda _: None):
            with contextlib.suppress(Exception):  # what is broken is told by the run that needs it
                importlib.import_module(module.name)


def _streams(pipes: list[int]) -> None:
    """Put pipes in place of the three standard streams, opened as the interpreter opens them at its start."""
    for number, pipe in enumerate(pipes):
        os.dup2(pipe, number)
    for pipe in pipes:
        os.close(pipe)
    sys.stdin = sys.__stdin__ = open(0, encoding=sys.stdin.encoding, errors=sys.stdin.errors, closefd=False)  # type: ignore[misc]  # noqa: SIM115
    for name, number in (("stdout", 1), ("stderr", 2)):
        old = getattr(sys, name)
        new = io.TextIOWrapper(
            open(number, "wb", closefd=False),  # noqa: SIM115
            encoding=old.encoding, errors=old.errors, newline="\n", write_through=old.write_through,
            line_buffering=number == 2,
        )  # fmt: skip
        setattr(sys, name, new)
        setattr(sys, f"__{name}__", new)


def _run(request: dict[str, Any], pipes: list[int]) -> int:
    """Be the program, and give its exit code as the interpreter would leave with it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    _streams(pipes)
    sys.argv = ["gpuconsole", *request["arguments"]]
    from gpuconsole.cli.main import run

    code: object = 0
    try:
        run()
    except SystemExit as left:
        code = left.code
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]
    import atexit

    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    return code if isinstance(code, int) else 0 if code is None else 1


def _attend(request: dict[str, Any], pipes: list[int], tell: int) -> None:
    """Fork the program, and tell its number and its exit status."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    program = os.fork()
    if program == 0:
        os.close(tell)
        code = 1
        try:
            code = _run(request, pipes)
        finally:
            os._exit(code & 0xFF)
    for pipe in pipes:
        os.close(pipe)
    os.write(tell, f"{program}\n".encode())
    _, status = os.waitpid(program, 0)
    os.write(tell, f"{status}\n".encode())


def main() -> None:
    """Serve until the owner's end of the socket closes."""
    owner = socket.socket(fileno=os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # attendants are nobody's concern
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # ctrl+c ends our owner, and that ends us
    load()
    gc.collect()
    gc.freeze()
    while True:
        packet, pipes, _, _ = socket.recv_fds(owner, _PACKET, 3, socket.MSG_CMSG_CLOEXEC)
        if not packet:
            return
        told, tell = os.pipe()
        if os.fork() == 0:
            owner.close()
            os.close(told)
            try:
                _attend(json.loads(packet), pipes, tell)
            finally:
                os._exit(0)
        for pipe in (*pipes, tell):
            os.close(pipe)
        socket.send_fds(owner, [b"begun"], [told])
        os.close(told)


if __name__ == "__main__":
    main()
