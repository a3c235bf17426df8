"""Dataclasses made again from JSON: the way back from :func:`gpuconsole.core.document.jsonable`."""

from __future__ import annotations

import dataclasses
import functools
import re
import sys
import types
import typing
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, TypeVar, cast

from gpuconsole.core.text import plain

Thing = TypeVar("Thing")
_BREAKS = re.compile(r"[\n\t]")
_TOO_LARGE = 1e300
"""No number of ours comes near; infinite ones are above it."""
_TOO_LARGE_WHOLE = 2**63
"""Whole numbers of ours are counts and bytes, and what draws them divides them."""


def revive(kind: type[Thing], data: object) -> Thing:
    """``data`` as a ``kind``, each text in it made harmless and one line.

    Fields that ``kind`` does not know are left out, those that are missing take their default: a file may be older or
    newer than this program.

    Raises:
        ValueError: It does not fit; the words name the place and what was expected there.
    """
    return cast(Thing, _as(kind, data, kind.__name__))


def _as(kind: Any, data: object, where: str) -> Any:
    if kind is Any:
        return _anything(data)
    origin = typing.get_origin(kind)
    if origin in (typing.Union, types.UnionType):
        return _one_of(typing.get_args(kind), data, where)
    if origin is tuple:
        return _items(typing.get_args(kind), data, where)
    if origin is not None and issubclass(origin, Mapping):
        key, value = typing.get_args(kind)
        if not isinstance(data, Mapping):
            raise ValueError(f"{where} is no object")
        return {_as(key, name, where): _as(value, item, f"{where}.{name}") for name, item in data.items()}
    if dataclasses.is_dataclass(kind):
        return _dataclass(cast(type, kind), data, where)
    return _scalar(kind, data, where)


def _anything(data: object) -> Any:
    """JSON data as it is, its text made harmless."""
    if isinstance(data, Mapping):
        return {_line(name): _anything(item) for name, item in data.items()}
    if isinstance(data, list):
        return [_anything(item) for item in data]
    return _line(data) if isinstance(data, str) else data


def _line(text: str) -> str:
    return _BREAKS.sub(" ", plain(text))


def _one_of(kinds: Sequence[Any], data: object, where: str) -> Any:
    if data is None and type(None) in kinds:
        return None
    failure = ValueError(f"{where} is null")
    for kind in kinds:
        if kind is not type(None):
            try:
                return _as(kind, data, where)
            except ValueError as error:
                failure = error
    raise failure


def _items(kinds: Sequence[Any], data: object, where: str) -> tuple[Any, ...]:
    if not isinstance(data, list):
        raise ValueError(f"{where} is no list")
    if kinds[-1:] == (...,):
        return tuple(_as(kinds[0], item, f"{where}[{place}]") for place, item in enumerate(data))
    if len(data) != len(kinds):
        raise ValueError(f"{where} has {len(data)} items instead of {len(kinds)}")
    pairs = enumerate(zip(kinds, data, strict=True))
    return tuple(_as(kind, item, f"{where}[{place}]") for place, (kind, item) in pairs)


@functools.cache
def written_types(kind: type) -> dict[str, Any]:
    """Field → type, of the fields that are written; the types of derived ones need not even be imported."""
    derived = {field.name for field in dataclasses.fields(kind) if field.metadata.get("derived")}
    hints: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        own = {name: hint for name, hint in vars(base).get("__annotations__", {}).items() if name not in derived}
        names = vars(sys.modules[base.__module__])
        hints |= typing.get_type_hints(types.SimpleNamespace(__annotations__=own), names)
    return hints


def _dataclass(kind: type, data: object, where: str) -> Any:
    if not isinstance(data, Mapping):
        raise ValueError(f"{where} is no object")
    hints = written_types(kind)
    values = {}
    for field in dataclasses.fields(kind):
        if field.name not in hints:
            continue
        if field.name in data:
            values[field.name] = _as(hints[field.name], data[field.name], f"{where}.{field.name}")
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise ValueError(f"{where}.{field.name} is missing")
    return kind(**values)


def _scalar(kind: Any, data: object, where: str) -> Any:
    if kind is str and isinstance(data, str):
        return _line(data)
    if kind is float and isinstance(data, int | float) and not isinstance(data, bool) and abs(data) < _TOO_LARGE:
        return float(data)
    if kind is int and isinstance(data, int) and not isinstance(data, bool) and abs(data) < _TOO_LARGE_WHOLE:
        return data
    if kind is bool and isinstance(data, bool):
        return data
    if isinstance(kind, type) and issubclass(kind, Enum):
        try:
            return kind(data)
        except ValueError:
            raise ValueError(f"{where} is {data!r}, which is not known here") from None
    expected = {str: "text", float: "a number", int: "a whole number", bool: "true or false"}.get(kind, str(kind))
    raise ValueError(f"{where} is not {expected}")
