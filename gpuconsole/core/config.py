"""The user's configuration, ``config.toml``: read as a whole, every mistake named at once with its line.

::

    theme = "light"          # dark, light, contrast, ansi
    refresh = 2.0            # seconds between looks, 0.5 to 10
    ascii = false            # draw with ASCII only
    bell = true              # ring the terminal's bell

    [keys]
    container.stop = "X"     # an action and its key
    app.quit = ["q", "f10"]  # or keys

    [alarms]
    from = "critical"        # what is told: "critical", or "risk" too; a failure always is
    bell = false             # ring the bell for a trend too; for a failure it rings
    command = ["notify-send", "gpuconsole"]  # run once for an alarm, without a shell, the alarm's text as last argument
"""

from __future__ import annotations

import difflib
import errno
import os
import re
import stat
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from gpuconsole.core.errors import BadFile
from gpuconsole.core.paths import config_dir
from gpuconsole.core.text import plain_line

_WANTED = {
    "keys": "a table of actions and their keys",
    "theme": "the name of a theme",
    "refresh": "seconds, from 0.5 to 10",
    "ascii": "true or false",
    "bell": "true or false",
    "alarms": "a table of what rings and how",
}
"""What may stand in the file, and what each must be."""
_WANTED_OF_ALARMS = {
    "from": '"critical" or "risk"',
    "bell": "true or false",
    "command": "a list of a program and its arguments, each in quotes",
}
_WANTED_KEY = "a key in quotes, or a list of keys"
_MOST_BYTES = 1_000_000
_HINT = "Correct the file, or move it away to start with what is usual."
_TABLE = re.compile(r"^\s*\[\s*([^\[\]]+?)\s*\]")
_NAME = re.compile(r"""^\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=""")


