"""How remembered launches ended, found out from the engine as long as it still knows."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

from gpuconsole.core.errors import ConsoleError
from gpuconsole.core.text import parse_size
from gpuconsole.diagnose.deaths import REMOVED, Cause, Death, explain
from gpuconsole.engine.model import Container, ContainerState
from gpuconsole.launch.labels import LAUNCH
from gpuconsole.services.endings import describe_ending, describe_exit
from gpuconsole.services.enginedeaths import before, by_hand, ended_with_engine, life_of
from gpuconsole.services.following import last_lines
from gpuconsole.services.secrets import mask_text

if TYPE_CHECKING:
    from gpuconsole.engine.model import EngineEvent, EngineInfo
    from gpuconsole.engine.protocol import Engine
    from gpuconsole.host.enginelife import EngineLife
    from gpuconsole.services.launchrecords import LaunchRecord, LaunchRecords

_EVENTS_S = 3.0
_LINES = 50
_BEGINNING_S = 10.0
"""A launch that failed so lately is about to be written down by who launched it."""
_AT_ONCE_S = 1.0
"""From the end of a container that is removed by force to its removal."""
_ALLOCATOR = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
_GONE = "Its container was removed, and nobody saw how it ended."


@dataclass(frozen=True, slots=True)
class LastDays:
    """What the engine's events tell of a container."""

    exit_code: int | None = None
    ended_at: float | None = None
    asked_to_stop: bool | None = None
    """None when no event tells."""
    oom: bool = False
    """Its memory limit was reached."""
    killed_at_once: bool = False
    """SIGKILL was all that was sent to it."""
    sent: tuple[int | None, ...] = ()
    """Signals sent to it by the engine; None is one that was not told."""
    removed_at: float | None = None


def settle(engine: Engine, records: LaunchRecords) -> tuple[Container, ...]:
    """Write down how the launches ended that were still running when they were last looked at, and which run again.

    Returns:
        The engine's containers; nothing when no launch on it is remembered.
    """
    info = engine.info()
    known = [record for record in records.all() if record.engine == info.endpoint]
    if not known:
        return ()
    containers = engine.containers(everything=True)
    by_word = {container.labels.get(LAUNCH, ""): container for container in containers}
    life = cache(lambda: life_of(info))
    for record in known:
        container = by_word.get(record.word)
        if record.ended:
            if container is not None and _runs_again(container, record):
                records.resume(record.number)
        elif container is not None or record.container_id or time.time() - record.started_at > _BEGINNING_S:
            settle_one(engine, records, record, container, life=life)
    return containers


def _runs_again(container: Container, record: LaunchRecord) -> bool:
    began, ended = container.started_at, record.ended_at
    return container.running and began is not None and ended is not None and began > ended


def remember_ending(engine: Engine, container: Container) -> None:
    """The same for one container that is about to be removed; it is removed whether that works or not."""
    word = container.labels.get(LAUNCH)
    if not word:
        return
    from gpuconsole.services.launchrecords import LaunchRecords

    with contextlib.suppress(ConsoleError):
        records = LaunchRecords()
        try:
            record = records.by_word(word)
            if record is not None and not record.ended:
                settle_one(engine, records, record, container)
                _end_running(records, record, container)
        finally:
            records.close()


def _end_running(records: LaunchRecords, record: LaunchRecord, container: Container) -> None:
    if container.running:
        records.end(
            record.number, ended_at=time.time(), exit_code=None, cause=REMOVED, reason="It was removed as it ran."
        )


def settle_one(
    engine: Engine,
    records: LaunchRecords,
    record: LaunchRecord,
    container: Container | None,
    *,
    life: Callable[[], EngineLife] | None = None,
) -> None:
    """Write down how one launch ended; nothing while it goes on.

    Args:
        engine: Where its container is.
        records: Where it is written down.
        record: The launch.
        container: Its container; None when it is gone.
        life: What is known of the engine, asked only when it matters; None finds it out.
    """
    if container is None:
        _settle_gone(engine, records, record)
        return
    if record.container_id != container.id:
        records.started(record.word, container.id)
    if container.state not in (ContainerState.EXITED, ContainerState.DEAD):
        return
    lines = last_lines(engine, container.id, count=_LINES)
    info = engine.info()
    known = life() if life is not None else life_of(info)
    # An engine's events begin with it.
    events = LastDays() if before(container, known) else last_days(engine, container.id, since=record.started_at)
    cause = explain(death_of(container, lines, events, info=info, life=known))
    records.end(
        record.number,
        ended_at=container.finished_at or time.time(),
        exit_code=container.exit_code,
        cause=cause.slug if cause else None,
        reason=reason_of(container, cause),
        advice=cause.advice if cause else (),
        last_lines=tuple(map(mask_text, lines[-15:])),
    )


