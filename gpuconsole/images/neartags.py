"""Tags that may have been meant."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

_NUMBERS = re.compile(r"(\d+)")


def nearest_tags(wanted: str, tags: Iterable[str], *, at_most: int = 3) -> tuple[str, ...]:
    """The tags most like ``wanted``, the nearest first; where none is like it the newest by their numbers.

    Args:
        wanted: What was asked for.
        tags: What there is.
        at_most: So many.
    """
    there = {tag.lower(): tag for tag in tags}
    near = [there[match] for match in difflib.get_close_matches(wanted.lower(), there, n=at_most, cutoff=0.6)]
    near += [tag for low, tag in there.items() if low.startswith(wanted.lower()) and tag not in near]
    if not near:
        near = sorted(there.values(), key=_newness, reverse=True)
    return tuple(near[:at_most])


def _newness(tag: str) -> list[tuple[int, int, str]]:
    """For sorting: numbers by value, after words."""
    return [(1, int(part), "") if part.isdigit() else (0, 0, part) for part in _NUMBERS.split(tag) if part]
