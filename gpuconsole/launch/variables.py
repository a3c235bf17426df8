"""Environment variables for a container: as ``-e`` gives them, and lines of files.

A :class:`ValueError` holds a sentence that follows the option's name and a colon, as in ``fields``.
"""

from __future__ import annotations

from collections.abc import Mapping

from gpuconsole.core.text import plain_line
from gpuconsole.launch.fields import BadContent, MissingPath, not_text, shown
from gpuconsole.launch.spec import LaunchSpec, Variable, VariableSource
from gpuconsole.launch.work import TOKEN_NAME, TOKEN_VARIABLE, Kind

_LARGEST_FILE = 4 * 2**20
"""Bytes; what a process can be given in its environment is less."""

_READ_BY_PATH = {
    "netrc": "NETRC",
    "HF_TOKEN": "HF_TOKEN_PATH",
    "GOOGLE_APPLICATION_CREDENTIALS": "GOOGLE_APPLICATION_CREDENTIALS",
    "AWS_SHARED_CREDENTIALS_FILE": "AWS_SHARED_CREDENTIALS_FILE",
}
"""Secret → the variable that tells programs its file: W&B, MLflow and requests read NETRC."""


def secret_variables(spec: LaunchSpec) -> tuple[tuple[str, str], ...]:
    """Where the secret files are, for programs that can be told: ``NAME_FILE``, and the names some of them have."""
    found: dict[str, str] = {}
    for secret in spec.secrets:
        name = _READ_BY_PATH.get(secret.name)
        if name is None:
            name = f"{''.join(char if char.isalnum() else '_' for char in secret.name)}_FILE".upper()
        found[name] = secret.target
    if spec.work.kind is Kind.JUPYTER and all(secret.name != TOKEN_NAME for secret in spec.secrets):
        found[TOKEN_VARIABLE] = f"/run/secrets/{TOKEN_NAME}"
    return tuple(found.items())


def parse_variable(text: str, environment: Mapping[str, str]) -> Variable:
    """``NAME=VALUE``, or ``NAME`` with the value that ``environment`` has."""
    name, separator, value = text.partition("=")
    if reason := _wrong_name(name):
        raise ValueError(f"{reason}; write NAME=VALUE or NAME")
    if separator:
        return Variable(name, value)
    if name not in environment:
        raise ValueError(f"{shown(name)} is not set in this shell; export it, or write NAME=VALUE")
    if reason := not_text(environment[name]):
        raise ValueError(f"{shown(name)} of this shell has {reason} in it, which the engine does not take")
    return Variable(name, environment[name], VariableSource.SHELL)


def _wrong_name(name: str) -> str | None:
    """Why ``name`` can be no variable's; None when it can."""
    if not name.strip():
        return "a variable's name is missing"
    if any(char.isspace() for char in name):
        return f"{name[:40]!r} is no variable's name: it has white space in it"
    if plain_line(name) != name:
        return f"{name[:40]!r} is no variable's name: it has characters in it that no screen shows"
    return None


def read_env_file(path: str) -> tuple[tuple[str, str | None], ...]:
    """The lines of an environment file as docker reads them: no quotes, no escapes; None for a bare ``NAME``.

    Raises:
        MissingPath: It is not there.
        BadContent: It cannot be read, or a line of it is none.
    """
    entries: list[tuple[str, str | None]] = []
    for number, raw in enumerate(_text(path).split("\n"), start=1):
        line = raw.rstrip("\r").lstrip()
        if not line or line.startswith("#"):
            continue
        if "\0" in line:
            raise BadContent(f"{shown(path)}, line {number}: it has a NUL byte, which no variable can hold")
        name, separator, value = line.partition("=")
        if reason := _wrong_name(name):
            raise BadContent(f"{shown(path)}, line {number}: {reason}")
        entries.append((name, value if separator else None))
    return tuple(entries)


def _text(path: str) -> str:
    try:
        with open(path, "rb") as file:
            content = file.read(_LARGEST_FILE + 1)
    except FileNotFoundError as error:
        raise MissingPath(f"{shown(path)} is not there") from error
    except OSError as error:
        raise BadContent(f"{shown(path)} cannot be read ({error.strerror})") from error
    if len(content) > _LARGEST_FILE:
        raise BadContent(f"{shown(path)} is above 4 MiB, more than an environment can hold")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadContent(f"{shown(path)} is not UTF-8 text") from error