def _settle_gone(engine: Engine, records: LaunchRecords, record: LaunchRecord) -> None:
    container_id = record.container_id
    events = LastDays()
    if container_id:
        events = last_days(engine, container_id, since=record.started_at, gone=True)
    code = events.exit_code
    reason, cause = _GONE, None
    if code is not None:
        limit = _memory_limit(record)
        cause = explain(
            Death(
                code,
                oom_killed=events.oom,
                memory_limit_bytes=limit,
                asked_to_stop=events.asked_to_stop,
                killed_at_once=events.killed_at_once,
                removed_running=_removed_running(events),
            )
        )
        since = "" if cause is not None and cause.slug == REMOVED else " Its container was removed since."
        reason = f"{_with_cause(_sentence(describe_exit(code)), cause)}{since}"
    records.end(
        record.number, ended_at=events.ended_at or time.time(), exit_code=code, cause=cause.slug if cause else "gone",
        reason=reason, advice=cause.advice if cause else (),
    )  # fmt: skip


def _removed_running(events: LastDays) -> bool:
    """Whether it was killed in order to be removed: nothing else removes one the moment it is killed."""
    ended, removed = events.ended_at, events.removed_at
    return events.killed_at_once and ended is not None and removed is not None and removed - ended < _AT_ONCE_S


def reason_of(container: Container, cause: Cause | None) -> str:
    """Why it ended, a sentence or two: the exit code in words, and the cause where one is known."""
    return _with_cause(_sentence(describe_ending(container) or "it has ended"), cause)


def _memory_limit(record: LaunchRecord) -> int | None:
    try:
        return parse_size(str(record.options.get("memory", "")))
    except ValueError:
        return None


def _with_cause(how: str, cause: Cause | None) -> str:
    return how if cause is None else f"{_first(how, cause)}{cause.sentence}"


def _first(how: str, cause: Cause) -> str:
    """What is said before the cause: only the code where the cause says the same in better words."""
    code = how.partition(":")[0]
    return f"{code}: " if code.startswith("Exit code") else f"{how} "


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def death_of(
    container: Container, lines: Sequence[str], events: LastDays, *, info: EngineInfo, life: EngineLife | None = None
) -> Death:
    """What is known of a container that has ended.

    Args:
        container: As the engine describes it.
        lines: The last it wrote.
        events: What the engine's events tell.
        info: The engine.
        life: When it began and was stopped; None finds it out.
    """
    variables: Mapping[str, str | None] = dict(container.environment)
    life = life_of(info) if life is None else life
    hand = by_hand(container, info, life)
    restarted = not hand and ended_with_engine(container, life, live_restore=info.live_restore)
    ended, began = container.finished_at, life.began_at
    return Death(
        exit_code=container.exit_code,
        oom_killed=container.oom_killed,
        memory_limit_bytes=container.memory_limit_bytes,
        shm_bytes=container.shm_bytes,
        private_shm=container.ipc_mode in ("", "private", "shareable"),
        lines=tuple(lines),
        allocator=next((value for name in _ALLOCATOR if (value := variables.get(name))), "") or "",
        asked_to_stop=True if hand else events.asked_to_stop,
        killed_at_once=events.killed_at_once,
        engine_restarted=bool(restarted),
        engine_began_later_s=began - ended if began is not None and ended is not None and began > ended else None,
    )


def last_days(engine: Engine, container_id: str, *, since: float, gone: bool = False) -> LastDays:
    """The end of a container as the engine's events have it; they reach back some hundred events at most.

    Args:
        engine: Whose events.
        container_id: The container.
        since: When it began, in seconds since the epoch.
        gone: It was removed, so that its removal is among the events.
    """
    try:
        stream = engine.events(since=max(0.0, since - 2))
    except ConsoleError:
        return LastDays()
    timer = threading.Timer(_EVENTS_S, stream.close)
    timer.daemon = True
    timer.start()
    seen = LastDays()
    try:
        for event in stream:
            if event.id == container_id:
                seen = _after(seen, event)
                if seen.removed_at is not None or (seen.ended_at is not None and not gone):
                    break
    except ConsoleError:
        pass
    finally:
        timer.cancel()
        stream.close()
    return seen


def _after(seen: LastDays, event: EngineEvent) -> LastDays:
    """What is known with one event more."""
    match event.action:
        case "start":  # what was before its newest start is not how it ended
            return LastDays()
        case "kill":
            return replace(seen, sent=(*seen.sent, event.signal))
        case "oom":
            return replace(seen, oom=True)
        case "die":
            return replace(
                seen, exit_code=event.exit_code, ended_at=event.at, asked_to_stop=bool(seen.sent),
                killed_at_once=set(seen.sent) == {signal.SIGKILL},
            )  # fmt: skip
        case "destroy":
            return replace(seen, removed_at=event.at)
    return seen
