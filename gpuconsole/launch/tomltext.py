"""TOML as text: values written, a table put into a file without touching the rest, the line that sets a field.

The standard library reads TOML and writes none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_PART = r"""(?:[\w-]+|"[^"\n]*"|'[^'\n]*')"""
_PATH = rf"{_PART}(?:\s*\.\s*{_PART})*"
_TABLE = re.compile(rf"^\s*\[\s*({_PATH})\s*\]")
_NAME = re.compile(rf"^\s*({_PATH})\s*=")
_INLINE = 100
"""Characters of a list that still stands on one line."""

Value = str | bool | int | float | Sequence[str] | Mapping[str, "str | int | float | bool"]


def written(value: Value) -> str:
    """A value as TOML has it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key_text(key)} = {written(item)}" for key, item in value.items()) + " }"
    parts = [_text(item) for item in value]
    line = f"[{', '.join(parts)}]"
    return line if len(line) <= _INLINE else "[\n" + "".join(f"  {part},\n" for part in parts) + "]"


def _text(value: str) -> str:
    # JSON's escapes are TOML's, but for what JSON leaves as it is and TOML does not allow, or a terminal obeys.
    text = json.dumps(value, ensure_ascii=False)
    return re.sub(r"[\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]", lambda m: f"\\u{ord(m[0]):04x}", text)


def key_text(key: str) -> str:
    """A key, in quotes where it needs them."""
    return key if _BARE.fullmatch(key) else _text(key)


def table_text(header: str, fields: Mapping[str, Value]) -> str:
    """``[header]`` with its fields, a line each; tables of more than two items as tables of their own below."""
    lines, below = [f"[{header}]"], []
    for name, value in fields.items():
        if isinstance(value, Mapping) and len(value) > 2:
            below += ["", f"[{header}.{key_text(name)}]", *(f"{key_text(k)} = {written(v)}" for k, v in value.items())]
        else:
            lines.append(f"{key_text(name)} = {written(value)}")
    return "\n".join([*lines, *below, ""])


def with_table(text: str, header: str, table: str) -> str:
    """``text`` with ``table`` in the place of the table ``header`` and its subtables, or at its end.

    Comments above the header stay; all other lines are as they were.
    """
    lines = text.splitlines(keepends=True)
    spans = _spans(lines, header)
    if not spans:
        gap = "" if not text.strip() else "\n" if text.endswith("\n") else "\n\n"
        return f"{text}{gap}{table}"
    kept = [line for number, line in enumerate(lines) if not any(start <= number < end for start, end in spans)]
    at = spans[0][0]
    rest = "".join(kept[at:])
    return "".join(kept[:at]) + table + (f"\n{rest}" if rest.strip() and not rest.startswith("\n") else rest)


def _spans(lines: Sequence[str], header: str) -> list[tuple[int, int]]:
    """Where a table and its subtables stand: from the header to before the comments of the next one."""
    heads = [(number, bare(match[1])) for number, line in _outside_texts(lines) if (match := _TABLE.match(line))]
    spans: list[tuple[int, int]] = []
    for position, (start, name) in enumerate(heads):
        if name != header and not name.startswith(f"{header}."):
            continue
        end = heads[position + 1][0] if position + 1 < len(heads) else len(lines)
        while end - 1 > start and (not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#")):
            end -= 1
        if spans and not "".join(lines[spans[-1][1] : start]).strip():
            start = spans.pop()[0]  # only blank lines are between it and the table it belongs to
        spans.append((start, end))
    return spans


def _outside_texts(lines: Sequence[str]) -> list[tuple[int, str]]:
    """Lines that do not stand within a text of several lines."""
    found: list[tuple[int, str]] = []
    inside = ""
    for number, line in enumerate(lines):
        if not inside:
            found.append((number, line))
        for mark in re.findall(r'"""|\'\'\'', line):
            inside = "" if inside == mark else inside or mark
    return found


def line_of(text: str, name: str) -> int | None:
    """Number of the line that sets the field ``name``, of the nearest table above it else; None when there is none."""
    places: dict[str, int] = {}
    table, name = "", bare(name)
    for number, line in _outside_texts(text.splitlines()):
        if head := _TABLE.match(line):
            table = bare(head[1])
            above = table
            while above:
                places.setdefault(above, number + 1)
                above = above.rpartition(".")[0]
        elif found := _NAME.match(line):
            places.setdefault(bare(f"{table}.{found[1]}" if table else found[1]), number + 1)
    while name:
        if name in places:
            return places[name]
        name = name.rpartition(".")[0]
    return None


def bare(name: str) -> str:
    """A dotted name without quotes and blanks."""
    return re.sub(r"[\"'\s]", "", name)
