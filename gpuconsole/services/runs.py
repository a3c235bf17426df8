"""Runs: checks, launches and pulls, in progress or ended, remembered between consoles."""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from gpuconsole.core.errors import BadFile
from gpuconsole.core.store import Store

_SCHEMA = """
CREATE TABLE IF NOT EXISTS runs (
    id TEXT PRIMARY KEY, kind TEXT NOT NULL, subject TEXT NOT NULL, subject_id TEXT NOT NULL,
    started_at REAL NOT NULL, ended_at REAL, state TEXT NOT NULL, headline TEXT NOT NULL, document TEXT
);
CREATE INDEX IF NOT EXISTS runs_by_start ON runs (started_at);
"""
KEPT = 500
"""Runs that are remembered; older ones go."""


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
    headline: str = ""
    """One sentence: where it is, or how it ended."""
    progress: float | None = None
    """0 … 1; None when it cannot be told."""
    document: str | None = None
    """The whole report as JSON, once it ended."""

    @property
    def ended(self) -> bool:
        """It is over."""
        return self.state is not RunState.RUNNING


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
        self._runs: dict[str, Run] = {}
        self._last: dict[tuple[str, RunKind], Run] = {}
        """The newest ended run of each kind about each thing: asked for every row of every picture."""
        if not kept:
            return
        try:
            self._store = Store(_SCHEMA, path=path)
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

    def all(self) -> tuple[Run, ...]:
        """Every run, newest first."""
        with self._lock:
            return tuple(sorted(self._runs.values(), key=lambda run: run.started_at, reverse=True))

    def last(self, subject_id: str, kind: RunKind) -> Run | None:
        """The newest ended run of this kind about this container or image."""
        with self._lock:
            return self._last.get((subject_id, kind))

    def _take_in(self, run: Run) -> None:
        self._runs[run.id] = run
        before = self._last.get((run.subject_id, run.kind))
        if run.ended and (before is None or before.id == run.id or run.started_at > before.started_at):
            self._last[run.subject_id, run.kind] = run

    def show(self, runs: Iterable[Run]) -> None:
        """Take in runs that others carried out; nothing of them is written."""
        with self._lock:
            for run in runs:
                self._take_in(run)
        self.on_change(self.all())

    def begin(self, kind: RunKind, subject: str, subject_id: str, headline: str = "", *, ago_s: float = 0.0) -> str:
        """A run begins, or began ``ago_s`` seconds ago; returns its id."""
        now = time.time() - ago_s
        run_id = f"{int(now * 1000):x}-{os.getpid():x}-{next(self._numbers):x}"
        self._put(Run(run_id, kind, subject, subject_id, now, headline=headline))
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
        """A run is over, and is remembered.

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
        self._put(ended)
        self._remember(ended)

    def _put(self, run: Run) -> None:
        with self._lock:
            self._take_in(run)
        self.on_change(self.all())

    def _remember(self, run: Run) -> None:
        if self._store is None:
            return
        try:
            with self._store.writing() as connection:
                connection.execute(
                    "INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (run.id, run.kind.value, run.subject, run.subject_id, run.started_at, run.ended_at, run.state.value,
                     run.headline, run.document),
                )  # fmt: skip
                connection.execute(
                    "DELETE FROM runs WHERE id NOT IN (SELECT id FROM runs ORDER BY started_at DESC LIMIT ?)", (KEPT,)
                )
        except BadFile as error:
            self.problem = error

    def close(self) -> None:
        """Close the file."""
        if self._store is not None:
            self._store.close()
