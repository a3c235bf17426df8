"""What a terminal sends, read so that nothing in a paste is taken for keys."""

from __future__ import annotations

import re
from collections.abc import Iterable

from textual._xterm_parser import XTermParser
from textual.message import Message

_BEGIN, _END = "\x1b[200~", "\x1b[201~"
_ESCAPES = re.compile(r"\x1b(?!\[201~)(?:\[[0-?]*[ -/]*[@-~])?")
"""Escape characters in a paste, and the colours they begin; not its end."""


class PasteParser(XTermParser):
    """Textual's parser, which takes an escape character inside a paste for keys, thirty-two of them at a time."""

    def __init__(self, debug: bool = False) -> None:
        super().__init__(debug)
        self._pasted = False
        self._before = ""
        """The last characters outside of a paste."""
        self._held = ""

    def feed(self, data: str) -> Iterable[Message]:
        """What ``data`` holds; empty at the end."""
        if not data:
            return super().feed(data)
        text = self._harmless(self._held + data)
        return super().feed(text) if text else ()

    def _harmless(self, data: str) -> str:
        """``data`` without escape characters inside pastes; a mark that may be its end waits for its rest."""
        self._held, found = "", []
        while data:
            if not self._pasted:
                # A key is not held back for what may follow: the mark is looked for in what went before, too.
                passed = len(self._before)
                at = (self._before + data).find(_BEGIN)
                cut = at + len(_BEGIN) - passed if at >= 0 else len(data)
                self._before = "" if at >= 0 else (self._before + data)[1 - len(_BEGIN) :]
                found.append(data[:cut])
                self._pasted, data = at >= 0, data[cut:]
                continue
            before, end, data = data.partition(_END)
            if not end and (start := before.rfind("\x1b")) >= 0 and _END.startswith(before[start:]):
                before, self._held = before[:start], before[start:]
            found += [_ESCAPES.sub("", before), end]
            self._pasted = not end
        return "".join(found)
