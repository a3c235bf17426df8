"""Containers that ended for want of memory, or were killed: noticed once, and explained as ``gpuconsole runs`` does."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpuconsole.core.errors import ConsoleError
from gpuconsole.engine.model import Container, ContainerState
from gpuconsole.services.endings import KILLED

if TYPE_CHECKING:
    from gpuconsole.engine.protocol import Engine
    from gpuconsole.services.containers import ContainerView

_GRACE_S = 15.0
"""A signal is sent so long before the end it brings."""
_MOMENT_S = 3.0
_LINES = 50
_MOST = 50
_QUIET = frozenset({"stopped", "removed", "engine-restarted"})
"""Causes that somebody knows who is there: it was asked for."""


@dataclass(frozen=True, slots=True)
class Ending:
    """Why a container is gone."""

    container_id: str
    name: str
    finished_at: float | None
    sentence: str
    """The exit code in words, and the cause where one is known."""
    advice: tuple[str, ...] = ()
    cause: str | None = None
    """``cuda-out-of-memory`` …"""
    asked_for: bool = False
    """Somebody stopped it, or the engine ended with it."""

    @property
    def key(self) -> str:
        """Names the end of this run of it."""
        return f"end {self.container_id}/{self.finished_at or 0:.0f}"


class DeathWatch:
    """Notices which containers end so that it must be told. For one thread."""

    def __init__(self) -> None:
        self._running: frozenset[str] | None = None
        self._suspects: set[str] = set()
        self._ended: dict[str, Container] = {}
        """Those that failed since the first list and were not told: a look at the GPUs may come later."""
        self._reached: set[str] = set()
        """Running ones that reached their memory limit, told or not."""
        self._hurt: dict[str, tuple[Container, float | None]] = {}
        """Those of which it is not told yet, and since when it waits."""

    def suspect(self, container_id: str) -> Container | None:
        """A process of it ended while GPU memory was nearly full: its end is to be explained, whatever its code.

        Returns:
            The container, when it has ended by now.
        """
        self._suspects.add(container_id)
        return self._ended.pop(container_id, None)

    def listed(self, views: Iterable[ContainerView]) -> tuple[Container, ...]:
        """The engine's containers are these; returns those that ended since, to be explained.

        What had ended before the first list is no news.
        """
        containers = [view.container for view in views]
        self._limits_reached(containers, first=self._running is None)
        before, self._running = self._running, frozenset(one.id for one in containers if _goes_on(one))
        self._suspects &= {one.id for one in containers}
        if before is None:
            return ()
        ended = [one for one in containers if one.id in before and not _goes_on(one)]
        found = tuple(one for one in ended if one.exit_code != 0 and self._is_news(one))
        self._suspects -= {one.id for one in ended}
        self._ended = {key: one for key, one in self._ended.items() if key not in self._running}
        self._ended |= {one.id: one for one in ended if one.exit_code != 0 and one not in found}
        self._ended = dict(list(self._ended.items())[-_MOST:])
        return found

    def _limits_reached(self, containers: Iterable[Container], *, first: bool) -> None:
        running = {one.id: one for one in containers if one.running and one.oom_killed}
        fresh = running.keys() - self._reached
        self._reached = set(running)
        self._hurt = {key: each for key, each in self._hurt.items() if key in running}
        if not first:
            self._hurt |= {key: (running[key], None) for key in fresh}

    def hurt(self, now: float) -> tuple[Container, ...]:
        """Containers in which a process was killed for their memory limit, and which go on; each once.

        One that ends with that process does so in a moment: then that is what there is to tell.
        """
        self._hurt = {key: (one, now if since is None else since) for key, (one, since) in self._hurt.items()}
        told = tuple(one for one, since in self._hurt.values() if since is not None and now - since >= _MOMENT_S)
        for one in told:
            del self._hurt[one.id]
        return told

    def _is_news(self, one: Container) -> bool:
        return one.oom_killed or one.exit_code == KILLED or one.id in self._suspects


def _goes_on(one: Container) -> bool:
    return one.state not in (ContainerState.EXITED, ContainerState.DEAD)


def explain_ending(engine: Engine, container: Container) -> Ending:
    """Why a container that has ended is gone, by its last lines and the engine's events. It blocks.

    Raises:
        ConsoleError: The engine does not answer.
    """
    from gpuconsole.diagnose.deaths import explain
    from gpuconsole.services.following import last_lines
    from gpuconsole.services.launchends import death_of, last_days, reason_of

    lines = last_lines(engine, container.id, count=_LINES)
    since = max(container.started_at or 0.0, (container.finished_at or 0.0) - _GRACE_S)
    events = last_days(engine, container.id, since=since)
    cause = explain(death_of(container, lines, events, info=engine.info()))
    return Ending(
        container.id, container.name, container.finished_at, reason_of(container, cause),
        cause.advice if cause is not None else (), cause.slug if cause is not None else None,
        cause is not None and cause.slug in _QUIET,
    )  # fmt: skip


def explained(engine: Callable[[], Engine], container: Container) -> Ending:
    """The same; of an engine that is away by now, what is certain all the same."""
    from gpuconsole.services.launchends import reason_of

    try:
        return explain_ending(engine(), container)
    except ConsoleError:
        return Ending(container.id, container.name, container.finished_at, reason_of(container, None))
