"""``${NAME}`` in what people write, from the environment; nothing is ever run for it."""

from __future__ import annotations

import re
from collections.abc import Mapping

_REFERENCE = re.compile(r"\$\$\{|\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?:(?P<how>:?-)(?P<default>[^}]*))?\}|\$\{")


def expand(text: str, environment: Mapping[str, str], used: set[str]) -> str:
    """``text`` with ``${NAME}`` and ``${NAME:-default}`` replaced; ``$${`` is a plain ``${``, and ``$NAME`` stays.

    Args:
        text: As written.
        environment: Where values come from.
        used: Takes the names whose values were used.

    Raises:
        ValueError: A variable is not set, or what is in the braces is none; the message says what to write.
    """

    def value(match: re.Match[str]) -> str:
        name, how = match["name"], match["how"]
        if name is None:
            if match[0] == "$${":
                return "${"
            raise ValueError(f"{text[match.start() : match.start() + 30]!r} is no variable; write ${{NAME}} or $${{")
        found = environment.get(name)
        if found is not None and (found or how != ":-"):
            used.add(name)
            return found
        if how is None:
            raise ValueError(f"{name} is not set in this shell; export it, or write ${{{name}:-DEFAULT}}")
        return str(match["default"])

    return _REFERENCE.sub(value, text)


def names_alone(text: str) -> str | None:
    """The variable when ``text`` is nothing but ``${NAME}``; else None."""
    match = _REFERENCE.fullmatch(text)
    return match["name"] if match and match["how"] is None else None