@dataclass(frozen=True, slots=True)
class Config:
    """What the user wants otherwise; None leaves it as it is."""

    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Action → its keys, as they were written."""
    theme: str | None = None
    refresh_s: float | None = None
    """Seconds between looks."""
    ascii: bool | None = None
    """None asks the terminal."""
    bell: bool = True
    alarms_from: str = "critical"
    """``critical`` or ``risk``: the state of a memory from which on it is told."""
    alarms_bell: bool = False
    """The bell rings for a trend too: what may be withdrawn, so that it is quiet unless somebody wants it."""
    alarm_command: tuple[str, ...] = ()
    """Program and arguments that are run for an alarm; none for nothing."""


@dataclass(frozen=True, slots=True)
class Mistake:
    """Something in the file that cannot be."""

    field: str
    """``theme``, ``keys.container.stop``."""
    words: str


def config_path() -> Path:
    """The file, whether it is there or not."""
    return config_dir() / "config.toml"


def read_config(path: Path | None = None, *, check: Callable[[Config], Iterable[Mistake]] = lambda _: ()) -> Config:
    """The user's configuration; the usual one when there is no file.

    Args:
        path: The file; None takes :func:`config_path`.
        check: Finds what is wrong in values that are well-formed: actions and keys that do not exist.

    Raises:
        BadFile: It cannot be read, or holds mistakes; all are named.
    """
    path = path or config_path()
    try:
        # Of a pipe there is nobody who writes, perhaps: opening it must not wait.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except FileNotFoundError:
        return Config()
    except OSError as error:
        raise _unreadable(path, error) from error
    import tomllib  # only when there is a file: it takes a hundredth of a start

    try:
        with open(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise OSError(errno.EINVAL, "it is a pipe or a device, and no file")
            text = file.read(_MOST_BYTES).decode()
        parsed = tomllib.loads(text)
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(path, error) from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadFile(
            f"The configuration {_name(path)} is not TOML: {plain_line(str(error), limit=200)}.",
            hint='A text stands in quotes, and each setting on a line of its own: theme = "light".',
        ) from error
    if isinstance(parsed.get("keys"), dict):
        parsed["keys"] = _flat(parsed["keys"])
    config, mistakes = _checked(parsed)
    mistakes += [each for each in check(config) if each.field not in {known.field for known in mistakes}]
    if mistakes:
        raise _bad(path, text, mistakes)
    return config


def _unreadable(path: Path, error: OSError | UnicodeDecodeError) -> BadFile:
    why = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
    return BadFile(f"The configuration {_name(path)} cannot be read: {why}.", hint=_HINT)


def nearest(word: str, known: Iterable[str]) -> str:
    """``; did you mean 'light'?``, or the words to choose from when nothing is near and they are few."""
    names = list(known)
    near = difflib.get_close_matches(word, names, n=1)
    if near:
        return f"; did you mean {near[0]!r}?"
    return f"; there is {', '.join(names)}" if 0 < len(names) <= 8 else ""


def _flat(table: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """TOML reads ``container.stop = "X"`` as tables in tables."""
    found: dict[str, Any] = {}
    for name, value in table.items():
        if isinstance(value, dict):
            found |= _flat(value, f"{before}{name}.")
        else:
            found[f"{before}{name}"] = value
    return found


def _checked(parsed: Mapping[str, Any]) -> tuple[Config, list[Mistake]]:
    """What is well-formed in the file, and what is not."""
    from pydantic import BaseModel, ConfigDict, Field, ValidationError

    class Alarms(BaseModel):
        model_config = ConfigDict(extra="forbid", strict=True)

        least: Literal["critical", "risk"] = Field(default="critical", alias="from")
        bell: bool = False
        command: list[Annotated[str, Field(pattern=r"\A[^\x00]+\z")]] = []

    class File(BaseModel):
        model_config = ConfigDict(extra="forbid", strict=True)

        keys: dict[str, str | list[str]] = {}
        theme: str | None = None
        refresh: float | None = Field(default=None, ge=0.5, le=10, allow_inf_nan=False)
        ascii: bool | None = None
        bell: bool = True
        alarms: Alarms = Alarms()

    mistakes: dict[str, Mistake] = {}
    try:
        file = File.model_validate(parsed)
    except ValidationError as error:
        wrong = {tuple(str(part) for part in each["loc"][:2]) for each in error.errors()}
        for names in sorted(wrong):
            mistake = _mistake(names, parsed)
            mistakes[mistake.field] = mistake
        file = File.model_validate(_without(parsed, wrong))
    keys = {name: (each,) if isinstance(each, str) else tuple(each) for name, each in file.keys.items()}
    config = Config(
        keys=keys, theme=file.theme, refresh_s=file.refresh, ascii=file.ascii, bell=file.bell,
        alarms_from=file.alarms.least, alarms_bell=file.alarms.bell, alarm_command=tuple(file.alarms.command),
    )  # fmt: skip
    return config, list(mistakes.values())


def _without(parsed: Mapping[str, Any], wrong: Iterable[tuple[str, ...]]) -> dict[str, Any]:
    rest = {name: dict(value) if isinstance(value, dict) else value for name, value in parsed.items()}
    for names in wrong:
        if len(names) > 1 and isinstance(rest.get(names[0]), dict):
            rest[names[0]].pop(names[1], None)
        else:
            rest.pop(names[0], None)
    return rest


def _mistake(names: tuple[str, ...], parsed: Mapping[str, Any]) -> Mistake:
    name = plain_line(names[0], limit=60)
    if names[0] not in _WANTED:
        return Mistake(name, f"there is no such setting{nearest(name, _WANTED)}")
    value = parsed[name]
    if name == "keys" and len(names) > 1:
        return Mistake(f"keys.{plain_line(names[1], limit=60)}", f"must be {_WANTED_KEY}{_is(value[names[1]])}")
    if name == "alarms" and len(names) > 1:
        return _mistake_of_alarms(names[1], value[names[1]])
    return Mistake(name, f"must be {_WANTED[name]}{_is(value)}")


def _mistake_of_alarms(written: str, value: object) -> Mistake:
    name = plain_line(written, limit=60)
    if written not in _WANTED_OF_ALARMS:
        return Mistake(f"alarms.{name}", f"there is no such setting{nearest(name, _WANTED_OF_ALARMS)}")
    wanted = f"must be {_WANTED_OF_ALARMS[written]}"
    if written == "command":  # what is in it may be a secret
        return Mistake("alarms.command", f'{wanted}: ["notify-send", "gpuconsole"]')
    near = nearest(value, ("critical", "risk")) if written == "from" and isinstance(value, str) else ""
    return Mistake(f"alarms.{written}", f"{wanted}{_is(value)}{near if 'mean' in near else ''}")


def _is(value: object) -> str:
    if isinstance(value, dict):
        return ""
    said = str(value).lower() if isinstance(value, bool) else repr(value)  # as TOML writes it
    return f", and is {plain_line(said, limit=60)}"


def _bad(path: Path, text: str, mistakes: Iterable[Mistake]) -> BadFile:
    lines = {each.field: _line_of(text, each.field) for each in mistakes}
    told = [(lines[each.field], f"{each.field}: {each.words}") for each in mistakes]
    told.sort(key=lambda item: item[0] or 0)
    words = [f"line {line}, {said}" if line else said for line, said in told]
    if len(words) == 1:
        end = "" if words[0].endswith("?") else "."
        return BadFile(f"The configuration {_name(path)} has a mistake in {words[0]}{end}", hint=_HINT)
    listed = "".join(f"\n  {each}" for each in words)
    return BadFile(f"The configuration {_name(path)} has {len(words)} mistakes:{listed}", hint=_HINT)


def _line_of(text: str, name: str) -> int | None:
    """Number of the line that sets ``name``, or begins the table it names."""
    table = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if head := _TABLE.match(line):
            table = _bare(head[1])
            if table == name:
                return number
        elif (found := _NAME.match(line)) and _bare(f"{table}.{found[1]}" if table else found[1]) == name:
            return number
    return None


def _bare(name: str) -> str:
    return re.sub(r"[\"'\s]", "", name)


def _name(path: Path) -> str:
    return plain_line(str(path))
