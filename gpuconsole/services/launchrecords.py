"""Every launch, remembered: what was asked for, by which image and GPUs it began, how it ended and why.

It is written down before the container is started, under a word that the container carries as a label, so that also a
launch whose console was killed can be found again. Secrets are not kept: of a secret variable only its name.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpuconsole.core.errors import BadFile, NotFound
from gpuconsole.core.store import Store
from gpuconsole.launch.options import LaunchOptions
from gpuconsole.launch.references import NO_REFERENCES, References
from gpuconsole.services.secrets import MASK, mask_arguments, mask_text, mask_value

if TYPE_CHECKING:
    import sqlite3

    from gpuconsole.services.planning import LaunchPlan

_SCHEMA = """
CREATE TABLE IF NOT EXISTS launches (
    number INTEGER PRIMARY KEY AUTOINCREMENT, word TEXT UNIQUE NOT NULL, engine TEXT NOT NULL, name TEXT NOT NULL,
    container_id TEXT, image TEXT NOT NULL, digest TEXT, gpus TEXT NOT NULL, folder TEXT NOT NULL,
    options TEXT NOT NULL, command TEXT NOT NULL, started_at REAL NOT NULL, ended_at REAL, exit_code INTEGER,
    cause TEXT, reason TEXT, advice TEXT, last_lines TEXT
);
CREATE TABLE IF NOT EXISTS launch_profiles (word TEXT PRIMARY KEY, profile TEXT NOT NULL);
"""
_ALL = "SELECT launches.*, profile FROM launches LEFT JOIN launch_profiles USING (word)"
KEPT = 1000
"""Launches that are remembered; older ones go."""


@dataclass(frozen=True, slots=True)
class LaunchRecord:
    """One launch. What is not known is None."""

    number: int
    """As ``rerun`` and ``diff`` name it."""
    word: str
    """In the container's label ``gpuconsole.launch``."""
    engine: str
    name: str
    container_id: str | None
    image: str
    """As written."""
    digest: str | None
    """Digest or id it was started by."""
    gpus: tuple[str, ...]
    """UUIDs."""
    folder: str
    """Where the launch was written: what relative paths in it mean."""
    options: Mapping[str, Any]
    """As typed, secrets left out."""
    command: str
    """The ``docker run`` line, secrets masked."""
    started_at: float
    """Seconds since the epoch, as is the next."""
    ended_at: float | None = None
    exit_code: int | None = None
    cause: str | None = None
    """``cuda-out-of-memory`` …"""
    reason: str | None = None
    """Why it ended, one sentence."""
    advice: tuple[str, ...] = ()
    last_lines: tuple[str, ...] = ()
    profile: str | None = None
    """The profile it was launched from; what was changed of that is in the options."""

    @property
    def ended(self) -> bool:
        """It is over, or nobody can tell any more."""
        return self.ended_at is not None

    def launch_options(self) -> LaunchOptions:
        """What to launch again.

        Raises:
            BadFile: The record was written by a newer gpuconsole, or is damaged.
            NotFound: It had a secret somewhere else than in a variable.
        """
        known = {field.name for field in fields(LaunchOptions)}
        if not isinstance(self.options.get("image"), str) or not set(self.options) <= known:
            raise BadFile(
                f"Launch {self.number} was written down by another version of gpuconsole.",
                hint="Use that version, or write the launch anew; 'gpuconsole runs --json' has what is known of it.",
            )
        if MASK in json.dumps(self.options):
            raise NotFound(
                f"Launch {self.number} had a secret on its command line, which is not kept.",
                hint="Launch it anew, and give the secret by a file (--secret NAME=FILE) or by its name (-e NAME).",
            )
        given: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in self.options.items()
        }
        return LaunchOptions(**given)


