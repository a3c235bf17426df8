"""Options of a launch laid over each other: a profile over the one it extends, the command line over a profile.

A single value replaces the one below. Of a list, an item replaces those below with the same key: a variable of that
name, a mount at that place, a port of that number; the others stay.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

Fields = Mapping[str, Any]
"""Fields of ``LaunchOptions`` that were given, by name; lists are tuples of texts."""

_PLACES = ("volumes", "mounts", "tmpfs")
"""Fields whose items take a place in the container: one place is taken once, by whichever of them."""


def _before_equals(text: str) -> str:
    return text.partition("=")[0]


def _host_name(text: str) -> str:
    return re.split("[:=]", text, maxsplit=1)[0]


def _container_port(text: str) -> str:
    number, _, protocol = text.rpartition(":")[2].partition("/")
    return f"{number}/{protocol or 'tcp'}"


def _volume_target(text: str) -> str:
    if text.startswith("type="):
        return _mount_target(text)
    parts = text.split(":")
    return parts[1] if len(parts) > 1 else text


def _mount_target(text: str) -> str:
    match = re.search(r'(?:^|,)"?(?:target|dst|destination)=([^,"]*)', text)
    return match[1] if match else text


def _before_colon(text: str) -> str:
    return text.partition(":")[0]


_KEYS: Mapping[str, Callable[[str], str]] = {
    "volumes": _volume_target, "mounts": _mount_target, "tmpfs": _before_colon, "ports": _container_port,
    "environment": _before_equals, "secrets": _before_equals, "labels": _before_equals, "ulimits": _before_equals,
    "extra_hosts": _host_name, "env_files": str, "group_add": str, "devices": str, "force": str,
}  # fmt: skip
"""Field that is a list → what an item is known by."""


def _keys(name: str, items: tuple[str, ...]) -> set[str]:
    if name in _PLACES:
        return {_KEYS[name](item).rstrip("/") for item in items}
    return {_KEYS[name](item) for item in items}


def overlay(below: Fields, above: Fields) -> dict[str, Any]:
    """The fields of both, those of ``above`` coming first where they meet."""
    places = set().union(*(_keys(name, above.get(name, ())) for name in _PLACES))
    result: dict[str, Any] = {}
    for name in {**below, **above}:
        if name not in _KEYS:
            result[name] = above[name] if name in above else below[name]
            continue
        top = above.get(name, ())
        taken = places if name in _PLACES else _keys(name, top)
        kept = tuple(item for item in below.get(name, ()) if not _keys(name, (item,)) & taken)
        result[name] = (*kept, *top)
    return result
