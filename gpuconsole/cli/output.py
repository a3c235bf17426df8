"""How the command line writes: data on stdout, talk on stderr, tables that fit, questions that name their object."""

from __future__ import annotations

import os
import sys

from gpuconsole.cli.glyphs import styled, writes_utf8
from gpuconsole.core.errors import ConsoleError, Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def data(text: str) -> None:
    """Write a result to stdout."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def result(text: str) -> None:
    """Write to stdout what became of a deed. A reader that left neither ends the deed nor changes its exit code."""
    try:
        data(text)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def talk(text: str) -> None:
    """Write to the person, on stderr."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def json_document(name: str, **parts: object) -> None:
    """Write ``{"schema": "gpuconsole.<name>/1", …}`` to stdout."""
    from gpuconsole.core.document import body_of

    json_data(body_of(name, **parts))


def json_data(body: Mapping[str, Any], *, indent: int | None = 2) -> None:
    """Write JSON to stdout; where that does not take every character, with escapes, so that none is lost."""
    from gpuconsole.core.document import text_of

    data(text_of(body, indent=indent, ascii_only=not writes_utf8()))


def json_event(body: Mapping[str, Any]) -> None:
    """Write a line of JSON about a deed that goes on whether or not somebody reads."""
    from gpuconsole.core.document import text_of

    result(text_of(body, indent=None, ascii_only=not writes_utf8()))


def failure(error: ConsoleError, *, detail: bool = False) -> None:
    """Write what happened and what to do, on stderr."""
    talk(f"gpuconsole: {error.message}")
    if error.hint:
        talk(f"  → {error.hint}")
    if detail and error.detail:
        talk("\n".join(f"  | {line}" for line in error.detail.splitlines()))


def terminal_width(default: int = 100) -> int:
    """Columns of the terminal stdout is; ``default`` when it is none, or does not say."""
    if not sys.stdout.isatty():
        return default
    import shutil

    return shutil.get_terminal_size((default, 24)).columns


def paragraph(text: str, colour: str = "") -> None:
    """Write a sentence to stdout: wrapped on a terminal, one line elsewhere."""
    from gpuconsole.cli.tables import wrapped

    for line in wrapped(text, terminal_width(1 << 20), rest="  ", whole_words=True):
        data(paint(line, colour))


def paint(text: str, colour: str) -> str:
    """``text`` in a terminal colour if stdout is a terminal and NO_COLOR is unset; never the only sign of a thing."""
    if not colour or not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return text
    return styled(text, colour)


def confirm(question: str, *, assume_yes: bool) -> None:
    """Ask before something is destroyed; the default answer is no.

    Args:
        question: Names the object: ``"Remove container train?"``.
        assume_yes: ``--yes`` was given.

    Raises:
        Refused: The answer is no, or nobody is there to answer.
    """
    if assume_yes:
        return
    if not sys.stdin.isatty():
        raise Refused(f"Not done without an answer to: {question}", hint="Pass --yes to do it without being asked.")
    import click

    if not click.confirm(question, default=False, err=True):
        raise Refused("Nothing was done.", hint="Answer y to go on.")
