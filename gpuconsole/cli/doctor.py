"""``gpuconsole doctor``: what this machine lacks, and how to get it."""

from __future__ import annotations

import click

from gpuconsole.cli.context import Settings, pass_settings
from gpuconsole.cli.output import data, json_document, paint, paragraph, terminal_width
from gpuconsole.cli.tables import wrapped
from gpuconsole.core.errors import ExitCode
from gpuconsole.diagnose.finding import Finding, Level

_MARKS = {
    Level.OK: ("ok  ", "green"),
    Level.WARN: ("warn", "yellow"),
    Level.FAIL: ("FAIL", "red"),
    Level.SKIP: ("skip", ""),
}

_INDENT = " " * 6


@click.command(
    epilog="\b\nExamples:\n  gpuconsole doctor\n"
    "  gpuconsole doctor --json | jq '.findings[] | select(.level==\"fail\")'\n\n"
    "Exit code 0 when nothing is failing, 1 when something is."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@pass_settings
def doctor(settings: Settings, as_json: bool) -> int:
    """Look at GPU, driver, engine, toolkit, disk and tmux, and say what is missing and how to get it.

    Nothing is changed, and no root is needed.
    """
    from gpuconsole.diagnose.host_rules import to_mend
    from gpuconsole.services.doctor import examine_host

    facts, findings = examine_host(settings.session())
    mend = to_mend(findings)
    if as_json:
        json_document(
            "doctor",
            system=facts.machine,
            endpoint=facts.endpoint or None,
            engine=facts.engine,
            findings=findings,
            mend=[finding.id for finding in mend],
        )
    else:
        paragraph(f"{facts.machine.os_name}, kernel {facts.machine.kernel}")
        for finding in findings:
            data(_shown(finding))
        data("")
        paragraph(_verdict(findings, mend))
    return int(ExitCode.FAILED if mend else ExitCode.OK)


def _shown(finding: Finding) -> str:
    word, colour = _MARKS[finding.level]
    width = terminal_width() - len(_INDENT)
    lines = wrapped(f"{finding.title}: {finding.what}", width, whole_words=True)
    if finding.fix and finding.level is not Level.OK:
        lines += wrapped(finding.fix, width, first="→ ", rest="  ", whole_words=True)
    return "\n".join([f"{paint(word, colour)}  {lines[0]}", *(f"{_INDENT}{line}" for line in lines[1:])])


def _verdict(findings: tuple[Finding, ...], mend: tuple[Finding, ...]) -> str:
    if mend:
        first, *others = [finding.title for finding in mend]
        return f"Mend first: {first}{'; then: ' + ', '.join(others) if others else ''}."
    if any(finding.id == "doctor.gpu-wiring" and finding.level is Level.OK for finding in findings):
        return "Ready: GPU containers can be launched here."
    return "Ready for containers without GPUs."
