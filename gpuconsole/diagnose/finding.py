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


@dataclass(frozen=True, slots=True)
class Subject:
    """One thing that is looked at; its methods make the findings about it."""

    id: str
    title: str

    def ok(self, what: str) -> Finding:
        """It is as it should be."""
        return Finding(self.id, Level.OK, self.title, what)

    def warn(self, what: str, fix: str, code: str | None = None) -> Finding:
        """It works, with something to know."""
        return Finding(self.id, Level.WARN, self.title, what, fix, code)

    def fail(self, what: str, fix: str, code: str | None = None) -> Finding:
        """It does not work."""
        return Finding(self.id, Level.FAIL, self.title, what, fix, code)

    def skip(self, why: str) -> Finding:
        """It was not looked at."""
        return Finding(self.id, Level.SKIP, self.title, why)
