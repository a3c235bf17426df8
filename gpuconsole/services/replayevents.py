"""What happened in a recording that one may want to go to: containers that began, ended or were killed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpuconsole.engine.model import Container
    from gpuconsole.services.containers import ContainerView
    from gpuconsole.services.replayfile import Recording


@dataclass(frozen=True, slots=True)
class Moment:
    """Something that happened."""

    at: float
    """Seconds since the start of the recording, when it was seen."""
    words: str
    """``train has started``."""


def moments_of(recording: Recording) -> tuple[Moment, ...]:
    """What happened between the first list of containers and the end, oldest first; things of one moment are one."""
    if (changes := getattr(recording.events, "changes", None)) is not None:
        return _moments_of_changes(changes, recording)
    found: dict[float, list[str]] = {}
    before: dict[str, Container] | None = None
    for event in recording.events:
        if event.kind == "containers":
            views: tuple[ContainerView, ...] = event.body
            now = {view.container.id: view.container for view in views}
            if before is not None and (words := [*_changes(before, now)]):
                found.setdefault(event.at, []).extend(words)
            before = now
    return tuple(Moment(at, "; ".join(words)) for at, words in found.items())


def _moments_of_changes(changes: list[tuple[float, Container]], recording: Recording) -> tuple[Moment, ...]:
    """The same of a long one, whose lists are not read for it: what was removed while it ran is left out."""
    first = recording.events.first("containers")  # type: ignore[attr-defined]
    found: dict[float, list[str]] = {}
    known: dict[str, Container] = {}
    for at, one in changes:
        before = {one.id: known[one.id]} if one.id in known else {}
        if at > first and (words := [*_changes(before, {one.id: one})]):
            found.setdefault(at, []).extend(words)
        known[one.id] = one
    return tuple(Moment(at, "; ".join(words)) for at, words in sorted(found.items()))


def _changes(before: dict[str, Container], now: dict[str, Container]) -> Iterator[str]:
    for key, one in now.items():
        was = before.get(key)
        if one.running and (was is None or not was.running or was.started_at != one.started_at):
            yield f"{one.name} has started"
        elif one.running and was is not None and one.oom_killed and not was.oom_killed:
            yield f"a process of {one.name} was killed: its memory limit"
        elif was is not None and was.running and not one.running:
            yield f"{one.name} has ended{_how(one)}"
    for key in before.keys() - now.keys():
        if before[key].running:
            yield f"{before[key].name} has ended and was removed"


def _how(one: Container) -> str:
    if one.oom_killed:
        return ": out of memory"
    return f" (exit {one.exit_code})" if one.exit_code else ""
