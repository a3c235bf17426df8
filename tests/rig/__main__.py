"""`python -m tests.rig`: list the parts, hold some in the foreground, run a command with them, clean up."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading

from tests.rig import sweep
from tests.rig.owner import Rig
from tests.rig.parts import PARTS, Running, start
from tests.rig.places import CACHE, RigError, RigUnavailable


def _arguments(argv: list[str]) -> tuple[argparse.Namespace, list[str]]:
    command: list[str] = []
    if "--" in argv:
        cut = argv.index("--")
        argv, command = argv[:cut], argv[cut + 1 :]
    parser = argparse.ArgumentParser(prog="python -m tests.rig", description=__doc__)
    actions = parser.add_subparsers(dest="action", required=True)
    actions.add_parser("list", help="the parts, and the rigs that are up")
    clean = actions.add_parser("clean", help="remove what dead rigs left behind")
    clean.add_argument("--cache", action="store_true", help="remove the cache too: programs, images, engine data")
    for name, text in (
        ("up", "start parts, print the environment that leads to them, hold them until ctrl+c"),
        ("run", "start parts, run the COMMAND after -- with that environment, remove all"),
    ):
        action = actions.add_parser(name, help=text)
        action.add_argument("part", nargs="+")
    return parser.parse_args(argv), command


def _list() -> int:
    for part in PARTS.values():
        print(f"{part.name:24}{part.text}")
    print(f"\ncache: {CACHE}")
    for folder, alive in sweep.rigs():
        print(f"{folder}  {'up' if alive else 'dead: `python -m tests.rig clean` removes it'}")
    return 0


def _clean(*, cache: bool) -> int:
    for folder in sweep.clean():
        print(f"removed {folder}")
    if cache:
        if any(alive for _, alive in sweep.rigs()):
            raise RigError("rigs are up and use the cache: end them first")
        shutil.rmtree(CACHE, ignore_errors=True)
        print(f"removed {CACHE}")
    return 0


def _hold(running: Running) -> int:
    for name, value in running.environment.items():
        shown = f"{shlex.quote(value)}" if name != "PATH" else f"{shlex.quote(value.partition(':')[0])}:$PATH"
        print(f"export {name}={shown}")
    told = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: told.set())
    print("# ready; ctrl+c removes everything", flush=True)
    told.wait()
    print("# removing", file=sys.stderr, flush=True)
    return 0


def _run(running: Running, command: list[str]) -> int:
    if not command:
        raise RigError("nothing to run: put the command after --")
    environment = {**os.environ, **running.environment}
    environment.pop("DOCKER_CONTEXT", None)
    signal.signal(signal.SIGINT, lambda *_: None)  # the command has it too and decides
    return subprocess.run(command, env=environment, check=False).returncode


def main(argv: list[str]) -> int:
    """Do what the command line says and give the exit code."""
    asked, command = _arguments(argv)
    if asked.action == "list":
        return _list()
    try:
        if asked.action == "clean":
            return _clean(cache=asked.cache)
        with Rig() as rig:
            running = start(rig, asked.part)
            return _hold(running) if asked.action == "up" else _run(running, command)
    except (RigError, RigUnavailable) as error:
        print(f"rig: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
