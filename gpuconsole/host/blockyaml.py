"""The part of YAML that ``nvidia-ctk`` writes CDI specifications in, read without a YAML library.

A launch needs the device names and nodes of those files and nothing else of YAML. So this reads block mappings and
sequences, flow collections, plain and quoted scalars and comments; every scalar is a string, null is None. What it
does not know (anchors, tags, block scalars, several documents) is an error with its line, never a guess.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

_MAX_DEPTH = 50
_NULLS = ("", "~", "null", "Null", "NULL")
_UNKNOWN_STARTS = ("&", "*", "!", "|", ">", "%", "@", "`")
_OPENERS = " :-,[{?"


class YamlError(ValueError):
    """The text is not in the part of YAML that is read here; the message names the line."""


@dataclass(frozen=True, slots=True)
class _Line:
    number: int
    indent: int
    text: str


def read_yaml(text: str) -> object:
    """The value of a YAML document: dicts, lists, strings and None.

    Raises:
        YamlError: It is malformed, or uses what is not read here.
    """
    lines = _lines(text)
    if not lines:
        return None
    reader = _Reader(lines)
    value = reader.block(lines[0].indent, depth=0)
    if reader.here is not None:
        raise YamlError(f"line {reader.here.number}: not where it belongs")
    return value


def _lines(text: str) -> list[_Line]:
    lines: list[_Line] = []
    for number, raw in enumerate(text.lstrip("\ufeff").splitlines(), start=1):
        content = _without_comment(raw).rstrip()
        stripped = content.lstrip(" ")
        if not stripped or (content == "---" and not lines):
            continue
        if content == "...":
            break
        if content.startswith(("--- ", "---")) and not stripped.startswith("----"):
            raise YamlError(f"line {number}: a second document")
        if stripped.startswith("\t"):
            raise YamlError(f"line {number}: indented with a tab")
        lines.append(_Line(number, len(content) - len(stripped), stripped))
    return lines


def _without_comment(line: str) -> str:
    """``line`` up to a ``#`` that begins a comment: at its start or after white space, outside quotes."""
    quote, position = "", 0
    while position < len(line):
        char = line[position]
        if quote:
            if char == "\\" and quote == '"':
                position += 1
            elif char == quote:
                quote = ""
        elif char in "\"'" and (position == 0 or line[position - 1] in _OPENERS):
            quote = char
        elif char == "#" and (position == 0 or line[position - 1] in " \t"):
            return line[:position]
        position += 1
    return line


def _key_end(text: str) -> int | None:
    """Where the colon after a mapping's key stands in ``text``; None when it is no ``key: value``."""
    if text[0] in "\"'":
        closing = re.match(r"""("(?:[^"\\]|\\.)*"|'(?:[^']|'')*')\s*:(?=\s|$)""", text)
        return closing.end() - 1 if closing else None
    if text[0] in "[{":
        return None
    match = re.search(r":(?=\s|$)", text)
    return match.start() if match else None


