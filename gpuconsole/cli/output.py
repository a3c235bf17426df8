"""How the command line writes: data on stdout, talk on stderr, tables that fit, questions that name their object."""

from __future__ import annotations

import os
import shutil
import sys
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import click

from gpuconsole.cli.glyphs import writes_utf8
from gpuconsole.core.document import body_of, text_of
from gpuconsole.core.errors import ConsoleError, Refused


def data(text: str) -> None:
    """Write a result to stdout."""
    click.echo(text)


def talk(text: str) -> None:
    """Write to the person, on stderr."""
    click.echo(text, err=True)


def json_document(name: str, **parts: object) -> None:
    """Write ``{"schema": "gpuconsole.<name>/1", …}`` to stdout."""
    json_data(body_of(name, **parts))


def json_data(body: Mapping[str, Any], *, indent: int | None = 2) -> None:
    """Write JSON to stdout; where that does not take every character, with escapes, so that none is lost."""
    data(text_of(body, indent=indent, ascii_only=not writes_utf8()))


def failure(error: ConsoleError, *, detail: bool = False) -> None:
    """Write what happened and what to do, on stderr."""
    talk(f"gpuconsole: {error.message}")
    if error.hint:
        talk(f"  → {error.hint}")
    if detail and error.detail:
        talk("\n".join(f"  | {line}" for line in error.detail.splitlines()))


def terminal_width(default: int = 100) -> int:
    """Columns of the terminal stdout is; ``default`` when it is none."""
    return shutil.get_terminal_size((default, 24)).columns if sys.stdout.isatty() else default


def paint(text: str, colour: str) -> str:
    """``text`` in a terminal colour if stdout is a terminal and NO_COLOR is unset; never the only sign of a thing."""
    if not colour or not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return text
    return click.style(text, fg=colour)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    title: str
    align: Literal["left", "right"] = "left"
    flexible: bool = False
    """It gives way when the terminal is narrow, down to eight characters."""


def width_of(text: str) -> int:
    """Terminal cells of ``text``."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


def _fit(text: str, width: int, align: str) -> str:
    if width_of(text) > width:
        kept = ""
        for char in text:
            if width_of(kept + char) > width - 1:
                break
            kept += char
        text = kept + "…"
    padding = " " * (width - width_of(text))
    return padding + text if align == "right" else text + padding


def table(columns: Sequence[Column], rows: Sequence[Sequence[str]], *, width: int | None = None) -> str:
    """Rows under titles, two spaces apart, cut to the terminal's width where a column allows it.

    When stdout is no terminal nothing is cut, so that scripts get whole names.
    """
    widths = [
        max([width_of(column.title), *(width_of(row[i]) for row in rows)], default=0)
        for i, column in enumerate(columns)
    ]
    if width is None and sys.stdout.isatty():
        width = shutil.get_terminal_size().columns
    if width is not None:
        _narrow(widths, columns, sum(widths) + 2 * (len(widths) - 1) - width)
    lines = []
    for cells in ([column.title for column in columns], *rows):
        line = "  ".join(_fit(cell, widths[i], columns[i].align) for i, cell in enumerate(cells))
        lines.append(line.rstrip())
    return "\n".join(lines)


def _narrow(widths: list[int], columns: Sequence[Column], excess: int) -> None:
    """Take ``excess`` cells from the flexible columns, the widest first."""
    floor = 8
    while excess > 0:
        candidates = [i for i, column in enumerate(columns) if column.flexible and widths[i] > floor]
        if not candidates:
            return
        widest = max(candidates, key=lambda i: widths[i])
        widths[widest] -= 1
        excess -= 1


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
    if not click.confirm(question, default=False, err=True):
        raise Refused("Nothing was done.", hint="Answer y to go on.")
