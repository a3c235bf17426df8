"""What was meant: of the names there are, those nearest to one that is not among them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_MOST = 3
_CUTOFF = 0.5


def nearest_names(word: str, known: Iterable[str]) -> tuple[str, ...]:
    """At most three of ``known``: the most similar ones first, then those that ``word`` is a part of."""
    names = list(dict.fromkeys(known))
    near = difflib.get_close_matches(word, names, n=_MOST, cutoff=_CUTOFF)
    near += [name for name in names if word and word in name and name not in near]
    return tuple(near[:_MOST])


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``Did you mean train or trainer?``; empty when nothing is near."""
    near = nearest_names(word, known)
    return f"Did you mean {' or '.join(near)}?" if near else ""
