"""A finding: one thing that was looked at, how it is, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How a thing that was looked at is."""

    OK = "ok"
    WARN = "warn"
    """It works, with something to know."""
    FAIL = "fail"
    """GPU containers will not work until this is mended."""
    SKIP = "skip"
    """It could not be looked at, and ``what`` says why."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    id: str
    """Readable slug: ``doctor.driver``."""
    level: Level
    title: str
    what: str
    """One sentence: how it is."""
    fix: str = ""
    """What to do, with the command for this machine; empty when nothing is to be done."""
    code: str | None = None
    """Code of the failure in our catalogue, when it is one of them."""
