"""Catalogs of users and teams: checked as a whole, each mistake told with file, line, field and nearest word."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpuconsole.core.config import nearest
from gpuconsole.core.errors import BadFile
from gpuconsole.core.text import plain_line
from gpuconsole.images.catalog import CatalogImage, entry

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_MAX_BYTES = 4 * 2**20
_ALSO_CALLED = {"x86_64": "linux/amd64", "x86-64": "linux/amd64", "x64": "linux/amd64", "aarch64": "linux/arm64"}
_HEADER = re.compile(r"^\s*\[\[\s*(\w+)\s*\]\]")
_KEY = re.compile(r"^\s*\"?([\w-]+)\"?\s*=")


@dataclass(frozen=True, slots=True)
class Mistake:
    """One thing wrong in a catalog file."""

    path: Path
    line: int | None
    text: str
    """Half a sentence: which field, what is wrong, the nearest word that is right."""

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else str(self.path)
        return plain_line(f"{place}: {self.text}")


def read_catalog_files(paths: Iterable[Path]) -> tuple[CatalogImage, ...]:
    """The entries of all files, the later file's last.

    Raises:
        BadFile: A file cannot be read or has mistakes; all mistakes of all files are in the message.
    """
    entries: list[CatalogImage] = []
    mistakes: list[Mistake] = []
    for path in paths:
        entries += _read(path, mistakes)
    if mistakes:
        count = "a mistake" if len(mistakes) == 1 else f"{len(mistakes)} mistakes"
        told = "".join(f"\n  {mistake}" for mistake in mistakes)
        raise BadFile(f"The catalog of your own has {count}:{told}", hint="Correct the file; nothing of it was used.")
    return tuple(entries)


def _read(path: Path, mistakes: list[Mistake]) -> list[CatalogImage]:
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)  # a device may have no end
        if len(data) > _MAX_BYTES:
            raise ValueError("is larger than any catalog")
        text = data.decode("utf-8")
        table = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        line = re.search(r"at line (\d+)", str(error))
        mistakes.append(Mistake(path, int(line[1]) if line else None, f"is no TOML: {error}"))
    except (OSError, ValueError) as error:
        reason = error.strerror or str(error) if isinstance(error, OSError) else str(error)
        mistakes.append(Mistake(path, None, f"cannot be read: {reason}"))
    else:
        return _checked(path, text, table, mistakes)
    return []


def _checked(path: Path, text: str, table: dict[str, Any], mistakes: list[Mistake]) -> list[CatalogImage]:
    from pydantic import ValidationError

    from gpuconsole.images.catalog_model import CatalogFile

    places = Places(text)
    try:
        file = CatalogFile.model_validate(table)
    except ValidationError as error:
        mistakes += [_mistake(path, places, details) for details in error.errors(include_url=False)]
        return []
    entries = [entry(row.model_dump(exclude_none=True), source=str(path)) for row in file.image]
    mistakes += _twice(path, places, entries)
    return entries


def _twice(path: Path, places: Places, entries: Sequence[CatalogImage]) -> Iterator[Mistake]:
    first: dict[str, int] = {}
    for number, each in enumerate(entries):
        if each.reference in first:
            where = places.line("image", number, "reference")
            again = places.line("image", first[each.reference], "reference")
            yield Mistake(path, where, f"image {number + 1}: {each.reference} stands in line {again} already")
        first.setdefault(each.reference, number)


def _mistake(path: Path, places: Places, details: ErrorDetails) -> Mistake:
    where = details["loc"]
    names = [part for part in where if isinstance(part, str)]
    numbers = [part for part in where if isinstance(part, int)]
    section = names[0] if len(where) > 1 and numbers else ""
    field = names[-1] if names else ""
    line = places.line(section, numbers[0] if section else None, field)
    if section:
        return Mistake(path, line, f"{section} {numbers[0] + 1}, field {field!r}: {_words(details, field, section)}")
    return Mistake(path, line, f"field {field!r}: {_words(details, field, section)}")


def _words(details: ErrorDetails, field: str, section: str) -> str:
    from gpuconsole.images.catalog_model import CatalogFile, ImageRow

    kind, given = details["type"], details["input"]
    if kind == "extra_forbidden":
        known = list((ImageRow if section else CatalogFile).model_fields)
        return f"there is no such field{nearest(field, known)}"
    if kind == "missing":
        return "it is missing"
    if kind in ("literal_error", "enum"):
        allowed = re.findall(r"'([^']+)'", str(details.get("ctx", {}).get("expected", "")))
        meant = _ALSO_CALLED.get(str(given).removeprefix("linux/"), str(given))
        return f"{given!r} is not one of {', '.join(allowed)}{nearest(meant, allowed)}"
    message = details["msg"].removeprefix("Value error, ")
    if kind == "value_error":
        return message
    return f"{given!r} will not do: {message[:1].lower()}{message[1:]}"


class Places:
    """Where in a TOML file the fields of its ``[[sections]]`` stand; the parser itself forgets it."""

    def __init__(self, text: str) -> None:
        self._lines: dict[tuple[str, int | None, str], int] = {}
        counts: dict[str, int] = {}
        section: tuple[str, int | None] = ("", None)
        for number, line in enumerate(text.splitlines(), start=1):
            if header := _HEADER.match(line):
                name = header[1]
                section = (name, counts.get(name, 0))
                counts[name] = counts.get(name, 0) + 1
                self._lines[(*section, "")] = number
            elif key := _KEY.match(line):
                self._lines.setdefault((*section, key[1]), number)

    def line(self, section: str, number: int | None, field: str) -> int | None:
        """The line of a field, else of its section's beginning; None when it cannot be told."""
        return self._lines.get((section, number, field)) or self._lines.get((section, number, ""))
