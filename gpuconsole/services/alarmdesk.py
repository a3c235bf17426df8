"""All about alarms in one place: what stands, what rang, what was dismissed, who idles, and what is told now."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from gpuconsole.core.text import size
from gpuconsole.gpu.forecast_model import Subject
from gpuconsole.gpu.state import MemoryState
from gpuconsole.services.alarmdeaths import DeathWatch, Ending
from gpuconsole.services.alarmevidence import Evidence
from gpuconsole.services.alarmfile import AlarmFile
from gpuconsole.services.alarmidle import IdleHolders, IdleNote
from gpuconsole.services.alarmlost import LostGpus
from gpuconsole.services.alarmnames import names_of
from gpuconsole.services.alarms import Alarm, Alarms

if TYPE_CHECKING:
    from gpuconsole.engine.model import Container
    from gpuconsole.host.model import HostView
    from gpuconsole.services.containers import ContainerView

PAST_S = 1800.0
"""What is over is listed for so long: so far back reach the samples that can be saved of it."""
_SAME_S = 30.0
"""A process that fails and the end of its container within so many seconds are one death."""


class Standing(StrEnum):
    """How an alarm is."""

    RINGS = "told"
    """It stands, and was told."""
    ENDED = "ended"
    """Something is gone."""
    QUIET = "quiet"
    """It stands, and does not ring: by the user's configuration, or because another one rang for the same cause."""
    OVER = "over"
    """It rang, and does not stand any more."""
    DISMISSED = "dismissed"
    NOTE = "note"
    """Nothing that rings."""


@dataclass(frozen=True, slots=True)
class Listed:
    """One alarm as it is listed."""

    alarm: Alarm
    standing: Standing

    @property
    def key(self) -> str:
        """Names the row."""
        return self.alarm.key


