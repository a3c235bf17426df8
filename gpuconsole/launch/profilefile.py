"""``gpuconsole.toml`` read: its profiles as they stand there, and every mistake in them with its line."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpuconsole.core.config import nearest
from gpuconsole.core.errors import BadFile
from gpuconsole.core.text import plain_line
from gpuconsole.launch.tomltext import line_of

NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,59}$"
"""Of a profile: without what an image reference has, so that the two are told apart at a look."""
FILE_NAME = "gpuconsole.toml"
MOST_BYTES = 2**20
_HINT = "Correct it; 'gpuconsole profiles schema' has every field, and 'gpuconsole profiles' looks again."
_TYPES = {
    "string": "a text in quotes", "integer": "a whole number", "number": "a number", "boolean": "true or false",
    "array": "a list", "object": "a table",
}  # fmt: skip
_OTHERS_WORDS = {
    "publish": "ports", "p": "ports", "expose": "ports", "e": "env", "environment": "env", "v": "volumes",
    "volume": "volumes", "bind": "volumes", "binds": "volumes", "mount": "mounts", "w": "workdir",
    "working_dir": "workdir", "u": "user", "m": "memory", "mem": "memory", "mem_limit": "memory", "l": "labels",
    "net": "network", "network_mode": "network", "i": "tty", "t": "tty", "interactive": "tty", "stdin_open": "tty",
    "auto_remove": "rm", "add_host": "extra_hosts", "hosts": "extra_hosts", "cmd": "command", "args": "command",
    "runtime": "gpu_path", "container_name": "name", "shm": "shm_size", "pull_policy": "pull", "inherits": "extends",
}  # fmt: skip
"""What docker's command line and compose files call a field, where ours is called otherwise."""


def is_profile_name(word: str) -> bool:
    """Whether a word can be a profile's name; one with ``/``, ``:``, ``.`` or ``@`` is an image reference only."""
    return re.fullmatch(NAME_PATTERN, word) is not None


@dataclass(frozen=True, slots=True)
class Mistake:
    """Something in a file that cannot be."""

    profile: str | None
    """None when it is of the file as a whole."""
    field: str
    words: str
    """What is wrong, without the field's name and without a full stop."""
    line: int | None = None

    def __str__(self) -> str:
        where = f"line {self.line}, " if self.line else ""
        name = ".".join(part for part in (self.profile, self.field) if part)
        return f"{where}{name}: {self.words}" if name else f"{where}{self.words}"


