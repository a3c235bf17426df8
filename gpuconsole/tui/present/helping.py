"""Keys as a table of text."""

from __future__ import annotations

import re
import string
from collections.abc import Iterable

from textual.keys import _character_to_key

_NAMES = {_character_to_key(sign): sign for sign in string.punctuation} | {"escape": "esc"}
"""Textual's names of the keys that are called otherwise on a keyboard."""


def key_name(key: str) -> str:
    """A key as it stands on the keyboard."""
    modifier, _, base = key.rpartition("+")
    name = _NAMES.get(base, base.upper() if re.fullmatch(r"f\d+", base) else base)
    return name if not modifier else f"^{name}" if modifier == "ctrl" else f"{modifier}+{name}"


def key_table(rows: Iterable[tuple[str, str, str]]) -> str:
    """(key, label, tip) as lines; keys of one action stand together."""
    grouped: dict[tuple[str, str], list[str]] = {}
    for key, label, tip in rows:
        grouped.setdefault((label, tip), []).append(key_name(key))
    keys_width = max((len(" ".join(keys)) for keys in grouped.values()), default=0)
    label_width = max((len(label) for label, _ in grouped), default=0)
    return "\n".join(
        f"{' '.join(keys):<{keys_width}}  {label:<{label_width}}  {tip}".rstrip()
        for (label, tip), keys in grouped.items()
    )
