"""The records of benchmarks: every run with all its results, found again by what they may be compared with."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpuconsole.core.document import body_of, text_of
from gpuconsole.core.errors import BadFile, NotFound, UsageError
from gpuconsole.core.revive import revive
from gpuconsole.core.store import Store
from gpuconsole.probes.benchgrades import HISTORY, Peers
from gpuconsole.probes.benchkeys import owner_key, result_key, software_key
from gpuconsole.probes.benchrecords import BenchRecord, BenchRun, Origin

_SCHEMA = """
CREATE TABLE IF NOT EXISTS bench_runs (
    id TEXT PRIMARY KEY, origin TEXT NOT NULL, taken_at REAL NOT NULL, mode TEXT NOT NULL, outcome TEXT NOT NULL,
    subject TEXT NOT NULL, subject_id TEXT NOT NULL, document TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS bench_runs_by_time ON bench_runs (taken_at);
CREATE TABLE IF NOT EXISTS bench_results (
    run_id TEXT NOT NULL, position INTEGER NOT NULL, bench TEXT NOT NULL, result_key TEXT, owner_key TEXT,
    software_key TEXT, score REAL, trusted INTEGER NOT NULL, taken_at REAL NOT NULL, origin TEXT NOT NULL,
    PRIMARY KEY (run_id, position)
);
CREATE INDEX IF NOT EXISTS bench_results_by_key ON bench_results (result_key, taken_at);
"""
LAST = "last"
"""The name of the newest run made here."""
_ID = re.compile(r"[0-9a-f]{1,64}")
_SHORTEST = 4
"""Characters of an id that are enough to name a run."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A run as a list shows it."""

    run: str
    origin: Origin
    taken_at: float
    mode: str
    end: str
    subject: str


class BenchStore:
    """The records of this user. Safe from any thread.

    Args:
        path: The file; None takes the usual one.

    Raises:
        BadFile: It cannot be used.
    """

    def __init__(self, *, path: Path | None = None) -> None:
        self._store = Store(_SCHEMA, path=path)

    def close(self) -> None:
        """Close the file."""
        self._store.close()

    def keep(self, run: BenchRun) -> None:
        """Remember ``run``, in the place of one with the same id.

        Raises:
            BadFile: The file cannot be written.
        """
        software = software_key(run)
        results = [
            (run.run, position, record.id, result_key(record, run), owner_key(record, run), software, record.score,
             int(record.trusted), record.began or run.taken_at, run.origin.value)
            for position, record in enumerate(run.benchmarks)
        ]  # fmt: skip
        with self._store.writing() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO bench_runs VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (run.run, run.origin.value, run.taken_at, run.mode, run.end.value, run.subject, run.subject_id,
                 text_of(document_of(run), indent=None)),
            )  # fmt: skip
            connection.execute("DELETE FROM bench_results WHERE run_id = ?", (run.run,))
            connection.executemany("INSERT INTO bench_results VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", results)

    def peers(self, record: BenchRecord, run: BenchRun) -> Peers:
        """What is remembered here that ``record`` of ``run`` may be judged by.

        Of the same GPUs the newest results before it, of the same software where there are any; of each other GPU of
        the model in this machine its newest. What was imported is of other machines and judges nothing.
        """
        key, owner = result_key(record, run), owner_key(record, run)
        if key is None or owner is None:
            return Peers()
        rows = self._store.rows(
            "SELECT owner_key, software_key, score FROM bench_results WHERE result_key = ? AND trusted = 1"
            " AND origin = ? AND run_id != ? AND taken_at < ? ORDER BY taken_at DESC LIMIT 500",
            (key, Origin.HERE.value, run.run, record.began or run.taken_at),
        )
        mine = [row for row in rows if row["owner_key"] == owner]
        software = software_key(run)
        same = [row for row in mine if software is not None and row["software_key"] == software]
        siblings: dict[str, float] = {}
        if len(record.gpu) == 1:
            for row in rows:
                if row["owner_key"] not in (None, owner) and row["software_key"] == software:
                    siblings.setdefault(row["owner_key"], row["score"])
        return Peers(
            siblings=tuple(siblings.values()),
            history=tuple(row["score"] for row in (same or mine)[:HISTORY]),
            other_software=bool(mine) and not same,
        )

    def runs(self, *, limit: int = 1000) -> tuple[Kept, ...]:
        """The runs, newest first.

        Raises:
            BadFile: The file cannot be read.
        """
        rows = self._store.rows(
            "SELECT id, origin, taken_at, mode, outcome, subject FROM bench_runs ORDER BY taken_at DESC LIMIT ?",
            (limit,),
        )
        return tuple(
            Kept(row["id"], Origin(row["origin"]), row["taken_at"], row["mode"], row["outcome"], row["subject"])
            for row in rows
        )

    def all(self, *, limit: int = 1000) -> tuple[BenchRun, ...]:
        """The runs with their results, newest first; one that a newer gpuconsole wrote in another way is left out."""
        rows = self._store.rows("SELECT document FROM bench_runs ORDER BY taken_at DESC LIMIT ?", (limit,))
        found = []
        for row in rows:
            try:
                found.append(run_of(json.loads(row["document"])))
            except ValueError:
                continue
        return tuple(found)

    def find(self, name: str) -> BenchRun:
        """The run with this id, or its beginning; ``last`` is the newest made here, ``last~1`` the one before.

        Raises:
            NotFound: There is none.
            UsageError: Several ids begin so.
            BadFile: Its record cannot be read any more.
        """
        identity = self._identity(name)
        (row,) = self._store.rows("SELECT document FROM bench_runs WHERE id = ?", (identity,))
        try:
            return run_of(json.loads(row["document"]))
        except ValueError as error:
            raise BadFile(
                f"The record of the run {identity} cannot be read: {error}.",
                hint="It may be of a newer gpuconsole; 'gpuconsole bench history' lists the others.",
            ) from error

    def _identity(self, name: str) -> str:
        here = [kept.run for kept in self.runs() if kept.origin is Origin.HERE]
        word, _, back = name.partition("~")
        if word == LAST and (not back or back.isdecimal()):
            number = int(back or 0)
            if number < len(here):
                return here[number]
            if not here and self.runs(limit=1):
                raise NotFound(
                    f"There is no run {name!r}: all that are remembered were imported.",
                    hint="'gpuconsole bench history' lists them; name one by its id, or a file.",
                )
            count = f"{len(here)} benchmark runs are" if len(here) != 1 else "one benchmark run is"
            raise NotFound(
                f"There is no run {name!r}: {count} remembered." if here else "No benchmark run is remembered yet.",
                hint="'gpuconsole bench --local' or 'gpuconsole bench NAME' makes one.",
            )
        ids: list[str] = []
        if _ID.fullmatch(name):
            begins = (name, max(len(name), _SHORTEST), name)
            rows = self._store.rows("SELECT id FROM bench_runs WHERE id = ? OR substr(id, 1, ?) = ?", begins)
            ids = [str(row["id"]) for row in rows]
        if name in ids or len(ids) == 1:
            return name if name in ids else ids[0]
        if ids:
            raise UsageError(f"{len(ids)} runs begin with {name!r}.", hint="Write more of the id.")
        raise NotFound(
            f"There is no benchmark run {name!r}.", hint="'gpuconsole bench history' lists them; 'last' is the newest."
        )


def document_of(run: BenchRun) -> dict[str, Any]:
    """``run`` as its JSON document, which :func:`run_of` reads."""
    return body_of("bench", **{name: getattr(run, name) for name in _FIELDS})


_FIELDS = (
    "run", "mode", "end", "partial", "taken_at", "seconds", "subject", "subject_id", "origin", "only", "environment",
    "machine", "benchmarks", "obstacle", "headline", "claims", "notes",
)  # fmt: skip


def run_of(data: object) -> BenchRun:
    """The run a JSON document holds.

    Raises:
        ValueError: It is none; the words name the place.
    """
    return revive(BenchRun, data)
