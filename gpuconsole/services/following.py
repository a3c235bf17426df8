"""What becomes of a container that was just started: its first second, its output, its end."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

from gpuconsole.core.errors import ConsoleError, EngineUnavailable, NotFound, TimedOut
from gpuconsole.core.text import plain
from gpuconsole.engine.model import Container, ContainerState
from gpuconsole.engine.protocol import Engine, InteractiveProcess
from gpuconsole.services.cancelling import Cancellation, Cancelled
from gpuconsole.services.endings import KILLED, describe_ending, describe_exit
from gpuconsole.services.logtext import LineCleaner

SETTLE_S = 1.0
"""How long a fresh container is watched: what ends at once, ends within."""
LAST_LINES = 15
_EVENTS_S = 3.0
_END_S = 15.0
_REMOVAL_S = 10.0
_LOOK_AGAIN_S = 0.05
_SHORT_OUTPUT = 4096
"""Bytes; so much of what a followed container wrote is kept for telling how it ended."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a container ended."""

    exit_code: int | None
    """None when the engine does not know it any more."""
    container: Container | None = None
    """None when it was removed on its end."""
    last_lines: tuple[str, ...] = ()
    """The end of its output, harmless; empty when it was removed and nobody followed it."""
    restarts: int | None = None
    """How often the engine has started it again by now; None when it has ended for good."""
    oom: bool = False
    """Of one that was removed: the engine told that its memory limit was reached."""

    @property
    def words(self) -> str:
        """What became of it, as a sentence without its subject and its stop."""
        container = self.container
        how = describe_ending(container) if container is not None else None
        if how is None:
            # While it is being removed, the engine says no more that it has ended.
            oom = self.oom or (container is not None and container.oom_killed)
            how = "exit code unknown" if self.exit_code is None else describe_exit(self.exit_code, oom=oom)
        if container is None or self.restarts is None:
            return f"has ended already, {how}"
        times = "once" if self.restarts == 1 else f"{self.restarts} times"
        policy = container.restart_policy
        return f"has ended {times} already and is started again each time (--restart {policy}); the last time {how}"


def first_second(engine: Engine, container_id: str, *, started_at: float) -> Ending | None:
    """Watch a container that was just started; None when it runs on.

    One that the engine starts again is watched for all of the second, to tell how often it ends.
    """
    until = time.monotonic() + SETTLE_S
    left_s, ending = SETTLE_S, None
    while left_s > 0 and (ending is None or ending.restarts is not None):
        try:
            code = engine.wait(container_id, timeout_s=left_s)
        except TimedOut:
            break
        except NotFound:
            return _ending_of_gone(engine, container_id, None, started_at=started_at)
        ending = ending_of(engine, container_id, code, started_at=started_at)
        left_s = until - time.monotonic()
    return ending or _restarted_unseen(engine, container_id, started_at=started_at)


def _restarted_unseen(engine: Engine, container_id: str, *, started_at: float) -> Ending | None:
    """The ending of a container that ended and was started again before anybody looked; None of one that never did."""
    try:
        container = engine.container(container_id)
    except NotFound:
        return _ending_of_gone(engine, container_id, None, started_at=started_at)
    if not _is_started_again(container):
        return None
    code = exit_code_from_events(engine, container_id, since=started_at)
    return Ending(code, container, last_lines(engine, container_id), container.restart_count)


def ending_of(engine: Engine, container_id: str, code: int | None, *, started_at: float) -> Ending:
    """The ending of a container that has ended, with as much as is left of it."""
    try:
        container = engine.container(container_id)
        lines = last_lines(engine, container_id)
    except NotFound:
        return _ending_of_gone(engine, container_id, code, started_at=started_at)
    if container.auto_remove:
        _await_removal(engine, container_id)
    return Ending(code, container, lines, container.restart_count if _is_started_again(container) else None)


def _ending_of_gone(engine: Engine, container_id: str, code: int | None, *, started_at: float) -> Ending:
    """The ending of a container that was removed: what its exit code leaves open, the events tell."""
    if code not in (None, KILLED):
        return Ending(code)
    told, oom = _end_from_events(engine, container_id, since=started_at)
    return Ending(told if code is None else code, oom=oom)


def _is_started_again(container: Container) -> bool:
    """It ended, and the engine has started it again, or is about to."""
    return container.state is ContainerState.RESTARTING or (container.running and container.restart_count > 0)


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
    return _end_from_events(engine, container_id, since=since)[0]


def _end_from_events(engine: Engine, container_id: str, *, since: float) -> tuple[int | None, bool]:
    """The same, and whether its memory limit was reached before."""
    oom = False
    stream = engine.events(since=since)
    timer = threading.Timer(_EVENTS_S, stream.close)
    timer.daemon = True
    timer.start()
    try:
        for event in stream:
            if event.id != container_id:
                continue
            oom = oom or event.action == "oom"
            if event.action == "die":
                return event.exit_code, oom
    finally:
        timer.cancel()
        stream.close()
    return None, oom


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
    seen = b""
    with cancel.closing(process):
        for channel, data in process.output:
            if cancel.requested:
                break
            on_output(channel, data)
            seen += data[: _SHORT_OUTPUT + 1 - len(seen)]
    if cancel.requested:
        raise Cancelled(
            f"No longer followed: {name} goes on.",
            hint=f"See it by 'gpuconsole logs -f {name}', end it by 'gpuconsole stop {name}'.",
        )
    try:
        code = _first_end(engine, container_id, started_at=started_at)
    except TimedOut as error:
        raise EngineUnavailable(
            f"The connection to {name} ended, and it still runs.",
            hint=f"Join it again by 'gpuconsole attach {name}', or read it by 'gpuconsole logs -f {name}'.",
        ) from error
    ending = ending_of(engine, container_id, code, started_at=started_at)
    if ending.last_lines or len(seen) > _SHORT_OUTPUT:
        return ending
    return replace(ending, last_lines=tuple(plain(seen).splitlines()))


def _first_end(engine: Engine, container_id: str, *, started_at: float) -> int | None:
    """The exit code that a container's output ended with; None when the engine does not know it any more.

    Raises:
        TimedOut: It has not ended.
    """
    try:
        container = engine.container(container_id)
        if container.restart_policy in ("", "no"):
            return engine.wait(container_id, timeout_s=_END_S)
    except NotFound:
        return exit_code_from_events(engine, container_id, since=started_at)
    # One that is started again at once runs by now, and the end to wait for would be its next.
    code = exit_code_from_events(engine, container_id, since=started_at)
    return engine.wait(container_id, timeout_s=_END_S) if code is None else code


def now() -> float:
    """Seconds since the epoch, a little early: the engine's clock may be another's."""
    return time.time() - 2
