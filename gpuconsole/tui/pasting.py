"""What a terminal sends, read so that nothing in a paste is taken for keys, nor an answer that nobody waits for."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterable

from textual import events
from textual._xterm_parser import XTermParser
from textual.keys import Keys
from textual.message import Message

_BEGIN, _END = "\x1b[200~", "\x1b[201~"
_ESCAPES = re.compile(r"\x1b(?!\[201~)(?:\[[0-?]*[ -/]*[@-~])?")
"""Escape characters in a paste, and the colours they begin; not its end."""
_ANSWERS = re.compile(r"\x1b(?:\]\d|P[01>!]|_G)[\x20-\x7e]*(?:\x07|\x1b\\)")
"""Long answers to what another program asked the terminal before: of its colours, its name, its pictures."""
_BEGUN = re.compile(r"\x1b(?:\]\d|P[01>!]|_G)[\x20-\x7e]*\x1b?\Z")
"""The beginning of one, whose rest is still to come."""
_REST_S = 1.0
"""So long it is waited for; then it is dropped, since nobody typed it."""
_WHOLE = re.compile(r"\x1b\[(?![M\[])[0-?]*[ -/]*[@-~]")
"""A whole sequence, but for the beginnings of longer ones: a mouse report of old, a function key of Linux."""
_OURS = re.compile(r"\x1b\[(?:<?[-\d;]+[mM]|\?\d+;\d\$y)")
"""A mouse report, and an answer to what Textual asked."""
_KITTY = re.compile(r"\x1b\[(\d+)(?::[\d:]*)?(?:;(\d*)(?::(\d*))?(;[\d:]*)?)?([u~ABCDEFHPQRS])", re.ASCII)
"""A key as kitty reports it, with its other forms, and with what happened to it."""
_RELEASED = "3"


class PasteParser(XTermParser):
    """Textual's parser, which takes an escape character inside a paste for keys, thirty-two of them at a time.

    It takes the characters of any sequence that it does not know for keys too, and ends at some that it does not
    expect.
    """

    def __init__(self, debug: bool = False) -> None:
        super().__init__(debug)
        self._pasted = False
        self._before = ""
        """The last characters outside of a paste."""
        self._held = ""
        self._begun_at: float | None = None
        """Since when what is held is the beginning of an answer."""

    def tick(self) -> Iterable[Message]:
        """What time alone tells: that an escape character is a key, and that the rest of an answer does not come."""
        self._drop_what_is_late()
        return super().tick()

    def _drop_what_is_late(self) -> None:
        if self._begun_at is not None and time.monotonic() - self._begun_at >= _REST_S:
            self._held, self._begun_at = "", None

    def feed(self, data: str) -> Iterable[Message]:
        """What ``data`` holds; empty at the end."""
        if not data:
            return super().feed(data)
        self._drop_what_is_late()
        text = self._harmless(self._held + data)
        return super().feed(text) if text else ()

    def _harmless(self, data: str) -> str:
        """``data`` without escape characters inside pastes; a mark that may be its end waits for its rest."""
        begun_at, self._begun_at = self._begun_at, None
        self._held, found = "", []
        while data:
            if not self._pasted:
                # A key is not held back for what may follow: the mark is looked for in what went before, too.
                passed = len(self._before)
                at = (self._before + data).find(_BEGIN)
                cut = at + len(_BEGIN) - passed if at >= 0 else len(data)
                typed = _ANSWERS.sub("", data[:cut])
                if at < 0 and (begun := _BEGUN.search(typed)):
                    self._held, self._begun_at = typed[begun.start() :], begun_at or time.monotonic()
                    typed = typed[: begun.start()]
                    data = data[: len(data) - len(self._held)]
                self._before = "" if at >= 0 else (self._before + data)[1 - len(_BEGIN) :]
                found.append(typed)
                self._pasted, data = at >= 0, data[cut:]
                continue
            before, end, data = data.partition(_END)
            if not end and (start := before.rfind("\x1b")) >= 0 and _END.startswith(before[start:]):
                before, self._held = before[:start], before[start:]
            found += [_ESCAPES.sub("", before), end]
            self._pasted = not end
        return "".join(found)

    def _sequence_to_key_events(self, sequence: str, alt: bool = False) -> Iterable[events.Key]:
        if ":" in sequence and (key := _KITTY.fullmatch(sequence)):
            code, modifiers, happened, text, end = key.groups(default="")
            sequence = "" if happened == _RELEASED else f"\x1b[{code};{modifiers}{text}{end}"
        found: list[events.Key] = []
        # What is no number, or no character's, is no key.
        with contextlib.suppress(ValueError, OverflowError):
            found = list(super()._sequence_to_key_events(sequence, alt)) if sequence else []
        if not found and (not sequence or (_WHOLE.fullmatch(sequence) and not _OURS.fullmatch(sequence))):
            return [events.Key(Keys.Ignore, sequence)]
        return found
