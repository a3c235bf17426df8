"""Reading an engine's answers: a value of the kind expected or nothing, and text made harmless.

Engines leave fields out, send null for an empty list, and change between versions. No answer, however odd, may
keep the rest from being shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any

from gpuconsole.core.text import plain, plain_line

Answer = Mapping[str, Any]
_NOTHING: Answer = MappingProxyType({})


def part(answer: Answer, *keys: str) -> Answer:
    """The object at ``keys``, empty when there is none."""
    for key in keys:
        value = answer.get(key)
        if not isinstance(value, Mapping):
            return _NOTHING
        answer = value
    return answer


def line(answer: Answer, key: str) -> str:
    """The text at ``key`` as one harmless line, empty when there is none."""
    value = answer.get(key)
    return plain_line(value) if isinstance(value, str) else ""


def objects(answer: Answer, key: str) -> tuple[Answer, ...]:
    """The objects in the list at ``key``."""
    value = answer.get(key)
    return tuple(item for item in value if isinstance(item, Mapping)) if isinstance(value, list) else ()


def lines(answer: Answer, key: str) -> tuple[str, ...]:
    """The texts in the list at ``key``, each one harmless line."""
    value = answer.get(key)
    return tuple(plain_line(item) for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def words(answer: Answer, key: str) -> tuple[str, ...]:
    """A command: a list of words, or one text where an old image has that; harmless, lines kept."""
    value = answer.get(key)
    if isinstance(value, str):
        return (plain(value),) if value else ()
    return tuple(plain(item) for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def whole(answer: Answer, key: str) -> int | None:
    """The whole number at ``key``."""
    value = answer.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def limit(answer: Answer, key: str) -> int | None:
    """The number at ``key``, None when it is 0 or below: no limit."""
    value = whole(answer, key)
    return value if value is not None and value > 0 else None


def yes(answer: Answer, key: str) -> bool:
    """Whether ``key`` is true."""
    return answer.get(key) is True


def pairs(answer: Answer, key: str) -> tuple[tuple[str, str | None], ...]:
    """An environment in order; None is the value of an entry without ``=``."""
    value = answer.get(key)
    if not isinstance(value, list):
        return ()
    found = []
    for item in value:
        if isinstance(item, str):
            name, separator, content = item.partition("=")
            found.append((plain_line(name), plain(content) if separator else None))
    return tuple(found)


def labels(answer: Answer, key: str = "Labels") -> Mapping[str, str]:
    """Labels, harmless, lines kept."""
    value = answer.get(key)
    if not isinstance(value, Mapping):
        return MappingProxyType({})
    return MappingProxyType(
        {plain_line(str(name)): plain(content) for name, content in value.items() if isinstance(content, str)}
    )


def moment(value: object) -> float | None:
    """Seconds since the epoch of a time as engines write it; None for the year 1, which means never."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value) if value > 0 else None
    if not isinstance(value, str) or not value or value.startswith("0001-"):
        return None
    try:
        when = datetime.fromisoformat(value)
    except ValueError:
        return None
    try:
        return when.timestamp() if when.tzinfo else None
    except (OverflowError, OSError):
        return None
