"""Writing the state file: `key = value` lines, with what a line cannot hold escaped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

Codes = Mapping[str, int]
"""NVML return codes by function name; `"*"` stands for every function."""

Delays = Mapping[str, int]
"""Milliseconds by function name; `"*"` stands for every function."""

APART = frozenset({"errors", "delays_ms", "processes", "mig_instances", "gpus", "xids", "index", "lost", "unified"})
"""Fields that are not plain readings: they are written in other ways."""


def values_of(of: Any) -> dict[str, object]:
    """The plain readings of a dataclass by key."""
    return {each.name: getattr(of, each.name) for each in fields(of) if each.name not in APART}


def pairs(values: Mapping[str, object]) -> list[str]:
    """The lines of these values; None and an empty list leave the reading unsupported."""
    return [f"{key} = {_written(value)}" for key, value in values.items() if value is not None and value != ()]


def coded(errors: Codes, delays_ms: Delays) -> Iterable[str]:
    """The lines of prescribed return codes and delays."""
    yield from (f"error.{name} = {code}" for name, code in errors.items())
    yield from (f"delay.{name} = {delay}" for name, delay in delays_ms.items())


def _written(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(str(item) for item in value)
    text = str(value).replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace(" ", "\\s") if text != text.strip() else text
