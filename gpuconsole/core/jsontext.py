"""JSON as :mod:`json` reads and writes it, without importing that module: it and its patterns take 7 ms to come."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_ESCAPES = {ord(char): f"\\u{ord(char):04x}" for char in map(chr, range(32))} | {
    ord('"'): '\\"', ord("\\"): "\\\\", 8: "\\b", 9: "\\t", 10: "\\n", 12: "\\f", 13: "\\r",
}  # fmt: skip
_INFINITE = float("inf")


class _Plainly:
    """What the scanner of :mod:`json` is to make of what it reads: Python's own types."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float = parse_constant = float
    parse_int = int
    memo: dict[str, str] = {}  # noqa: RUF012 - part of what the scanner asks for, which keeps its own


def parsed(content: bytes) -> Any:
    """The value that a document of UTF-8 holds.

    Raises:
        ValueError: It is no JSON.
    """
    text = content.decode().strip(" \t\n\r")
    try:
        from _json import make_scanner  # what json itself reads with, where Python is CPython

        scan = make_scanner(_Plainly)  # type: ignore[arg-type]
    except (ImportError, AttributeError):  # or where it asks for more than we know of: it is json's own affair
        import json

        return json.loads(text)
    try:
        value, end = scan(text, 0)
    except StopIteration:
        raise ValueError("a value of JSON is missing") from None
    if end != len(text):
        raise ValueError("something follows the value of JSON")
    return value


def indented(body: Any, *, indent: int, ascii_only: bool) -> str:
    """``body`` as JSON, each member on a line of its own.

    Args:
        body: In JSON's own types, its objects with texts as keys.
        indent: Blanks for each level.
        ascii_only: Write other characters as escapes.

    Raises:
        ValueError: A number that is not finite, for which JSON has no form.
        TypeError: Another type.
    """
    pieces: list[str] = []
    _write(body, pieces.append, "\n", " " * indent, ascii_only)
    return "".join(pieces)


def _write(value: Any, put: Callable[[str], None], line: str, blanks: str, ascii_only: bool) -> None:
    if isinstance(value, dict) and value:
        opening = "{"
        for key, item in value.items():
            if not isinstance(key, str):
                raise TypeError(f"{key!r} is no text, and so no key of JSON")
            put(f"{opening}{line}{blanks}{_text(key, ascii_only)}: ")
            _write(item, put, line + blanks, blanks, ascii_only)
            opening = ","
        put(f"{line}}}")
    elif isinstance(value, list | tuple) and value:
        opening = "["
        for item in value:
            put(f"{opening}{line}{blanks}")
            _write(item, put, line + blanks, blanks, ascii_only)
            opening = ","
        put(f"{line}]")
    else:
        put(_single(value, ascii_only))


def _single(value: Any, ascii_only: bool) -> str:
    """What is on one line."""
    if isinstance(value, str):
        return _text(value, ascii_only)
    if value is None or value is True or value is False:
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, float):
        if not abs(value) < _INFINITE:
            raise ValueError(f"JSON has no form for {value!r}")
        return float.__repr__(value)
    if isinstance(value, dict):
        return "{}"
    if isinstance(value, list | tuple):
        return "[]"
    raise TypeError(f"{type(value).__name__} has no JSON form")


def _text(text: str, ascii_only: bool) -> str:
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    text = text.translate(_ESCAPES)
    if ascii_only and not (text.isascii() and text.isprintable()):
        text = "".join(char if " " <= char <= "~" else _escaped(char) for char in text)
    return f'"{text}"'


def _escaped(char: str) -> str:
    """By its number, or by two where that has more than four digits."""
    number = ord(char)
    if number < 0x10000:
        return f"\\u{number:04x}"
    number -= 0x10000
    return f"\\u{0xD800 | number >> 10:04x}\\u{0xDC00 | number & 0x3FF:04x}"
