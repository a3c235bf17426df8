"""What becomes of a container that was just started: its first second, its output, its end."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from gpuconsole.core.errors import ConsoleError, EngineUnavailable, NotFound, TimedOut
from gpuconsole.engine.model import Container
from gpuconsole.engine.protocol import Engine, InteractiveProcess
from gpuconsole.services.cancelling import Cancellation, Cancelled
from gpuconsole.services.logtext import LineCleaner

SETTLE_S = 1.0
"""How long a fresh container is watched: what ends at once, ends within."""
LAST_LINES = 15
_EVENTS_S = 3.0
_END_S = 15.0
_REMOVAL_S = 10.0
_LOOK_AGAIN_S = 0.05


@dataclass(frozen=True, slots=True)
class Ending:
    """How a container ended."""

    exit_code: int | None
    """None when the engine does not know it any more."""
    container: Container | None = None
    """None when it was removed on its end."""
    last_lines: tuple[str, ...] = ()
    """The end of its output, harmless; empty when it was removed."""


def first_second(engine: Engine, container_id: str, *, started_at: float) -> Ending | None:
    """Watch a container that was just started; None when it runs on."""
    try:
        code: int | None = engine.wait(container_id, timeout_s=SETTLE_S)
    except TimedOut:
        return None
    except NotFound:
        return Ending(exit_code_from_events(engine, container_id, since=started_at))
    return ending_of(engine, container_id, code, started_at=started_at)


def ending_of(engine: Engine, container_id: str, code: int | None, *, started_at: float) -> Ending:
    """The ending of a container that has ended, with as much as is left of it."""
    try:
        container = engine.container(container_id)
        lines = last_lines(engine, container_id)
    except NotFound:
        return Ending(exit_code_from_events(engine, container_id, since=started_at) if code is None else code)
    if container.auto_remove:
        _await_removal(engine, container_id)
    return Ending(code, container, lines)


def _await_removal(engine: Engine, container_id: str) -> None:
    """Wait until a container that is removed on its end is gone, so that its name is free again."""
    deadline = time.monotonic() + _REMOVAL_S
    while time.monotonic() < deadline:
        try:
            engine.container(container_id)
        except NotFound:
            return
        time.sleep(_LOOK_AGAIN_S)


def last_lines(engine: Engine, container_id: str, *, count: int = LAST_LINES) -> tuple[str, ...]:
    """The last lines of its output, harmless; empty when the engine keeps none."""
    try:
        stream = engine.logs(container_id, tail=count)
    except ConsoleError:
        return ()
    cleaners: dict[str, LineCleaner] = {}
    lines: deque[str] = deque(maxlen=count)
    try:
        for channel, data in stream:
            lines.extend(cleaners.setdefault(channel, LineCleaner()).feed(data))
    except ConsoleError:
        return tuple(line.rstrip("\n") for line in lines)
    finally:
        stream.close()
    for cleaner in cleaners.values():
        lines.extend(cleaner.finish())
    return tuple(line.rstrip("\n") for line in lines)


def exit_code_from_events(engine: Engine, container_id: str, *, since: float) -> int | None:
    """The exit code of a container that is gone, from the events the engine still has; None when it has none."""
    stream = engine.events(since=since)
    timer = threading.Timer(_EVENTS_S, stream.close)
    timer.daemon = True
    timer.start()
    try:
        for event in stream:
            if event.id == container_id and event.action == "die":
                return event.exit_code
    finally:
        timer.cancel()
        stream.close()
    return None


def follow(
    engine: Engine,
    container_id: str,
    process: InteractiveProcess,
    *,
    name: str,
    started_at: float,
    on_output: Callable[[str, bytes], None],
    cancel: Cancellation,
) -> Ending:
    """Pass on the output of a container until it ends.

    Args:
        engine: Its engine.
        container_id: The container.
        process: Its output, joined before it was started, so that not a line is lost.
        name: What the user knows it by.
        started_at: When it was started, in seconds since the epoch.
        on_output: Gets ``"stdout" | "stderr"`` and what was written.
        cancel: Ends the following and leaves the container running.

    Raises:
        Cancelled: The following was stopped; the container goes on.
        EngineUnavailable: The engine went away; the container may go on.
    """
    with cancel.closing(process):
        for channel, data in process.output:
            if cancel.requested:
                break
            on_output(channel, data)
    if cancel.requested:
        raise Cancelled(
            f"No longer followed: {name} goes on.",
            hint=f"See it by 'gpuconsole logs -f {name}', end it by 'gpuconsole stop {name}'.",
        )
    try:
        code: int | None = engine.wait(container_id, timeout_s=_END_S)
    except NotFound:
        code = exit_code_from_events(engine, container_id, since=started_at)
    except TimedOut as error:
        raise EngineUnavailable(
            f"The connection to {name} ended, and it still runs.",
            hint=f"Join it again by 'gpuconsole attach {name}', or read it by 'gpuconsole logs -f {name}'.",
        ) from error
    return ending_of(engine, container_id, code, started_at=started_at)


def now() -> float:
    """Seconds since the epoch, a little early: the engine's clock may be another's."""
    return time.time() - 2
