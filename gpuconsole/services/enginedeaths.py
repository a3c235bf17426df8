"""Whether a container ended because its engine, or the machine, was stopped: said only where something shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuconsole.host.enginelife import EngineLife, engine_life, stopped_by_hand

if TYPE_CHECKING:
    from gpuconsole.engine.model import Container, EngineInfo

_TOLERANCE_S = 2.0
"""Between the clocks of engine, kernel and service manager, the last of which counts whole seconds."""
_CLOSE_S = 30.0
"""An end by a signal so shortly before the engine began anew is the restart's: containers are given ten seconds."""
_SHUTDOWN_S = 30.0
_SIGNALLED = (130, 137, 143)
LOST = 255
"""The code that an engine gives to a container that it finds ended when it begins."""
_SOCKET = "unix://"


def life_of(info: EngineInfo) -> EngineLife:
    """What is known of an engine of this machine; nothing of one elsewhere."""
    if not info.local or not info.endpoint.startswith(_SOCKET) or info.name == "podman":
        return EngineLife()
    return engine_life(info.endpoint.removeprefix(_SOCKET))


def before(container: Container, life: EngineLife) -> bool:
    """Whether it ended before the engine that runs now began."""
    ended = container.finished_at
    return life.began_at is not None and ended is not None and ended < life.began_at - _TOLERANCE_S


def ended_with_engine(container: Container, life: EngineLife, *, live_restore: bool = False) -> bool | None:
    """Whether it ended with its engine or with the machine; None when nothing tells.

    Args:
        container: One that has ended.
        life: What is known of its engine.
        live_restore: The engine leaves containers running while it is stopped.
    """
    began, ended, started, code = life.began_at, container.finished_at, container.started_at, container.exit_code
    if began is None or ended is None:
        return None
    if started is not None and started >= began:
        return False
    if ended > began + _TOLERANCE_S:
        # It was begun before and was seen to end after: an engine that begins ends what it finds running, or finds
        # it gone. One that leaves containers running does neither.
        return (None if code == LOST else False) if live_restore else True
    signalled = code in (*_SIGNALLED, LOST)
    if abs(ended - began) <= _TOLERANCE_S:
        return True if signalled else None
    return _ended_before(life, ended, signalled=signalled)


def _ended_before(life: EngineLife, ended: float, *, signalled: bool) -> bool | None:
    """The same of one that ended while an engine before this one ran, or stopped."""
    began, stopping = life.began_at or 0.0, life.stopping_at
    if stopping is not None and stopping < began:
        if ended >= stopping - _TOLERANCE_S:
            return True
        # It may have been an earlier restart, of which nothing is known: not this one, at any rate.
        began = stopping
    if any(-_SHUTDOWN_S <= at - ended <= _SHUTDOWN_S for at in life.shutdowns):
        return True if signalled else None
    if stopping is None and signalled and began - ended < _CLOSE_S:
        return True
    return None


def by_hand(container: Container, info: EngineInfo, life: EngineLife) -> bool | None:
    """Whether somebody had the engine stop a container before the engine began anew; None when that is not known."""
    if life.began_at is None or container.finished_at is None or container.finished_at > life.began_at:
        return None
    # What an engine ends at its beginning would count as by hand there, what it ends at its end does not.
    return stopped_by_hand(info.root_dir, container.id) if info.local and info.root_dir else None
