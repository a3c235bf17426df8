"""Versions as numbers that can be compared: of drivers, CUDA, torch and compute capabilities."""

from __future__ import annotations

import re
from functools import lru_cache

_NUMBERS = re.compile(r"^\d+(?:\.\d+)*")
_CAPABILITY = re.compile(r"^(\d{1,2})\.(\d)$")
_DRIVER = re.compile(r"^\d{3,4}(?:\.\d{1,3}){1,3}$")

Version = tuple[int, ...]


@lru_cache(maxsize=1024)
def version(text: str) -> Version:
    """The leading numbers of ``text``: ``2.9.0a0+145a`` is ``(2, 9, 0)``; empty when it begins with none."""
    match = _NUMBERS.match(text)
    return tuple(int(part) for part in match[0].split(".")) if match else ()


def at_least(one: str, other: str) -> bool:
    """Whether ``one`` is ``other`` or newer, part by part; a part that is not written counts as zero."""
    return _padded(version(one)) >= _padded(version(other))


def _padded(parts: Version) -> Version:
    while parts and parts[-1] == 0:
        parts = parts[:-1]
    return parts


def minor(text: str) -> str:
    """Major and minor part: ``12.8`` of ``12.8.1.012``."""
    return ".".join(text.split(".")[:2])


def major(text: str) -> int | None:
    """The first number of ``text``."""
    parts = version(text)
    return parts[0] if parts else None


def capability(text: str) -> tuple[int, int]:
    """A compute capability, ``9.0``.

    Raises:
        ValueError: It has not that form.
    """
    match = _CAPABILITY.match(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is no compute capability; it looks like 8.9")
    return int(match[1]), int(match[2])


def capability_text(value: tuple[int, int]) -> str:
    """``(8, 9)`` as ``8.9``."""
    return f"{value[0]}.{value[1]}"


def is_driver(text: str) -> bool:
    """Whether ``text`` is written as a version of NVIDIA's driver for Linux."""
    return _DRIVER.match(text) is not None
