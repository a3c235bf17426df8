"""Which news of memories is worth a ring now: once per rise of state, one for one cause, one for many at once.

Pure: it is given what the forecaster says at each look and the time, and gives what is to be told. A state counts as
lower only after it stayed lower; what was dismissed is silent until it gets worse than it was then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from gpuconsole.core.text import plain_line
from gpuconsole.gpu.forecast_model import Assessment, Subject
from gpuconsole.gpu.state import MemoryState
from gpuconsole.services.alarmnames import Name, Named, usual_name

CALM_S = 60.0
"""A state that is lower for so long is lower; before that it may be a pause in the growth."""
AGAIN_S = 600.0
"""The same state of the same subject is told again no sooner."""
GATHER_S = 5.0
"""What else comes so soon after something was told waits, and is told together."""
MOST_APART = 2
"""More than so many at once are told as one."""
KEPT_S = 600.0
"""So long a subject that is not seen any more is remembered: a list of processes may fail for a while."""
_LEAST = MemoryState.RISK
_GONE = (MemoryState.FREE, MemoryState.FAILED)
"""Of a process: it has ended, and what it held is free."""


@dataclass(frozen=True, slots=True)
class Alarm:
    """Something to be told, or that stands."""

    key: str
    """Of its subject; of several at once, all keys."""
    name: str
    state: MemoryState
    why: str
    """One line: who, how fast, when, and what to do."""
    at: float
    """Seconds since the epoch at which it came to that state."""
    subject: Subject | None = None
    """None for several at once."""
    gpu: int | None = None
    pid: int | None = None
    eta_s: float | None = None
    """Seconds until the memory is full if it goes on as seen; None without a trend."""
    container_id: str | None = None
    dismissed: bool = False
    told: bool = False
    """It rang."""
    parts: tuple[Alarm, ...] = ()
    """What it is made of, when it is several."""

    @property
    def keys(self) -> tuple[str, ...]:
        """Keys of all it is about."""
        return tuple(part.key for part in self.parts) or (self.key,)

    @property
    def sentence(self) -> str:
        """The whole of it, for one line; that it is a trend is said."""
        if self.parts:
            return f"{self.name}."
        said = f"{self.name}, {self.state.value}: {self.why}"
        return f"{said} (a trend: it holds if growth goes on as seen)" if self.eta_s is not None else said


@dataclass(slots=True)
class _Entry:
    """What is remembered of a subject."""

    named: Named
    last: Assessment
    seen_at: float
    standing: MemoryState | None = None
    """RISK or CRITICAL; the highest it was that it has not stayed below of."""
    since: float = 0.0
    lower_since: float | None = None
    told: int = 0
    """Severity that was told; 0 for none."""
    told_at: float = 0.0
    fell: bool = False
    """It was lower since it was told."""
    failed: bool = False
    """It failed, and that was not told yet."""
    for_others: frozenset[str] = field(default_factory=frozenset)
    """Of a GPU: keys of the processes that were told in its place."""


class Alarms:
    """Remembers what was told of each subject. For one thread.

    Args:
        least: RISK or CRITICAL, the state from which on it rings; a failure always does.
        dismissed: Key → the severity at which a subject was dismissed; 0 for one that was not.
    """

    def __init__(
        self, *, least: MemoryState = MemoryState.CRITICAL, dismissed: Callable[[str], int] = lambda key: 0
    ) -> None:
        self._least = least
        self._dismissed = dismissed
        self._entries: dict[str, _Entry] = {}
        self._keys: dict[Name, str] = {}
        self._told_at: float | None = None

    def looked(
        self, outlooks: Iterable[Assessment], now: float, *, names: Mapping[Name, Named] | None = None
    ) -> tuple[Alarm, ...]:
        """Take what the forecaster says now; returns what is to be told.

        Args:
            outlooks: A statement for each subject.
            now: Seconds; only differences matter.
            names: What each subject is called; one that is missing is called as it was before.
        """
        said = tuple(outlooks)
        ended = frozenset(each.gpu for each in said if each.subject is Subject.PROCESS and each.state in _GONE)
        for each in said:
            self._take(
                each, self._named(each, names or {}), now, at_once=each.subject is Subject.GPU and each.gpu in ended
            )
        self._forget(now)
        due = [entry for entry in self._entries.values() if self._is_due(entry, now)]
        if self._told_at is not None and 0 <= now - self._told_at < GATHER_S:
            due = [entry for entry in due if entry.told and not entry.failed]  # one that gets worse has no time to wait
        due = self._one_for_a_cause(due, now)
        if not due:
            return ()
        self._told_at = now
        alarms = tuple(self._tell(entry, now) for entry in sorted(due, key=_urgency))
        return alarms if len(alarms) <= MOST_APART else (_together(alarms),)

    def standing(self) -> tuple[Alarm, ...]:
        """What stands now, the most urgent first: also what does not ring, and what was dismissed."""
        entries = [each for each in self._entries.values() if each.standing is not None]
        return tuple(self._alarm(each, each.standing or _LEAST) for each in sorted(entries, key=_urgency))

    def close_to(self, key: str, *, within_s: float, now: float) -> bool:
        """Whether something of the container ``key`` was told as failed within so many seconds."""
        return any(
            entry.named.container_id == key
            and entry.told >= MemoryState.FAILED.severity
            and now - entry.told_at <= within_s
            for entry in self._entries.values()
        )

    # --- what is remembered ---

    def _named(self, said: Assessment, names: Mapping[Name, Named]) -> Named:
        if (named := names.get(said.key)) is not None:
            return named
        known = self._entries.get(self._keys.get(said.key, ""))
        return known.named if known is not None else Named(f"{said.subject.value} {said.id}", usual_name(said))

    def _take(self, said: Assessment, named: Named, now: float, *, at_once: bool) -> None:
        self._keys[said.key] = named.key
        entry = self._entries.get(named.key)
        if entry is None:
            entry = self._entries[named.key] = _Entry(named, said, now, failed=said.state is MemoryState.FAILED)
        entry.named, entry.seen_at = named, now
        if said.state is MemoryState.UNKNOWN:  # no news is no better news
            return
        if said.state is MemoryState.FAILED:
            entry.failed = entry.failed or entry.last.state is not MemoryState.FAILED
            entry.last, entry.standing = said, None
            return
        level = said.state if said.state.severity >= _LEAST.severity else None
        _stand(entry, level, now, at_once=at_once or said.state is MemoryState.FREE)
        if level is not None or entry.standing is None:
            entry.last = said

    def _forget(self, now: float) -> None:
        gone = [key for key, entry in self._entries.items() if now - entry.seen_at > KEPT_S]
        for key in gone:
            del self._entries[key]
        if gone:
            self._keys = {name: key for name, key in self._keys.items() if key in self._entries}
        for entry in self._entries.values():
            if entry.seen_at != now and entry.standing is not None and not entry.failed:
                _stand(entry, None, now)

    # --- what is told ---

    def _is_due(self, entry: _Entry, now: float) -> bool:
        if entry.failed:
            return True
        state = entry.standing
        if state is None or state.severity < self._least.severity or entry.seen_at != now:
            return False
        if state.severity <= self._dismissed(entry.named.key):
            return False
        return state.severity > entry.told or (entry.fell and not 0 <= now - entry.told_at < AGAIN_S)

    def _one_for_a_cause(self, due: list[_Entry], now: float) -> list[_Entry]:
        """Leave out what only repeats another: of a GPU and the processes that fill it, the GPU."""
        told: list[_Entry] = []
        for entry in sorted(due, key=lambda each: (each.last.subject is Subject.GPU, _urgency(each))):
            if entry.failed or not self._repeats(entry, told, now):
                told.append(entry)
            else:
                _mark(entry, now)
        return told

    def _repeats(self, entry: _Entry, told: list[_Entry], now: float) -> bool:
        gpu = entry.last.gpu
        if gpu is None:
            return False
        for other in self._entries.values():
            if other is entry or other.last.gpu != gpu or other.seen_at != now or other.standing is None:
                continue
            rang = 0 if other.fell else other.told
            known = other in told or max(rang, self._dismissed(other.named.key)) >= _severity(entry)
            if not known or other.standing.severity < _severity(entry):
                continue
            if other.last.subject is Subject.GPU and other.for_others:
                continue  # it was told for another process, which is told of by itself
            if entry.last.subject is Subject.GPU:
                entry.for_others |= {other.named.key}
            return True
        return False

    def _tell(self, entry: _Entry, now: float) -> Alarm:
        state = MemoryState.FAILED if entry.failed else entry.standing or self._least
        _mark(entry, now)
        return replace(self._alarm(entry, state), at=now)

    def _alarm(self, entry: _Entry, state: MemoryState) -> Alarm:
        said = entry.last
        return Alarm(
            key=entry.named.key, name=entry.named.name, state=state, why=plain_line(said.why, limit=400),
            at=entry.since, subject=said.subject, gpu=said.gpu, pid=said.pid, eta_s=said.eta_s,
            container_id=entry.named.container_id, told=entry.told >= state.severity,
            dismissed=state.severity <= self._dismissed(entry.named.key),
        )  # fmt: skip


def _stand(entry: _Entry, level: MemoryState | None, now: float, *, at_once: bool = False) -> None:
    """Take in the state of now: higher at once, lower only after it stayed lower, or ``at_once``: it is plain why."""
    before = entry.standing.severity if entry.standing is not None else 0
    severity = level.severity if level is not None else 0
    if severity >= before:
        entry.lower_since = None
        if severity > before:
            entry.standing, entry.since = level, now
        return
    if entry.lower_since is None or entry.lower_since > now:
        entry.lower_since = now
    if at_once or now - entry.lower_since >= CALM_S:
        entry.standing, entry.lower_since, entry.since = level, None, now
        entry.fell = entry.fell or severity < entry.told
        entry.for_others = frozenset()


def _mark(entry: _Entry, now: float) -> None:
    """It is told, or something else in its place."""
    state = MemoryState.FAILED if entry.failed else entry.standing
    entry.told = state.severity if state is not None else 0
    entry.told_at, entry.fell, entry.failed = now, False, False


def _severity(entry: _Entry) -> int:
    return entry.standing.severity if entry.standing is not None else 0


def _urgency(entry: _Entry) -> tuple[int, float, str]:
    severity = MemoryState.FAILED.severity if entry.failed else _severity(entry)
    return -severity, entry.last.eta_s if entry.last.eta_s is not None else float("inf"), entry.named.key


def _together(alarms: tuple[Alarm, ...]) -> Alarm:
    """Several as one, the most urgent first."""
    first = alarms[0]
    words: dict[str, list[str]] = {}
    for each in alarms:
        words.setdefault(each.state.value, []).append(each.name)
    said = [f"{len(names)} {state} ({_listed(names)})" for state, names in words.items()]
    etas = [each.eta_s for each in alarms if each.eta_s is not None]
    return Alarm(
        key=" ".join(each.key for each in alarms), name=f"{len(alarms)} alarms at once: {'; '.join(said)}",
        state=first.state, why=first.why, at=first.at, eta_s=min(etas, default=None), told=True, parts=alarms,
    )  # fmt: skip


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:3])
    return f"{shown} and {len(names) - 3} more" if len(names) > 3 else shown
