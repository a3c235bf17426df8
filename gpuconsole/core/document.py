"""Dataclasses as JSON documents: what ``--json`` prints."""

from __future__ import annotations

import os

from gpuconsole.core.records import fields, is_dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

SCHEMA_VERSION = 1


def jsonable(value: object) -> Any:
    """``value`` in JSON's own types; dataclasses by field, enums by value, tuples as lists.

    Fields whose metadata say ``derived`` are left out: what is found from the others is found again by who reads them.

    Raises:
        TypeError: A type JSON has no form for.
    """
    if value is None or type(value) in _PLAIN:
        return value
    if hasattr(type(value), "__members__"):  # an enumeration, by :mod:`enum` or of :mod:`gpuconsole.core.words`
        return value.value  # type: ignore[attr-defined]
    if is_dataclass(value) and not isinstance(value, type):
        written = [field.name for field in fields(value) if not field.metadata.get("derived")]
        return {name: jsonable(getattr(value, name)) for name in written}
    if isinstance(value, dict) or _is_mapping(value):
        return {str(key): jsonable(item) for key, item in value.items()}  # type: ignore[attr-defined]
    if isinstance(value, list | tuple | set | frozenset):
        return [jsonable(item) for item in value]
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, str | int | float | bool):
        return value
    raise TypeError(f"{type(value).__name__} has no JSON form")


_PLAIN = frozenset({str, int, float, bool})


def _is_mapping(value: object) -> bool:
    if not hasattr(value, "keys"):
        return False
    from collections.abc import Mapping

    return isinstance(value, Mapping)


def body_of(name: str, **parts: object) -> dict[str, Any]:
    """``{"schema": "gpuconsole.<name>/1", …}`` in JSON's own types."""
    return {"schema": f"gpuconsole.{name}/{SCHEMA_VERSION}"} | {key: jsonable(part) for key, part in parts.items()}


def text_of(body: Mapping[str, Any], *, indent: int | None = 2, ascii_only: bool = False) -> str:
    """A document as text.

    Args:
        body: In JSON's own types.
        indent: Of each level; None puts it on one line.
        ascii_only: Write other characters as JSON's escapes, for where they cannot be written themselves.
    """
    if indent is None:
        import json

        text = json.dumps(body, ensure_ascii=ascii_only, allow_nan=False)
    else:
        from gpuconsole.core.jsontext import indented

        text = indented(body, indent=indent, ascii_only=ascii_only)
    if not ascii_only and not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:  # a byte of a name that is no text: it has an escape, and no other form
            return text_of(body, indent=indent, ascii_only=True)
    return text


def document(name: str, **parts: object) -> str:
    """One JSON document ``{"schema": "gpuconsole.<name>/1", …}`` as indented text."""
    return text_of(body_of(name, **parts))
