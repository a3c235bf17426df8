"""Keys as a table of text."""

from __future__ import annotations

import re
from collections.abc import Iterable

_NAMES = {
    "question_mark": "?", "slash": "/", "escape": "esc", "plus": "+", "minus": "-",
    "left_square_bracket": "[", "right_square_bracket": "]", "colon": ":", "equals_sign": "=", "upper_g": "G",
}  # fmt: skip


def key_name(key: str) -> str:
    """A key as it stands on the keyboard."""
    return _NAMES.get(key, key.upper() if re.fullmatch(r"f\d+", key) else key.replace("ctrl+", "^"))


def key_table(rows: Iterable[tuple[str, str, str]]) -> str:
    """(key, label, tip) as lines; keys of one action stand together."""
    grouped: dict[tuple[str, str], list[str]] = {}
    for key, label, tip in rows:
        grouped.setdefault((label, tip), []).append(key_name(key))
    width = max((len(" ".join(keys)) for keys in grouped.values()), default=0)
    return "\n".join(
        f"{' '.join(keys):<{width}}  {label:<10}  {tip}".rstrip() for (label, tip), keys in grouped.items()
    )