class _Reader:
    def __init__(self, lines: list[_Line]) -> None:
        self._lines = lines
        self._position = 0

    @property
    def here(self) -> _Line | None:
        return self._lines[self._position] if self._position < len(self._lines) else None

    def block(self, indent: int, *, depth: int) -> object:
        """The value whose first line is the current one."""
        line = self.here
        if line is None:
            return None
        if depth > _MAX_DEPTH:
            raise YamlError(f"line {line.number}: nested too deep")
        if line.text == "-" or line.text.startswith("- "):
            return self._sequence(indent, depth=depth)
        if _key_end(line.text) is not None:
            return self._mapping(indent, depth=depth)
        self._position += 1
        return self._scalar(line, line.text, indent - 1)

    def _sequence(self, indent: int, *, depth: int) -> list[object]:
        items: list[object] = []
        while (line := self.here) is not None and line.indent == indent:
            if not (line.text == "-" or line.text.startswith("- ")):
                break
            rest = line.text[1:].lstrip(" ")
            if not rest:
                self._position += 1
                items.append(self._nested(indent, depth=depth))
                continue
            inner = indent + len(line.text) - len(rest)
            self._lines[self._position] = _Line(line.number, inner, rest)
            items.append(self.block(inner, depth=depth + 1))
        return items

    def _mapping(self, indent: int, *, depth: int) -> dict[str, object]:
        entries: dict[str, object] = {}
        while (line := self.here) is not None and line.indent == indent:
            end = None if line.text.startswith("- ") else _key_end(line.text)
            if end is None:
                break
            key, rest = line.text[:end].strip(), line.text[end + 1 :].strip()
            if not key or key.startswith(("? ", *_UNKNOWN_STARTS)):
                raise YamlError(f"line {line.number}: this kind of key is not read")
            name = str(_flow(key, line.number)) if key[0] in "\"'" else key
            if name in entries:
                raise YamlError(f"line {line.number}: {name!r} stands twice")
            self._position += 1
            entries[name] = self._scalar(line, rest, indent) if rest else self._value(indent, depth=depth)
        return entries

    def _value(self, indent: int, *, depth: int) -> object:
        """What follows ``key:``: deeper lines, or a sequence that stands at the key's own indent."""
        line = self.here
        if line is not None and line.indent == indent and (line.text == "-" or line.text.startswith("- ")):
            return self._sequence(indent, depth=depth + 1)
        return self._nested(indent, depth=depth)

    def _nested(self, indent: int, *, depth: int) -> object:
        line = self.here
        return self.block(line.indent, depth=depth + 1) if line is not None and line.indent > indent else None

    def _scalar(self, line: _Line, text: str, indent: int) -> object:
        """A scalar or flow collection that begins with ``text`` and goes on over deeper lines."""
        if text[0] in _UNKNOWN_STARTS:
            raise YamlError(f"line {line.number}: {text[0]!r} is not read")
        while (following := self.here) is not None and following.indent > indent:
            text = f"{text} {following.text}"
            self._position += 1
        if text[0] not in "\"'[{":
            if _key_end(text) is not None:
                raise YamlError(f"line {line.number}: a mapping inside a line")
            return None if text in _NULLS else text
        return _flow(text, line.number)


_PIECE = re.compile(
    r"""\s*("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[\[\]{},]|:(?=\s|$|[\[{"'])|[^\s\[\]{},"'][^\[\]{},]*?(?=\s*(?:[\[\]{},]|:\s|$)))"""
)


def _flow(text: str, number: int) -> object:
    """A quoted scalar or flow collection, complete in ``text``."""
    pieces: list[str] = []
    position, end = 0, len(text.rstrip())
    while position < end:
        match = _PIECE.match(text, position)
        if match is None:
            raise YamlError(f"line {number}: cannot be read")
        pieces.append(match[1])
        position = match.end()
    value = _take(pieces, number, depth=0)
    if pieces:
        raise YamlError(f"line {number}: more than one value")
    return value


def _take(pieces: list[str], number: int, *, depth: int) -> object:
    if not pieces or depth > _MAX_DEPTH:
        raise YamlError(f"line {number}: not closed")
    piece = pieces.pop(0)
    if piece == "[":
        return _take_items(pieces, number, depth=depth + 1)
    if piece == "{":
        return _take_entries(pieces, number, depth=depth + 1)
    if piece[0] == '"':
        return _double_quoted(piece, number)
    if piece[0] == "'":
        return piece[1:-1].replace("''", "'")
    if piece in "]},:" or piece[0] in _UNKNOWN_STARTS:
        raise YamlError(f"line {number}: {piece!r} is out of place")
    return None if piece in _NULLS else piece


def _double_quoted(piece: str, number: int) -> str:
    try:
        return str(json.loads(re.sub(r"\\x([0-9a-fA-F]{2})", r"\\u00\1", piece), strict=False))
    except ValueError as error:
        raise YamlError(f"line {number}: an escape that is not read") from error


def _take_items(pieces: list[str], number: int, *, depth: int) -> list[object]:
    items: list[object] = []
    while pieces and pieces[0] != "]":
        items.append(_take(pieces, number, depth=depth))
        if pieces and pieces[0] == ",":
            pieces.pop(0)
        elif pieces and pieces[0] != "]":
            raise YamlError(f"line {number}: a comma is missing")
    _close(pieces, "]", number)
    return items


def _take_entries(pieces: list[str], number: int, *, depth: int) -> dict[str, object]:
    entries: dict[str, object] = {}
    while pieces and pieces[0] != "}":
        key = str(_take(pieces, number, depth=depth))
        _close(pieces, ":", number)
        entries[key] = None if pieces and pieces[0] in (",", "}") else _take(pieces, number, depth=depth)
        if pieces and pieces[0] == ",":
            pieces.pop(0)
        elif pieces and pieces[0] != "}":
            raise YamlError(f"line {number}: a comma is missing")
    _close(pieces, "}", number)
    return entries


def _close(pieces: list[str], wanted: str, number: int) -> None:
    if not pieces or pieces.pop(0) != wanted:
        raise YamlError(f"line {number}: {wanted!r} is missing")
