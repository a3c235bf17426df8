"""The lock file of a project: which image each reference means there, by digest."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from gpuconsole.core.config import nearest
from gpuconsole.core.errors import BadFile
from gpuconsole.core.text import plain_line
from gpuconsole.images.reference import is_content_digest, is_image_id, is_platform, parse

FILE_NAME = "gpuconsole.lock"
_VERSION = 1
_HEAD = f"""\
# Which image each name means in this folder. 'gpuconsole pin' keeps this file; keep it with your code.
version = {_VERSION}
"""
_KEYS = ("digest", "id", "platform", "size_bytes", "download_bytes", "pinned")
_CONFLICT = re.compile(r"^(?:<{7}|={7}|>{7})(?: |$)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Pin:
    """One reference, held to one image. Either ``digest`` or ``image_id`` is set."""

    reference: str
    """As docker writes it: ``pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime``."""
    digest: str | None = None
    """``sha256:…`` in the reference's repository."""
    image_id: str | None = None
    """``sha256:…`` of an image that no registry gave; other machines don't have it."""
    platform: str | None = None
    """``linux/amd64``: of the machine that pinned it."""
    size_bytes: int | None = None
    """Unpacked, as the engine counts; None unless it was here."""
    download_bytes: int | None = None
    """Of a whole pull; None unless the registry was asked."""
    pinned: date | None = None
    """The day."""

    @property
    def image(self) -> str:
        """What an engine is asked for: ``pytorch/pytorch@sha256:…``, or the id."""
        return f"{parse(self.reference).name}@{self.digest}" if self.digest else self.image_id or self.reference

    @property
    def content(self) -> str:
        """Its digest or id."""
        return self.digest or self.image_id or ""


Pins = Mapping[str, Pin]
"""Reference → its pin."""


class _Mistakes(list[str]):
    """What is wrong in a file, in half sentences."""


def read_pins(text: str, *, where: str) -> dict[str, Pin]:
    """The pins of a lock file's text, sorted.

    Args:
        text: The file.
        where: Its path, for what is said of it.

    Raises:
        BadFile: It is no lock file; all its mistakes are named.
    """
    table = _table(text, where)
    wrong = _Mistakes()
    for key in table:
        if key not in ("version", "image"):
            wrong.append(f"{key!r} is not known here{nearest(key, ('version', 'image'))}")
    if table.get("version", _VERSION) != _VERSION:
        wrong.append(f"version {table['version']!r} is not {_VERSION}, the one this gpuconsole knows")
    images = table.get("image", {})
    pins: dict[str, Pin] = {}
    if not isinstance(images, dict):
        wrong.append('each image is written as [image."NAME:TAG"]')
        images = {}
    for name, row in images.items():
        pin = _pin(name, row, wrong)
        if pin is not None and pin.reference in pins:
            wrong.append(f"{pin.reference} is there twice")
        elif pin is not None:
            pins[pin.reference] = pin
    if wrong:
        raise BadFile(
            f"{where} has mistakes: {'; '.join(plain_line(each, limit=200) for each in wrong)}.",
            hint="Mend it, or remove the entry and pin the image again.",
        )
    return dict(sorted(pins.items()))


def _table(text: str, where: str) -> dict[str, Any]:
    if (mark := _CONFLICT.search(text)) is not None:
        line = text.count("\n", 0, mark.start()) + 1
        raise BadFile(
            f"{where} has the marks of a merge that was not finished (line {line}).",
            hint="Keep one digest for each image and remove the marks.",
        )
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadFile(f"{where} is not TOML: {plain_line(str(error))}.", hint="Mend it, or remove it.") from error


def _pin(name: str, row: object, wrong: _Mistakes) -> Pin | None:
    """One entry; None when it has mistakes, which are added to ``wrong``."""
    before = len(wrong)
    try:
        reference = str(parse(name))
    except ValueError as error:
        wrong.append(str(error))
        return None
    if not isinstance(row, dict):
        wrong.append(f'{reference} is written as [image."{reference}"], with its digest below')
        return None
    wrong.extend(f"{reference}: {key!r} is not known here{nearest(key, _KEYS)}" for key in row if key not in _KEYS)
    for key, value in row.items():
        if key in _CHECKS and not _CHECKS[key](value):
            wrong.append(f"{reference}: {key} is {_WORDS[key]}, not {value!r}")
    if ("digest" in row) == ("id" in row):
        wrong.append(f"{reference}: it needs either a digest or an id")
    written = parse(name).digest
    if written is not None and row.get("digest") != written:
        wrong.append(f"{reference}: its digest is another one than its name says")
    if len(wrong) > before:
        return None
    return Pin(reference, image_id=row.get("id"), **{key: row.get(key) for key in _KEYS if key != "id"})


