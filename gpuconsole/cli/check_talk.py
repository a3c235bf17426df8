"""What ``check`` says: progress on stderr while it runs, the results and the verdict on stdout."""

from __future__ import annotations

from gpuconsole.cli.glyphs import Glyphs, glyphs_of_stdout
from gpuconsole.cli.output import data, json_document, paint, paragraph, terminal_width
from gpuconsole.cli.probe_talk import ProbeTalk
from gpuconsole.cli.tables import wrapped
from gpuconsole.core.text import shorten
from gpuconsole.probes.records import CheckReport, CheckResult, CheckStatus, Progress, Record

_GLYPHS = {CheckStatus.OK: "✓", CheckStatus.WARN: "!", CheckStatus.FAIL: "✗", CheckStatus.SKIP: "–"}
_PLAIN_GLYPHS = {CheckStatus.OK: "+", CheckStatus.WARN: "!", CheckStatus.FAIL: "x", CheckStatus.SKIP: "-"}
_COLOURS = {CheckStatus.OK: "green", CheckStatus.WARN: "yellow", CheckStatus.FAIL: "red", CheckStatus.SKIP: ""}
_NAME_WIDTH = 20
_MOST_NOTES = 5
_INDENT = 2 + 5 + _NAME_WIDTH + 1
"""Glyph, status and name with the blanks after them."""
_SIDE_BY_SIDE = 56
"""Columns from which a check is told beside its name."""


class CheckTalk(ProbeTalk):
    """Tells how a check goes on, and how it came out."""

    WHAT = "the check"

    def _where(self, record: Record) -> str:
        if not isinstance(record, Progress):
            return ""
        return f"[{record.step}/{record.of}] {record.id.removeprefix('check.')}: {record.text}"

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