class AlarmDesk:
    """What is known of alarms. For one thread.

    Args:
        least: RISK or CRITICAL, from which on a trend rings.
        file: What consoles remember together.
    """

    def __init__(self, *, least: MemoryState, file: AlarmFile) -> None:
        self.file = file
        self.evidence = Evidence()
        self.endings: dict[str, Ending] = {}
        """Container id → why it ended, for those that were explained."""
        self._alarms = Alarms(least=least, dismissed=file.dismissed)
        self._idle = IdleHolders()
        self._lost = LostGpus()
        self._deaths = DeathWatch()
        self._told: dict[str, Alarm] = {}
        """What rang, by its key."""
        self._notes: tuple[IdleNote, ...] = ()
        self._to_explain: list[Container] = []
        self._now = 0.0

    # --- news ---

    def host_looked(self, view: HostView, containers: Iterable[ContainerView] | None) -> tuple[Alarm, ...]:
        """Take a look at the machine; returns what is to be told."""
        self._now = now = view.snapshot.taken_at
        if view.memory is not None:
            self.evidence.add(view.snapshot, view.memory)
        self._notes = self._idle.looked(view)
        names = names_of(view, (each.container for each in containers or ()))
        told = tuple(each for each in self._alarms.looked(view.outlooks, now, names=names) if self._is_news(each))
        told = (*told, *self._lost.looked(view, now), *(_limit_reached(each, now) for each in self._deaths.hurt(now)))
        for whole in told:
            for alarm in whole.parts or (whole,):
                self._told[alarm.key] = replace(alarm, told=True)
                if alarm.subject is Subject.PROCESS and alarm.state is MemoryState.FAILED and alarm.container_id:
                    self._to_explain += filter(None, [self._deaths.suspect(alarm.container_id)])
        standing = {each.key for each in self._alarms.standing()}
        self._told = {key: each for key, each in self._told.items() if key in standing or 0 <= now - each.at <= PAST_S}
        return told

    def _is_news(self, alarm: Alarm) -> bool:
        """Not the failure of a process whose container's end was told already."""
        if alarm.state is not MemoryState.FAILED or alarm.container_id is None:
            return True
        return not any(
            each.container_id == alarm.container_id and each.key.startswith("end ") and alarm.at - each.at <= _SAME_S
            for each in self._told.values()
        )

    def containers_listed(self, views: Iterable[ContainerView]) -> None:
        """The engine's containers are these."""
        listed = tuple(views)
        self._to_explain += self._deaths.listed(listed)
        here = {each.container.id for each in listed if not each.container.running}
        self.endings = {key: each for key, each in self.endings.items() if key in here}

    def to_explain(self) -> tuple[Container, ...]:
        """Containers whose end is to be explained now; each is given once."""
        found, self._to_explain = tuple(self._to_explain), []
        return found

    def ended(self, ending: Ending, now: float, *, quietly: bool = False) -> Alarm | None:
        """Why a container is gone has been found out; ``quietly`` for one that is no news.

        Returns:
            What is to be told; None when it was asked for, or its failure rang already: then that says more now.
        """
        self.endings[ending.container_id] = ending
        if quietly or ending.asked_for:
            return None
        why = " ".join((ending.sentence, *ending.advice[:1]))
        alarm = Alarm(
            ending.key, f"{ending.name} has ended", MemoryState.FAILED, why, now, container_id=ending.container_id,
            told=True,
        )  # fmt: skip
        rang = self._alarms.close_to(ending.container_id, within_s=_SAME_S, now=now)
        for key in [key for key, each in self._told.items() if rang and each.container_id == ending.container_id]:
            if self._told[key].state is MemoryState.FAILED:
                del self._told[key]
        self._told[alarm.key] = alarm
        return None if rang else alarm

    # --- what is listed ---

    def current(self) -> tuple[Alarm, ...]:
        """What rang and asks for somebody: it stands, or something is gone; nobody has dismissed it."""
        return tuple(each.alarm for each in self.listed() if each.standing in (Standing.RINGS, Standing.ENDED))

    def listed(self) -> tuple[Listed, ...]:
        """Everything there is to know, what asks for somebody first."""
        standing = {each.key: each for each in self._alarms.standing()}
        rows = [
            Listed(each, _how(each, rang=each.key in self._told))
            for each in standing.values()
            if each.key in self._told or not _only_repeats(each, standing.values())
        ]
        for key, alarm in self._told.items():
            if key not in standing:
                rows.append(Listed(alarm, Standing.ENDED if alarm.state is MemoryState.FAILED else Standing.OVER))
        rows += [Listed(_noted(note, self._now), Standing.NOTE) for note in self._notes]
        order = list(Standing)
        return tuple(sorted(rows, key=lambda row: order.index(row.standing)))

    def idle_note(self, key: str) -> str:
        """What is noted of a process that holds a GPU for nothing; empty when nothing is."""
        return next((note.sentence(self._now) for note in self._notes if note.key == f"process {key}"), "")

    # --- what is done ---

    def dismiss(self, listed: Listed, now: float) -> str:
        """It is not to ring again until it gets worse, or is to once more; returns what is to be told."""
        alarm = listed.alarm
        if listed.standing is Standing.NOTE:
            return "A note does not ring; it goes when something is computed."
        if listed.standing is Standing.DISMISSED:
            self.file.heed(alarm.keys, now)
            return f"{alarm.name} rings again."
        if listed.standing in (Standing.ENDED, Standing.OVER):
            self._told.pop(alarm.key, None)
            return f"{alarm.name}: taken from the list."
        self.file.dismiss(alarm.keys, alarm.state, now)
        return f"{alarm.name} does not ring again unless it gets worse."


def _how(alarm: Alarm, *, rang: bool) -> Standing:
    if alarm.dismissed:
        return Standing.DISMISSED
    return Standing.RINGS if rang else Standing.QUIET


def _only_repeats(alarm: Alarm, others: Iterable[Alarm]) -> bool:
    """Whether it is of a GPU, and what fills it is listed by itself."""
    return alarm.subject is Subject.GPU and any(
        each.subject is Subject.PROCESS and each.gpu == alarm.gpu and each.state.severity >= alarm.state.severity
        for each in others
    )


def _limit_reached(container: Container, now: float) -> Alarm:
    limit = f" of {size(container.memory_limit_bytes)}" if container.memory_limit_bytes else ""
    why = (
        f"a process in it was killed because the container reached its memory limit{limit}; the rest goes on: fewer "
        "DataLoader workers or a smaller cache, or start it with a higher --memory"
    )
    return Alarm(
        f"limit {container.id}/{container.started_at or 0:.0f}", container.name, MemoryState.FAILED, why, now,
        subject=Subject.CONTAINER, container_id=container.id, told=True,
    )  # fmt: skip


def _noted(note: IdleNote, now: float) -> Alarm:
    return Alarm(
        f"idle {note.key}", note.name, MemoryState.IDLE, note.sentence(now), note.since, gpu=note.gpu, pid=note.pid,
        container_id=note.container_id,
    )  # fmt: skip