class LaunchRecords:
    """All launches of this user. Safe from any thread.

    Args:
        path: File of the records; None takes the usual one.

    Raises:
        BadFile: The file can be neither read nor made.
    """

    def __init__(self, *, path: Path | None = None) -> None:
        self._store = Store(_SCHEMA, path=path)
        self._lock = threading.Lock()

    def begin(
        self,
        plan: LaunchPlan,
        options: LaunchOptions,
        *,
        word: str,
        folder: str,
        command: str,
        hidden: References = NO_REFERENCES,
    ) -> None:
        """A container is about to be started; what ``hidden`` names is not kept."""
        kept = json.dumps(harmless_options(options, hidden), separators=(",", ":"))
        row = (
            word, plan.info.endpoint, plan.name, options.image, plan.image.known, json.dumps(plan.choice.uuids), folder,
            kept, command, time.time(),
        )  # fmt: skip
        with self._store.writing() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO launches"
                " (word, engine, name, image, digest, gpus, folder, options, command, started_at)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                row,
            )
            connection.execute(
                "DELETE FROM launches WHERE number NOT IN (SELECT number FROM launches ORDER BY number DESC LIMIT ?)",
                (KEPT,),
            )
            if plan.spec.profile:
                connection.execute("INSERT OR REPLACE INTO launch_profiles VALUES (?, ?)", (word, plan.spec.profile))
            connection.execute("DELETE FROM launch_profiles WHERE word NOT IN (SELECT word FROM launches)")

    def started(self, word: str, container_id: str) -> None:
        """Its container has this id."""
        with self._store.writing() as connection:
            connection.execute("UPDATE launches SET container_id = ? WHERE word = ?", (container_id, word))

    def forget(self, word: str) -> None:
        """It was taken back: nothing of it is left."""
        with self._store.writing() as connection:
            connection.execute("DELETE FROM launches WHERE word = ? AND ended_at IS NULL", (word,))

    def end(
        self,
        number: int,
        *,
        ended_at: float,
        exit_code: int | None,
        cause: str | None,
        reason: str,
        advice: tuple[str, ...] = (),
        last_lines: tuple[str, ...] = (),
    ) -> None:
        """It has ended."""
        with self._store.writing() as connection:
            connection.execute(
                "UPDATE launches SET ended_at = ?, exit_code = ?, cause = ?, reason = ?, advice = ?, last_lines = ?"
                " WHERE number = ?",
                (ended_at, exit_code, cause, reason, json.dumps(advice), json.dumps(last_lines), number),
            )

    def resume(self, number: int) -> None:
        """Its container was started again."""
        with self._store.writing() as connection:
            connection.execute(
                "UPDATE launches SET ended_at = NULL, exit_code = NULL, cause = NULL, reason = NULL, advice = NULL,"
                " last_lines = NULL WHERE number = ?",
                (number,),
            )

    def all(self, *, limit: int = KEPT) -> tuple[LaunchRecord, ...]:
        """The launches, newest first; what cannot be read is left out."""
        rows = self._store.rows(f"{_ALL} ORDER BY number DESC LIMIT ?", (limit,))
        return tuple(record for row in rows if (record := _record(row)) is not None)

    def by_word(self, word: str) -> LaunchRecord | None:
        """The launch whose container carries ``word``; None when it is not remembered."""
        rows = self._store.rows(f"{_ALL} WHERE word = ?", (word,))
        return _record(rows[0]) if rows else None

    def one(self, name: str) -> LaunchRecord:
        """The launch of this number, or the newest of a container of this name or id.

        Raises:
            NotFound: There is none.
        """
        records = self.all()
        if name.isascii() and name.isdigit():
            found = next((record for record in records if record.number == int(name)), None)
            if found is not None:
                return found
        for record in records:
            same_id = len(name) >= 4 and (record.container_id or "").startswith(name)
            if record.name == name or same_id:
                return record
        raise NotFound(
            f"No launch {name!r} is remembered.",
            hint="'gpuconsole runs' lists them with their numbers.",
        )

    def close(self) -> None:
        """Close the file."""
        self._store.close()


def harmless_options(options: LaunchOptions, hidden: References = NO_REFERENCES) -> dict[str, Any]:
    """The options as they may be written to a file: a secret variable keeps its name only, other secrets nothing.

    Args:
        options: As typed.
        hidden: Secrets that do not look like any.
    """
    kept = {name: _masked(value, hidden) for name, value in asdict(options).items() if value not in (None, (), [])}
    kept["environment"] = [_harmless(text, hidden) for text in options.environment]
    return {name: list(value) if isinstance(value, tuple) else value for name, value in kept.items() if value != []}


def _masked(value: Any, hidden: References) -> Any:
    if isinstance(value, list | tuple):
        return list(mask_arguments([hidden.masked(str(each), MASK) for each in value]))
    return mask_text(hidden.masked(value, MASK)) if isinstance(value, str) else value


def _harmless(text: str, hidden: References) -> str:
    name, separator, value = text.partition("=")
    return name if separator and (mask_value(name, value) != value or hidden.holds(value)) else text


def _record(row: sqlite3.Row) -> LaunchRecord | None:
    try:
        options = json.loads(row["options"])
        values = {name: row[name] for name in row.keys() if name not in ("options", "gpus", "advice", "last_lines")}  # noqa: SIM118
        return LaunchRecord(
            **values,
            options=options if isinstance(options, dict) else {},
            gpus=_texts(row["gpus"]),
            advice=_texts(row["advice"]),
            last_lines=_texts(row["last_lines"]),
        )
    except (ValueError, TypeError):
        return None


def _texts(text: str | None) -> tuple[str, ...]:
    found = json.loads(text) if text else []
    return tuple(str(each) for each in found) if isinstance(found, list) else ()
