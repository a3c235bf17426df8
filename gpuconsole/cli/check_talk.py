"""What ``check`` says: progress on stderr while it runs, the results and the verdict on stdout."""

from __future__ import annotations

import sys
import textwrap

import click

from gpuconsole.cli.glyphs import Glyphs, glyphs_of_stdout
from gpuconsole.cli.launch_talk import LaunchTalk
from gpuconsole.cli.output import data, json_document, paint, talk, terminal_width
from gpuconsole.core.text import shorten
from gpuconsole.probes.records import CheckReport, CheckResult, CheckStatus, Progress, Record
from gpuconsole.services.launching import LaunchStep

_GLYPHS = {CheckStatus.OK: "✓", CheckStatus.WARN: "!", CheckStatus.FAIL: "✗", CheckStatus.SKIP: "–"}
_PLAIN_GLYPHS = {CheckStatus.OK: "+", CheckStatus.WARN: "!", CheckStatus.FAIL: "x", CheckStatus.SKIP: "-"}
_COLOURS = {CheckStatus.OK: "green", CheckStatus.WARN: "yellow", CheckStatus.FAIL: "red", CheckStatus.SKIP: ""}
_NAME_WIDTH = 20
_MOST_NOTES = 5
_INDENT = 2 + 5 + _NAME_WIDTH + 1
"""Glyph, status and name with the blanks after them."""


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
        if self._live and isinstance(record, Progress):
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
        line = glyphs.text(f"{shown[verdict.status]} {verdict.sentence}")
        data("")
        data(paint(line, _COLOURS[verdict.status]))


def _print_notes(lines: list[str], glyphs: Glyphs) -> None:
    """The last of what was written while a check failed."""
    for line in lines[-_MOST_NOTES:]:
        data(" " * _INDENT + glyphs.text(shorten(f"| {line}", max(40, terminal_width(100)) - _INDENT)))


def _print(check: CheckResult, glyphs: Glyphs) -> None:
    """One check: what was seen, and below it what to do."""
    glyph = (_GLYPHS if glyphs.unicode else _PLAIN_GLYPHS)[check.status]
    width = max(40, terminal_width(100))
    head = f"{glyph} {check.status.value:<5}{check.id.removeprefix('check.'):<{_NAME_WIDTH}} "
    lines = textwrap.wrap(check.why, max(20, width - _INDENT), break_long_words=False) or [""]
    data(paint(head, _COLOURS[check.status]) + glyphs.text(lines[0]))
    for line in lines[1:]:
        data(" " * _INDENT + glyphs.text(line))
    if check.fix and check.status is not CheckStatus.OK:
        for position, line in enumerate(textwrap.wrap(check.fix, max(20, width - _INDENT - 2))):
            data(" " * _INDENT + glyphs.text(("→ " if position == 0 else "  ") + line))
