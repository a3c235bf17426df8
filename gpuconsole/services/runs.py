"""Runs: checks, launches and pulls, in progress or ended, remembered between consoles."""

from __future__ import annotations

import itertools
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from gpuconsole.core.errors import BadFile
from gpuconsole.core.store import Store
from gpuconsole.services.openruns import SCHEMA as _OPEN
from gpuconsole.services.openruns import OpenRuns

_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS runs (
    id TEXT PRIMARY KEY, kind TEXT NOT NULL, subject TEXT NOT NULL, subject_id TEXT NOT NULL,
    started_at REAL NOT NULL, ended_at REAL, state TEXT NOT NULL, headline TEXT NOT NULL, document TEXT
);
CREATE INDEX IF NOT EXISTS runs_by_start ON runs (started_at);
{_OPEN}"""
KEPT = 500
"""Runs that are remembered; older ones go."""
LEFT = "Cut short: gpuconsole was left."
_KILLED = "Cut short: its gpuconsole was killed, or the machine went down."


class RunKind(StrEnum):
    """What a run does."""

    CHECK = "check"
    LAUNCH = "launch"
    PULL = "pull"
    BUILD = "build"
    BENCH = "bench"


class RunState(StrEnum):
    """How a run is."""

    RUNNING = "running"
    OK = "ok"
    WARN = "warn"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Run:
    """One check, launch or pull."""

    id: str
    kind: RunKind
    subject: str
    """The container's or image's name."""
    subject_id: str
    """Its id, so that a new container of the same name does not inherit a verdict."""
    started_at: float
    """Seconds since the epoch."""
    state: RunState = RunState.RUNNING
    ended_at: float | None = None
    """None while it goes on, and of one whose program was killed: nobody saw when."""
    headline: str = ""
    """One sentence: where it is, or how it ended."""
    progress: float | None = None
    """0 … 1; None when it cannot be told."""
    document: str | None = None
    """The whole report as JSON, once it ended."""
    up: bool = False
    """Of a launch: it went well, and its container has not ended since."""

    @property
    def ended(self) -> bool:
        """It is over."""
        return self.state is not RunState.RUNNING

    def took_s(self, now: float) -> float | None:
        """Seconds it took, or takes until ``now``; None when nobody saw its end."""
        end = self.ended_at if self.ended and not self.up else now
        return None if end is None else end - self.started_at


class Runs:
    """All runs, newest first. Safe from any thread.

    Args:
        path: File of the records; None takes the usual one. When it cannot be used, runs are remembered only as long as
            this program runs, and :attr:`problem` says so.
        kept: Remember them in the file; else there is no file at all.
        on_change: Called with all runs after each change, on the thread that made it.
    """

    def __init__(
        self,
        *,
        path: Path | None = None,
        kept: bool = True,
        on_change: Callable[[tuple[Run, ...]], None] = lambda runs: None,
    ) -> None:
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self.on_change = on_change
        self.problem: BadFile | None = None
        self._store: Store | None = None
        self._open: OpenRuns | None = None
        self._begun: set[str] = set()
        """Those under way that this program carries out."""
        self._runs: dict[str, Run] = {}
        self._shown_by: Callable[[tuple[Run, ...]], tuple[Run, ...]] = tuple
        self._last: dict[tuple[str, RunKind], Run] = {}
        """The newest run of each kind about each thing that came to an end: asked for every row of every picture."""
        if not kept:
            return
        try:
            self._store = Store(_SCHEMA, path=path)
            self._open = OpenRuns(self._store)
            self._settle_abandoned()
            for run in self._remembered():
                self._take_in(run)
        except BadFile as error:
            self.problem = error

    def _remembered(self) -> list[Run]:
        if self._store is None:
            return []
        rows = self._store.rows("SELECT * FROM runs ORDER BY started_at DESC LIMIT ?", (KEPT,))
        found = []
        for row in rows:
            try:
                kind, state = RunKind(row["kind"]), RunState(row["state"])
            except ValueError:
                continue  # written by a newer gpuconsole: not ours to show
            found.append(
                Run(row["id"], kind, row["subject"], row["subject_id"], row["started_at"], state, row["ended_at"],
                    row["headline"], None, row["document"])
            )  # fmt: skip
        return found

    def _settle_abandoned(self) -> None:
        """Write down what became of those that were under way in a program that was killed."""
        if self._store is None or self._open is None:
            return
        rows = self._open.abandoned()
        left = [
            Run(row["id"], RunKind(row["kind"]), row["subject"], row["subject_id"], row["started_at"],
                RunState.CANCELLED, None, _KILLED)
            for row in rows if row["kind"] in set(RunKind)
        ]  # fmt: skip
        if left:
            with self._store.writing() as connection:
                for run in left:
                    if OpenRuns.remove(connection, run.id):  # else its program came to its end just now, and said how
                        _write(connection, run)

    def all(self) -> tuple[Run, ...]:
        """Every run, newest first."""
        with self._lock:
            found = tuple(sorted(self._runs.values(), key=lambda run: run.started_at, reverse=True))
        return self._shown_by(found)

    def last(self, subject_id: str, kind: RunKind) -> Run | None:
        """The newest run of this kind about this container or image; one that was cut short tells nothing of it."""
        with self._lock:
            return self._last.get((subject_id, kind))

    def _take_in(self, run: Run) -> None:
        self._runs[run.id] = run
        before = self._last.get((run.subject_id, run.kind))
        if (
            run.ended
            and run.state is not RunState.CANCELLED
            and (before is None or before.id == run.id or run.started_at > before.started_at)
        ):
            self._last[run.subject_id, run.kind] = run

    def show(self, runs: Iterable[Run]) -> None:
        """Take in runs that others carried out; nothing of them is written."""
        with self._lock:
            for run in runs:
                self._take_in(run)
        self.on_change(self.all())

    def show_by(self, shown_by: Callable[[tuple[Run, ...]], tuple[Run, ...]]) -> None:
        """Tell from now on what ``shown_by`` makes of the runs: how launches went on is remembered elsewhere."""
        self._shown_by = shown_by
        self.on_change(self.all())

    def forget(self) -> None:
        """Take in nothing so far; nothing that is written goes."""
        with self._lock:
            self._runs.clear()
            self._last.clear()

    def begin(self, kind: RunKind, subject: str, subject_id: str, headline: str = "", *, ago_s: float = 0.0) -> str:
        """A run begins, or began ``ago_s`` seconds ago; returns its id."""
        now = time.time() - ago_s
        run_id = f"{int(now * 1000):x}-{os.getpid():x}-{next(self._numbers):x}"
        run = Run(run_id, kind, subject, subject_id, now, headline=headline)
        self._begun.add(run_id)
        self._put(run)
        self._remember_open(run)
        return run_id

    def advance(self, run_id: str, headline: str, progress: float | None = None) -> None:
        """A run goes on."""
        with self._lock:
            run = self._runs[run_id]
        self._put(replace(run, headline=headline, progress=progress))

    def end(
        self,
        run_id: str,
        state: RunState,
        headline: str,
        document: str | None = None,
        *,
        subject: str | None = None,
        subject_id: str | None = None,
    ) -> None:
        """A run is over, and is remembered; what is told of it after that counts no more.

        Args:
            run_id: Which.
            state: How it ended.
            headline: The same in a sentence.
            document: The whole report as JSON.
            subject: What it was about, where that became known only by it: the name of what was launched.
            subject_id: The id of that.
        """
        with self._lock:
            run = self._runs[run_id]
            if run.ended:  # it was left behind, and its thread has come to an end all the same
                return
            ended = replace(
                run,
                state=state,
                headline=headline,
                document=document,
                ended_at=time.time(),
                progress=None,
                subject=run.subject if subject is None else subject,
                subject_id=run.subject_id if subject_id is None else subject_id,
            )
            self._begun.discard(run_id)
            self._take_in(ended)
        self.on_change(self.all())
        self._remember(ended)

    def leave(self) -> None:
        """This program is being left: what it still carries out is remembered as ended by that."""
        for run_id in tuple(self._begun):
            self.end(run_id, RunState.CANCELLED, LEFT)

    def _put(self, run: Run) -> None:
        with self._lock:
            self._take_in(run)
        self.on_change(self.all())

    def _remember(self, run: Run) -> None:
        if self._store is None:
            return
        try:
            with self._store.writing() as connection:
                _write(connection, run)
                OpenRuns.remove(connection, run.id)
                connection.execute(
                    "DELETE FROM runs WHERE id NOT IN (SELECT id FROM runs ORDER BY started_at DESC LIMIT ?)", (KEPT,)
                )
        except BadFile as error:
            self.problem = error

    def _remember_open(self, run: Run) -> None:
        if self._store is None or self._open is None:
            return
        try:
            with self._store.writing() as connection:
                self._open.add(connection, (run.id, run.kind.value, run.subject, run.subject_id, run.started_at))
        except BadFile as error:
            self.problem = error

    def close(self) -> None:
        """Close the file."""
        if self._open is not None:
            self._open.close()
        if self._store is not None:
            self._store.close()


def _write(connection: sqlite3.Connection, run: Run) -> None:
    connection.execute(
        "INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (run.id, run.kind.value, run.subject, run.subject_id, run.started_at, run.ended_at, run.state.value,
         run.headline, run.document),
    )  # fmt: skip
