"""What the tests of the command line share: gpuconsole on an engine of the rig, in pipes."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.rig import prepared
from tests.rig.engines import Engine

US = (sys.executable, "-m", "gpuconsole")
OBEYED = {chr(code) for code in (*range(0, 9), *range(11, 32), *range(127, 160))} | set("\u202e\u200b\u2066")
"""Characters that a terminal would obey, or that disguise text; newline and tab are not among them."""


@dataclass(frozen=True, slots=True)
class Done:
    """What a run of gpuconsole gave."""

    code: int
    out: bytes
    err: bytes

    @property
    def text(self) -> str:
        return self.out.decode()

    @property
    def talk(self) -> str:
        return self.err.decode()

    @property
    def document(self) -> Any:
        return json.loads(self.out)


def environment(engine: Engine, base: Mapping[str, str] | None = None, **more: str) -> dict[str, str]:
    return {**(base or os.environ), "LANG": "C.UTF-8", **engine.env(), **more}


def gpuconsole(engine: Engine, *arguments: str, base: Mapping[str, str] | None = None, **more: str) -> Done:
    done = prepared.gpuconsole(*arguments, env=environment(engine, base, **more))
    return Done(done.returncode, done.stdout, done.stderr)


def start(engine: Engine, name: str, *options: str, image: str = "small", command: tuple[str, ...] = ()) -> str:
    """Start a container; it sleeps unless told otherwise. Gives its id."""
    made = engine.docker("run", "-d", "--name", name, *options, engine.load(image), *(command or ("sleep", "1000000")))
    return made.stdout.strip()


def run_to_end(engine: Engine, name: str, *options: str, command: tuple[str, ...]) -> None:
    """Run a container until it ends, however."""
    engine.docker("run", "--name", name, *options, engine.load("small"), *command, check=False)


def pid_of(engine: Engine, name: str) -> int:
    return int(engine.docker("inspect", "-f", "{{.State.Pid}}", name).stdout)


def state(engine: Engine, name: str) -> str:
    return engine.docker("inspect", "-f", "{{.State.Status}}", name, check=False).stdout.strip()


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)
