"""Records on a file descriptor: one JSON object a line, each line begun by U+001E.

The separator tells records from whatever else a container writes to its standard output.
"""

from __future__ import annotations

import json
import math
import os
from typing import Any

SEPARATOR = "\x1e"
LONGEST_TEXT = 2000
"""Characters of one text in a record."""
_LONGEST_RECORD = 1 << 20


def harmless(value: object, depth: int = 0) -> object:
    """``value`` in what JSON can say: no NaN or infinity (None instead), no endless texts or nesting."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, str):
        # A lone surrogate (an undecodable byte of a path or a variable) has no form in UTF-8.
        text = value.encode("utf-8", "replace").decode("utf-8")
        return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"
    if depth > 6:
        return str(type(value).__name__)
    if isinstance(value, dict):
        return {str(key): harmless(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [harmless(item, depth + 1) for item in value]
    return harmless(str(value), depth + 1)


class Emitter:
    """Writes records to ``fd``, each marked with the name of the run."""

    def __init__(self, fd: int, run: str) -> None:
        self._fd = fd
        self._run = run

    def emit(self, kind: str, **fields: object) -> None:
        """Write one record.

        Raises:
            OSError: The reader is gone.
        """
        record = {"t": kind, "run": self._run}
        record.update((key, harmless(value)) for key, value in fields.items())  # type: ignore[misc]
        line = (SEPARATOR + json.dumps(record, ensure_ascii=True, allow_nan=False) + "\n").encode("ascii")
        while line:
            line = line[os.write(self._fd, line) :]


class RecordReader:
    """Takes records apart again, however the pieces arrive; what is none is dropped."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[dict[str, Any]]:
        """The records that are now whole."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > _LONGEST_RECORD:
            self._rest = b""
        records = []
        for line in lines:
            try:
                record = json.loads(line.decode("utf-8", "replace").lstrip(SEPARATOR))
            except ValueError:
                continue
            if isinstance(record, dict):
                records.append(record)
        return records
