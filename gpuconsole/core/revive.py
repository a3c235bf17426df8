"""Dataclasses made again from JSON: the way back from :func:`gpuconsole.core.document.jsonable`."""

from __future__ import annotations

import dataclasses
import functools
import re
import sys
import types
import typing
from collections.abc import Callable, Mapping, Sequence
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
    try:
        return cast(Thing, _reader(cast(Any, kind))(data))
    except (ValueError, RecursionError):
        return cast(Thing, _as(kind, data, kind.__name__))  # slower, and knows the place


# --- the quick way: what reads each type is made once ---

_Reader = Callable[[Any], Any]


@functools.cache
def _reader(kind: Any) -> _Reader:
    """Makes a ``kind`` of JSON data, or raises a ValueError without words."""
    if kind is Any:
        return _anything
    origin = typing.get_origin(kind)
    if origin in (typing.Union, types.UnionType):
        return _union_reader(tuple(_reader(each) for each in typing.get_args(kind) if each is not type(None)),
                             none=type(None) in typing.get_args(kind))  # fmt: skip
    if origin is tuple:
        return _tuple_reader(typing.get_args(kind))
    if origin is not None and issubclass(origin, Mapping):
        key, value = (_reader(each) for each in typing.get_args(kind))
        return lambda data: {key(name): value(item) for name, item in _expected(data, Mapping).items()}
    if dataclasses.is_dataclass(kind):
        return _dataclass_reader(cast(type, kind))
    if kind is str:
        return _text
    return lambda data: _scalar(kind, data, "")


def _expected(data: Any, kind: type) -> Any:
    if not isinstance(data, kind):
        raise ValueError
    return data


def _text(data: Any) -> str:
    if not isinstance(data, str):
        raise ValueError
    return data if data.isascii() and data.isprintable() else _line(data)


def _union_reader(readers: tuple[_Reader, ...], *, none: bool) -> _Reader:
    def read(data: Any) -> Any:
        if data is None and none:
            return None
        for reader in readers:
            try:
                return reader(data)
            except ValueError:
                continue
        raise ValueError

    if len(readers) == 1:
        only = readers[0]
        return lambda data: None if data is None and none else only(data)
    return read


def _tuple_reader(kinds: tuple[Any, ...]) -> _Reader:
    if kinds[-1:] == (...,):
        item = _reader(kinds[0])
        return lambda data: tuple([item(each) for each in _expected(data, list)])
    readers = tuple(_reader(each) for each in kinds)

    def read(data: Any) -> Any:
        if len(_expected(data, list)) != len(readers):
            raise ValueError
        return tuple(reader(each) for reader, each in zip(readers, data, strict=True))

    return read


def _dataclass_reader(kind: type) -> _Reader:
    fields: list[tuple[str, _Reader, bool]] = []  # made at first use: a type may hold its own kind

    def read(data: Any) -> Any:
        if not fields:
            hints = written_types(kind)
            missing = dataclasses.MISSING
            fields.extend(
                (each.name, _reader(hints[each.name]), each.default is missing and each.default_factory is missing)
                for each in dataclasses.fields(kind) if each.name in hints
            )  # fmt: skip
        _expected(data, Mapping)
        values = {}
        for name, reader, needed in fields:
            if name in data:
                values[name] = reader(data[name])
            elif needed:
                raise ValueError
        return kind(**values)

    return read


# --- the way that knows the place of what does not fit ---


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
        # A module that must be there fast imports this for type checkers only.
        names = {"Mapping": Mapping} | vars(sys.modules[base.__module__])
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
    if isinstance(kind, type) and hasattr(kind, "__members__"):
        try:
            return kind(data)
        except ValueError:
            raise ValueError(f"{where} is {data!r}, which is not known here") from None
    expected = {str: "text", float: "a number", int: "a whole number", bool: "true or false"}.get(kind, str(kind))
    raise ValueError(f"{where} is not {expected}")