@dataclass(frozen=True, slots=True)
class ProfileSource:
    """A file with profiles."""

    path: Path
    shown: str
    """The path for a person: from the folder one is in where that is shorter."""
    of_project: bool
    """It came with a project, so it may have been written by anybody; else it is the user's own."""
    text: str = field(default="", repr=False)
    profiles: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Name → the fields that were written, well-formed ones only."""
    mistakes: tuple[Mistake, ...] = ()

    @property
    def folder(self) -> Path:
        """What relative paths in it start from."""
        return self.path.parent

    def line(self, profile: str, field: str = "") -> int | None:
        """The line of a field, or of the profile."""
        return line_of(self.text, ".".join(part for part in ("profiles", profile, field) if part))

    def mistakes_of(self, profile: str) -> tuple[Mistake, ...]:
        """Those of one profile, and of the file as a whole."""
        return tuple(each for each in self.mistakes if each.profile in (None, profile))


class BadProfile(BadFile):
    """A profile has mistakes; ``mistakes`` names every one of them."""

    def __init__(self, source: ProfileSource, mistakes: tuple[Mistake, ...]) -> None:
        self.mistakes = mistakes
        told = [str(each) for each in mistakes]
        message = "\n  ".join([f"{source.shown} has {len(told)} mistakes:", *told])
        super().__init__(f"{source.shown} has a mistake in {told[0]}." if len(told) == 1 else message, hint=_HINT)


def read_profiles(path: Path, text: str, *, shown: str, of_project: bool) -> ProfileSource:
    """The file's profiles and its mistakes.

    Raises:
        BadFile: It is not TOML.
    """
    try:
        parsed = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadFile(
            f"{shown} is not TOML: {plain_line(str(error), limit=200)}.",
            hint='A text stands in quotes, each field on a line of its own: image = "pytorch/pytorch:…".',
        ) from error
    profiles, mistakes = _checked(parsed, text)
    return ProfileSource(path, shown, of_project, text, profiles, tuple(mistakes))


def refuse_mistakes(source: ProfileSource, mistakes: Iterable[Mistake]) -> None:
    """Refuse to go on with mistakes in a file.

    Raises:
        BadProfile: There are some; all are named.
    """
    found = tuple(sorted(mistakes, key=lambda each: each.line or 0))
    if found:
        raise BadProfile(source, found)


def _checked(parsed: Mapping[str, Any], text: str) -> tuple[dict[str, Mapping[str, Any]], list[Mistake]]:
    from pydantic import ValidationError

    from gpuconsole.launch.profilemodel import ProfileFile

    try:
        model = ProfileFile.model_validate(parsed)
    except ValidationError as error:
        wrong = dict.fromkeys(tuple(str(part) for part in each["loc"]) for each in error.errors())
        kinds = {tuple(str(part) for part in each["loc"]): each["type"] for each in error.errors()}
        mistakes: dict[tuple[str | None, str], Mistake] = {}
        for names in wrong:
            found = _mistake(names, kinds[names], parsed, text)
            mistakes.setdefault((found.profile, found.field), found)
        model = ProfileFile.model_validate({"profiles": _right_ones(parsed, mistakes.values())})
        return _written_fields(model), list(mistakes.values())
    return _written_fields(model), []


def _written_fields(model: Any) -> dict[str, Mapping[str, Any]]:
    return {name: profile.model_dump(exclude_unset=True) for name, profile in model.profiles.items()}


def _right_ones(parsed: Mapping[str, Any], mistakes: Iterable[Mistake]) -> dict[str, Any]:
    wrong = {each.profile for each in mistakes}
    profiles = parsed.get("profiles")
    if not isinstance(profiles, dict):
        return {}
    return {name: profile for name, profile in profiles.items() if plain_line(name, limit=60) not in wrong}


def _mistake(names: tuple[str, ...], kind: str, parsed: Mapping[str, Any], text: str) -> Mistake:
    """One of pydantic's errors in our words."""
    if names[0] != "profiles":
        known = f"there is no such table{nearest(names[0], ['profiles'])}"
        return Mistake(None, plain_line(names[0], limit=60), known, line_of(text, names[0]))
    if len(names) == 1:
        return Mistake(None, "profiles", "must be a table of tables: [profiles.NAME]", line_of(text, "profiles"))
    profile = plain_line(names[1], limit=60)
    if len(names) == 2 or names[2] == "[key]":
        words = "must be a table: [profiles.NAME]"
        if names[-1] == "[key]":
            words = "cannot be a profile's name; use letters, digits, _ - and begin with a letter or digit"
        return Mistake(profile, "", words, line_of(text, f"profiles.{names[1]}"))
    field_name = plain_line(names[2], limit=60)
    line = line_of(text, ".".join(("profiles", *names[1:3])))
    return Mistake(profile, field_name, _words(names, kind, parsed), line)


def _words(names: tuple[str, ...], kind: str, parsed: Mapping[str, Any]) -> str:
    from gpuconsole.launch.profilemodel import Profile

    known = Profile.model_json_schema()["properties"]
    if kind == "extra_forbidden" and len(names) == 3:
        return f"there is no such field{_meant_field(names[2], known)}"
    value = parsed["profiles"][names[1]].get(names[2])
    if isinstance(value, str) and not value:
        return "is empty; leave it out instead"
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    if any(isinstance(item, str) and not item for item in items):
        return "a text in it is empty"
    shown = "" if isinstance(value, dict | list) else f", and is {plain_line(repr(value), limit=60)}"
    near = nearest(value, _choices(known[names[2]])) if isinstance(value, str) and _choices(known[names[2]]) else ""
    return f"must be {_wanted(known[names[2]])}{shown}{near if 'did you mean' in near else ''}"


def _meant_field(word: str, known: Iterable[str]) -> str:
    """Which field was meant: docker's word for one, else the one that is written most alike."""
    lower = word.strip("-").lower().replace("-", "_")
    meant = _OTHERS_WORDS.get(lower)
    return f"; did you mean {meant!r}?" if meant else nearest(lower, known)


def _choices(schema: Mapping[str, Any]) -> list[str]:
    options = [schema, *schema.get("anyOf", ())]
    return [str(word) for option in options for word in option.get("enum", ())]


def _wanted(schema: Mapping[str, Any]) -> str:
    """What a field must be, in words."""
    if choices := _choices(schema):
        return f"one of {', '.join(choices)}"
    words: list[str] = []
    for option in schema.get("anyOf", [schema]):
        word = _TYPES.get(option.get("type", ""))
        if word and option.get("type") in ("array", "object"):
            inner = option.get("items") or option.get("additionalProperties") or {}
            each = {_TYPES.get(one.get("type", ""), "") for one in inner.get("anyOf", [inner])} - {""}
            plural = " and ".join(sorted(one.removeprefix("a ").removesuffix(" in quotes") + "s" for one in each))
            word = f"{word} of {plural}" if plural and "true or falses" not in plural else word
        if word:
            words.append(word)
    return " or ".join(words)
