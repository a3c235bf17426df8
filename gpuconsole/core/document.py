"""Dataclasses as JSON documents: what ``--json`` prints."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from enum import Enum
from pathlib import PurePath
from typing import Any

SCHEMA_VERSION = 1


def jsonable(value: object) -> Any:
    """``value`` in JSON's own types; dataclasses by field, enums by value, tuples as lists.

    Raises:
        TypeError: A type JSON has no form for.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: jsonable(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [jsonable(item) for item in value]
    if isinstance(value, PurePath):
        return str(value)
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise TypeError(f"{type(value).__name__} has no JSON form")


def document(name: str, **parts: object) -> str:
    """One JSON document ``{"schema": "gpuconsole.<name>/1", …}`` as indented text."""
    body = {"schema": f"gpuconsole.{name}/{SCHEMA_VERSION}"} | {key: jsonable(part) for key, part in parts.items()}
    return json.dumps(body, indent=2, ensure_ascii=False, allow_nan=False)
