"""What was launched last from a folder, so that the form begins with it; never a secret."""

from __future__ import annotations

import json
import shlex
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from gpuconsole.core.errors import BadFile
from gpuconsole.core.store import Store
from gpuconsole.launch.references import NO_REFERENCES, References
from gpuconsole.services.secrets import MASK, mask_arguments, mask_text, mask_value

if TYPE_CHECKING:
    from gpuconsole.services.profilefilling import Filling

_SCHEMA = """
CREATE TABLE IF NOT EXISTS launch_drafts (folder TEXT PRIMARY KEY, written_at REAL NOT NULL, typed TEXT NOT NULL);
"""
KEPT = 200
"""Folders that are remembered; those not launched from for longest go."""
_NOT_KEPT = ("name", "force")
"""A name is taken by the container that was launched with it. What is dangerous is said anew each time: its value is
kept, and the word that lifts the refusal is not."""
_PATHS = ("secrets",)
"""What a secret is called and where its file is, which is none itself."""

UNKEPT = "unkept"
"""Beside the fields: names of variables that stood in the form with a secret, apart by blanks."""
Typed = Mapping[str, str]
"""Fields of the form, by key."""


class Drafts:
    """The last launch of each folder. Safe from any thread; what cannot be read or written is done without.

    Args:
        path: File of the records; None takes the usual one. It is opened when first needed.
    """

    def __init__(self, *, path: Path | None = None) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._store: Store | None = None
        self.problem: BadFile | None = None
        self.unsent: dict[str, str] | None = None
        """What was typed into a form that was left without launching; only as long as this program runs."""
        self.unsent_filling: Filling | None = None
        """The profile that form began as, also where its name was taken away since."""

    def last(self, folder: str) -> dict[str, str]:
        """What was launched last from ``folder``; empty when nothing is known."""
        try:
            rows = self._opened().rows("SELECT typed FROM launch_drafts WHERE folder = ?", (folder,))
            typed = json.loads(rows[0]["typed"]) if rows else {}
        except BadFile as error:
            self.problem = error
            return {}
        except ValueError:
            return {}
        if not isinstance(typed, dict):
            return {}
        found = {str(key): value for key, value in typed.items() if isinstance(value, str)}
        return {key: value for key, value in found.items() if key not in _NOT_KEPT}

    def remember(self, folder: str, typed: Typed) -> None:
        """Keep ``typed`` for ``folder``, without secrets; those that look like none the caller has taken out."""
        text = json.dumps(harmless(typed), separators=(",", ":"))
        try:
            with self._opened().writing() as connection:
                connection.execute("INSERT OR REPLACE INTO launch_drafts VALUES (?, ?, ?)", (folder, time.time(), text))
                connection.execute(
                    "DELETE FROM launch_drafts WHERE folder NOT IN"
                    " (SELECT folder FROM launch_drafts ORDER BY written_at DESC LIMIT ?)",
                    (KEPT,),
                )
        except BadFile as error:
            self.problem = error

    def _opened(self) -> Store:
        with self._lock:
            if self._store is None:
                self._store = Store(_SCHEMA, path=self._path)
            return self._store

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._store is not None:
                self._store.close()
                self._store = None


def harmless(typed: Typed, hidden: References = NO_REFERENCES) -> dict[str, str]:
    """``typed`` as it may be written to a file: of a secret variable only :data:`UNKEPT` has the name.

    A command with a secret goes.

    Args:
        typed: Fields of the form, by key.
        hidden: Secrets that do not look like any.
    """
    kept: dict[str, str] = {}
    for key, text in typed.items():
        if key in _NOT_KEPT:
            continue
        if key == "environment":
            text, unkept = _environment(text, hidden)
            kept |= {UNKEPT: " ".join(unkept)} if unkept else {}
        elif hidden.holds(text):
            text = ""
        elif key in ("command", "entrypoint"):
            text = _command(text)
        elif key not in _PATHS and (MASK in text or mask_text(text) != text):
            text = ""
        kept[key] = text
    return kept


def _environment(text: str, hidden: References) -> tuple[str, tuple[str, ...]]:
    """The field without its secrets, and the names of those."""
    try:
        words = shlex.split(text)
    except ValueError:
        return "", ()
    kept, unkept = [], []
    for word in words:
        name, separator, value = word.partition("=")
        secret = separator and (MASK in value or mask_value(name, value) != value or hidden.holds(value))
        if secret:
            unkept.append(name)
        else:
            kept.append(word)
    return shlex.join(kept), tuple(dict.fromkeys(unkept))


def _command(text: str) -> str:
    try:
        words = shlex.split(text)
    except ValueError:
        return ""
    return text if MASK not in text and tuple(words) == mask_arguments(words) and mask_text(text) == text else ""
