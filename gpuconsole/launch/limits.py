"""The numbers of a launch: sizes, cores, limits, ids, each with the most that an engine can be told.

A :class:`ValueError` holds a sentence that follows the option's name and a colon, as in ``fields``.
"""

from __future__ import annotations

import math
import re

from gpuconsole.core.text import parse_size
from gpuconsole.engine.request import Ulimit

IMAGE, ME = "image", "me"
"""Users by word: the image's own, and the caller."""
MOST = 2**63 - 1
"""The largest number in an engine's interface."""
_LARGEST_ID = 2**31 - 1
_SMALLEST_MEMORY = 6 * 2**20
_MOST_CORES = MOST // 10**9
"""Engines count cores in billionths."""
_LONGEST_NUMBER = 4000
"""Digits; Python refuses more than 4300 with words of its own."""
_ULIMITS = (
    *("core", "cpu", "data", "fsize", "locks", "memlock", "msgqueue", "nice", "nofile", "nproc", "rss"),
    *("rtprio", "rttime", "sigpending", "stack"),
)
_RESTARTS = ("no", "always", "unless-stopped", "on-failure")
_ID = r"[a-zA-Z0-9_][a-zA-Z0-9_.-]*"


def is_number(text: str) -> bool:
    """Whether ``text`` is digits and nothing else, of a script that engines read."""
    return text.isascii() and text.isdigit()


def number_up_to(text: str, most: int) -> int | None:
    """The number that the digits in ``text`` write; None when it is above ``most``."""
    if len(text) > _LONGEST_NUMBER or (value := int(text)) > most:
        return None
    return value


def parse_memory(text: str) -> int:
    """A limit on the container's memory, in bytes."""
    limit = parse_size(text)
    if limit < _SMALLEST_MEMORY:
        raise ValueError(f"{text!r} is below 6m, the least an engine accepts")
    return limit


def parse_cpus(text: str) -> float:
    """A limit in cores."""
    try:
        cores = float(text)
    except ValueError:
        cores = math.nan
    if math.isnan(cores) or cores < 0.01:
        raise ValueError(f"{text!r} is no number of cores; write 8 or 1.5, and 0.01 at least")
    if cores > _MOST_CORES:
        raise ValueError(f"{text!r} is above {_MOST_CORES}, the most an engine can be told")
    return round(cores, 9)


def parse_ulimit(text: str) -> Ulimit:
    """``NAME=SOFT[:HARD]``; -1 and ``unlimited`` are without limit."""
    name, separator, values = text.partition("=")
    if name not in _ULIMITS:
        raise ValueError(f"{name!r} is no resource; known are {', '.join(_ULIMITS)}")
    soft_text, colon, hard_text = values.partition(":")
    written = [soft_text, hard_text] if colon else [soft_text]
    if not separator or not all(limit in ("-1", "unlimited") or is_number(limit) for limit in written):
        raise ValueError(f"{text!r} is no limit; write {name}=SOFT or {name}=SOFT:HARD")
    limits = [-1 if limit in ("-1", "unlimited") else number_up_to(limit, MOST) for limit in written]
    soft, hard = limits[0], limits[-1]
    if soft is None or hard is None:
        raise ValueError(f"{text!r} is above {MOST}, the most there can be; write unlimited for no limit")
    if hard != -1 and (soft == -1 or soft > hard):
        raise ValueError(f"{text!r} has a soft limit above the hard one; write {name}=SOFT:HARD")
    return Ulimit(name, soft, hard)


def parse_restart(text: str) -> str | None:
    """A restart policy; ``no`` is None."""
    policy, separator, retries = text.partition(":")
    counted = policy == "on-failure" and (not separator or is_number(retries))
    if policy not in _RESTARTS or (separator and not counted):
        raise ValueError(f"{text!r} is no policy; write no, on-failure, on-failure:3, unless-stopped or always")
    if separator and number_up_to(retries, MOST) is None:
        raise ValueError(f"{text!r} has more retries than {MOST}; write on-failure for no end of them")
    return None if policy == "no" else text


def parse_user(text: str) -> str:
    """``image``, ``me``, or ``uid[:gid]`` in numbers or names of the image."""
    if text in (IMAGE, ME):
        return text
    if not re.fullmatch(rf"{_ID}(:{_ID})?", text):
        raise ValueError(f"{text!r} is no user; write image, me, UID or UID:GID")
    refuse_large_ids(text)
    return text


def refuse_large_ids(text: str) -> None:
    """Refuse a user whose number, or whose group's, is larger than any."""
    for part in text.split(":"):
        if is_number(part) and number_up_to(part, _LARGEST_ID) is None:
            raise ValueError(f"{text!r} has an id above {_LARGEST_ID}, the largest there is")
