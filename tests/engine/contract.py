"""What every engine behind the protocol must do, told as functions that take one: the ground they stand on.

Each function gets a :class:`Ground`: the engine, an image with busybox in it, and names of its own. They ask only what
the protocol promises, so an engine in memory can be held to them like a real one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import ModuleType

from gpuconsole.core.errors import ConsoleError
from gpuconsole.engine.protocol import Engine, ExecProcess
from gpuconsole.engine.request import CreateRequest

PATIENCE_S = 60.0
Clause = Callable[["Ground"], None]


@dataclass(frozen=True, slots=True)
class Ground:
    """What a function of the contract stands on."""

    engine: Engine
    image: str
    """An image with busybox and without an entrypoint."""
    prefix: str
    """Begins every name it gives."""
    folder: str
    """A folder that the engine can mount."""
    made: list[str] = field(default_factory=list)

    def name(self, word: str) -> str:
        return f"{self.prefix}-{word}"

    def create(self, word: str, *command: str, **fields: object) -> str:
        """Make a container of busybox."""
        request = CreateRequest(
            image=self.image,
            name=self.name(word),
            command=command or ("sleep", "1000"),
            **fields,  # type: ignore[arg-type]
        )
        identity = self.engine.create(request)
        self.made.append(identity)
        return identity

    def run(self, word: str, *command: str, **fields: object) -> str:
        """Make and start one."""
        identity = self.create(word, *command, **fields)
        self.engine.start(identity)
        return identity

    def finished(self, word: str, *command: str, **fields: object) -> str:
        """Run one to its end."""
        identity = self.run(word, *command, **fields)
        self.engine.wait(identity, timeout_s=PATIENCE_S)
        return identity

    def clear(self) -> None:
        """Remove what was made."""
        for identity in self.made:
            with suppress(ConsoleError):
                self.engine.remove(identity, force=True, volumes=True)


def clause(function: Clause) -> Clause:
    """Make a function part of the contract."""
    function.__dict__["of_the_contract"] = True
    return function


def clauses_of(*modules: ModuleType) -> list[Clause]:
    """The parts of the contract in modules, in the order they are written in."""
    return [item for module in modules for item in vars(module).values() if _is_clause(item)]


def _is_clause(item: object) -> bool:
    return bool(getattr(item, "__dict__", {}).get("of_the_contract"))


def until(condition: Callable[[], bool], *, what: str) -> None:
    """Wait for something that takes its time."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.05)


def outcome(process: ExecProcess) -> tuple[bytes, bytes, int | None]:
    """Standard output and error of a process, read to the end, and its exit code."""
    parts: dict[str, bytearray] = {"stdout": bytearray(), "stderr": bytearray()}
    for stream, data in process.output:
        parts[stream] += data
    code = process.exit_code()
    process.close()
    return bytes(parts["stdout"]), bytes(parts["stderr"]), code


def logged(ground: Ground, identity: str, **options: object) -> dict[str, bytes]:
    """All output of a container by stream."""
    parts = {"stdout": b"", "stderr": b""}
    for stream, data in ground.engine.logs(identity, **options):  # type: ignore[arg-type]
        parts[stream] += data
    return parts


def stream_into(stream: Iterable[tuple[str, bytes]], pieces: list[bytes]) -> Callable[[], None]:
    """Work for :func:`reader`: what comes, without the names of its streams."""
    return lambda: pieces.extend(data for _, data in stream)


@contextmanager
def reader(work: Callable[[], None]) -> Iterator[threading.Thread]:
    """Run something on a thread beside; its failure is this one's."""
    failures: list[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=guarded, daemon=True)
    thread.start()
    yield thread
    thread.join(PATIENCE_S)
    if failures:
        raise failures[0]