def _is_bytes(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


_CHECKS: dict[str, Callable[[object], bool]] = {
    "digest": is_content_digest,
    "id": is_content_digest,
    "platform": is_platform,
    "size_bytes": _is_bytes,
    "download_bytes": _is_bytes,
    "pinned": lambda value: type(value) is date,
}
_WORDS = {
    "digest": "sha256: and 64 hexadecimal digits",
    "id": "sha256: and 64 hexadecimal digits",
    "platform": "like linux/amd64",
    "size_bytes": "a number of bytes",
    "download_bytes": "a number of bytes",
    "pinned": "a day like 2026-11-30",
}


def write_pins(text: str, pins: Pins, *, where: str) -> str:
    """The text of a lock file with exactly ``pins`` in it, each under its comments, sorted.

    Args:
        text: The file as it is; empty for a new one.
        pins: What is to be in it.
        where: Its path.

    Raises:
        BadFile: It is written in a way that cannot be edited without losing something.
    """
    head, blocks = _blocks(text or _HEAD)
    kept = {name: _edited(blocks.get(name, [_title(name)]), pin) for name, pin in sorted(pins.items())}
    parts = ["\n".join(head).strip("\n"), *("\n".join(lines).strip("\n") for lines in kept.values())]
    written = "\n\n".join(part for part in parts if part) + "\n"
    try:
        if read_pins(written, where=where) == dict(sorted(pins.items())):
            return written
    except BadFile:
        pass
    raise BadFile(
        f"{where} is written in a way that gpuconsole cannot edit.",
        hint='Give each image a part of its own that begins with [image."NAME:TAG"].',
    )


def _title(reference: str) -> str:
    return f'[image."{reference}"]'


def _blocks(text: str) -> tuple[list[str], dict[str, list[str]]]:
    """The lines before the first image, and of each image its comments, its title and what is below it."""
    head: list[str] = []
    blocks: dict[str, list[str]] = {}
    current = head
    for line in text.splitlines():
        name = _name_in(line)
        if name is None:
            current.append(line)
            continue
        comments: list[str] = []
        while current and current[-1].lstrip().startswith("#"):
            comments.insert(0, current.pop())
        current = blocks[name] = [*comments, line]
    return head, blocks


def _name_in(line: str) -> str | None:
    """The image whose part begins with this line."""
    if not line.lstrip().startswith("["):
        return None
    try:
        names = list(tomllib.loads(line)["image"])
        return str(parse(names[0]))
    except (tomllib.TOMLDecodeError, KeyError, IndexError, TypeError, ValueError):
        return None


_ASSIGNMENT = re.compile(r"^\s*(?P<key>[a-z_]+)\s*=\s*(?P<value>[^#]*?)\s*(?P<comment>#.*)?$")


def _edited(lines: list[str], pin: Pin) -> list[str]:
    """An image's part with the values of ``pin``, comments and what has not changed as they were."""
    values = dict(_values(pin))
    done: list[tuple[str, str]] = []
    for line in lines:
        match = _ASSIGNMENT.match(line)
        if match is None:
            done.append(("", line))
            continue
        key, value = match["key"], values.pop(match["key"], None)
        if value is not None:
            comment = f"  {match['comment']}" if match["comment"] else ""
            same = match["value"].replace("'", '"') == value
            done.append((key, line if same else f"{key} = {value}{comment}"))
    while done and not done[-1][1].strip():
        done.pop()
    for key, value in values.items():
        done.insert(_place(key, [there for there, _ in done]), (key, f"{key} = {value}"))
    return [line for _, line in done]


def _place(key: str, there: list[str]) -> int:
    """Where a new key stands, so that everybody's file has the same order: behind those before it, else at the end."""
    earlier = set(_KEYS[: _KEYS.index(key)])
    later = [position for position, each in enumerate(there) if each in _KEYS and each not in earlier]
    return min(later, default=len(there))


def _values(pin: Pin) -> list[tuple[str, str]]:
    """Keys and TOML values, in the order of a new entry."""
    pairs: list[tuple[str, object]] = [(key, pin.image_id if key == "id" else getattr(pin, key)) for key in _KEYS]
    return [
        (key, f'"{value}"' if isinstance(value, str) else value.isoformat() if isinstance(value, date) else str(value))
        for key, value in pairs
        if value is not None
    ]


def pin_of(text: str, pins: Pins) -> Pin | None:
    """The pin of a reference, however it is written; None for an id, for what is no reference, and without one."""
    if is_image_id(text):
        return None
    try:
        return pins.get(str(parse(text)))
    except ValueError:
        return None
