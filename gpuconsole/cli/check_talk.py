"""What ``check`` says: progress on stderr while it runs, the results and the verdict on stdout."""

from __future__ import annotations

import sys

import click

from gpuconsole.cli.glyphs import Glyphs, glyphs_of_stdout
from gpuconsole.cli.launch_talk import LaunchTalk
from gpuconsole.cli.output import data, json_document, paint, paragraph, talk, terminal_width
from gpuconsole.cli.tables import wrapped
from gpuconsole.core.text import shorten
from gpuconsole.probes.records import CheckReport, CheckResult, CheckStatus, Progress, Record, Waiting
from gpuconsole.services.launching import LaunchStep

_GLYPHS = {CheckStatus.OK: "✓", CheckStatus.WARN: "!", CheckStatus.FAIL: "✗", CheckStatus.SKIP: "–"}
_PLAIN_GLYPHS = {CheckStatus.OK: "+", CheckStatus.WARN: "!", CheckStatus.FAIL: "x", CheckStatus.SKIP: "-"}
_COLOURS = {CheckStatus.OK: "green", CheckStatus.WARN: "yellow", CheckStatus.FAIL: "red", CheckStatus.SKIP: ""}
_NAME_WIDTH = 20
_MOST_NOTES = 5
_INDENT = 2 + 5 + _NAME_WIDTH + 1
"""Glyph, status and name with the blanks after them."""
_SIDE_BY_SIDE = 56
"""Columns from which a check is told beside its name."""


class CheckTalk:
    """Tells how a check goes on, and how it came out."""

    def __init__(self) -> None:
        self._launch = LaunchTalk(as_json=False)
        self._live = sys.stderr.isatty()
        self._shown = False

    def step(self, step: LaunchStep) -> None:
        """Tell of a step of the launch before the check."""
        self._launch.step(step)

    def record(self, record: Record) -> None:
        """Show the step a check is at, on one line of the terminal that is written again and again."""
        if isinstance(record, Waiting):
            talk(f"{record.text[:1].upper()}{record.text[1:]}.")
        elif self._live and isinstance(record, Progress):
            text = f"[{record.step}/{record.of}] {record.id.removeprefix('check.')}: {record.text}"
            click.echo(f"\r\x1b[K{shorten(text, terminal_width(80) - 1)}", nl=False, err=True)
            self._shown = True

    def finish(self) -> None:
        """Take the line of progress away."""
        if self._shown:
            click.echo("\r\x1b[K", nl=False, err=True)
            self._shown = False

    def interrupted(self) -> None:
        """Tell that a signal was seen."""
        self.finish()
        talk("Interrupted: ending the check where it runs. Again to leave at once.")

    def result(self, report: CheckReport, *, as_json: bool) -> None:
        """Print the report."""
        if as_json:
            json_document(
                "check",
                end=report.end,
                environment=report.environment,
                checks=report.checks,
                verdict=report.verdict,
                notes=report.notes,
                seconds=report.seconds,
            )
            return
        glyphs = glyphs_of_stdout()
        for check in report.checks:
            _print(check, glyphs)
            if check.status is CheckStatus.FAIL:
                _print_notes([note.text for note in report.notes if note.id == check.id], glyphs)
        shown = _GLYPHS if glyphs.unicode else _PLAIN_GLYPHS
        verdict = report.verdict
        data("")
        paragraph(glyphs.text(f"{shown[verdict.status]} {verdict.sentence}"), _COLOURS[verdict.status])


def _width() -> int:
    return terminal_width(100)


def _indent() -> str:
    """Where what is said of a check begins: beside its name, or below it where there is no room for both."""
    return " " * _INDENT if _width() >= _SIDE_BY_SIDE else "  "


def _print_notes(lines: list[str], glyphs: Glyphs) -> None:
    """The last of what was written while a check failed."""
    indent = _indent()
    for line in lines[-_MOST_NOTES:]:
        data(indent + glyphs.text(shorten(f"| {line}", max(8, _width() - len(indent)))))


def _print(check: CheckResult, glyphs: Glyphs) -> None:
    """One check: what was seen, and below it what to do."""
    glyph = (_GLYPHS if glyphs.unicode else _PLAIN_GLYPHS)[check.status]
    head = f"{glyph} {check.status.value:<5}{check.id.removeprefix('check.'):<{_NAME_WIDTH}} "
    indent = _indent()
    lines = wrapped(check.why, _width(), first=indent, rest=indent, whole_words=True)
    if check.fix and check.status is not CheckStatus.OK:
        lines += wrapped(check.fix, _width(), first=f"{indent}→ ", rest=f"{indent}  ", whole_words=True)
    if len(indent) == len(head):
        data(paint(head, _COLOURS[check.status]) + glyphs.text(lines.pop(0).removeprefix(indent)))
    else:
        paragraph(head, _COLOURS[check.status])
    for line in lines:
        data(glyphs.text(line))
