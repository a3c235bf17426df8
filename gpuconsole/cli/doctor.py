"""``gpuconsole doctor``: what this machine lacks, and how to get it."""

from __future__ import annotations

from pathlib import Path

import click

from gpuconsole.cli.context import Settings, pass_settings
from gpuconsole.cli.output import data, json_document, paint, paragraph, terminal_width
from gpuconsole.cli.tables import wrapped
from gpuconsole.core.errors import ExitCode, UsageError
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
    "  gpuconsole doctor --json | jq '.findings[] | select(.level==\"fail\")'\n"
    "  gpuconsole doctor --report bug.jsonl.gz --recording run.jsonl.gz\n"
    "  gpuconsole doctor --read bug.jsonl.gz      # what the doctor said in a report\n"
    "  gpuconsole --replay bug.jsonl.gz           # the recording in it; also: forecast bug.jsonl.gz\n\n"
    "\b\nExit codes: 0 nothing is failing; 1 something is, here or in the report that is read.\n"
    "With --report: 0 it was written; 5 no such recording; 6 the report would take the place of the\n"
    "recording; 7 the answer was no; 8 the recording is none, or the report cannot be written."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@click.option(
    "--report", type=click.Path(path_type=Path), metavar="FILE",
    help="Write what was found to FILE, for a bug report, without names; shown and asked before. NAME.jsonl.gz is "
    "compressed, - is standard output.",
)  # fmt: skip
@click.option(
    "--recording", type=click.Path(path_type=Path), metavar="FILE",
    help="With --report: carry what 'gpuconsole record' wrote, its newest 16 MiB (before it is compressed) at most, "
    "without names and secrets, also where it was recorded --with-names.",
)  # fmt: skip
@click.option("-y", "--yes", is_flag=True, help="With --report: do not ask.")
@click.option("--read", type=click.Path(path_type=Path), metavar="REPORT", help="Say what stands in a report.")
@pass_settings
def doctor(
    settings: Settings, as_json: bool, report: Path | None, recording: Path | None, yes: bool, read: Path | None
) -> int:
    """Look at GPU, driver, engine, toolkit, disk and tmux, and say what is missing and how to get it.

    Nothing is changed, and no root is needed.
    """
    _refuse_together(as_json=as_json, report=report, recording=recording, yes=yes, read=read)
    if report is not None:
        from gpuconsole.cli.doctor_report import report_to

        return report_to(settings.session(), report, recording, yes=yes)
    if read is not None:
        from gpuconsole.cli.doctor_report import read_from

        return read_from(read, as_json=as_json)
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
            data(shown(finding))
        data("")
        paragraph(verdict(findings, mend))
    return int(ExitCode.FAILED if mend else ExitCode.OK)


def _refuse_together(
    *, as_json: bool, report: Path | None, recording: Path | None, yes: bool, read: Path | None
) -> None:
    if recording is not None and report is None:
        raise UsageError(
            "--recording says what a report carries, and no report is asked for.",
            hint="Add --report FILE; 'gpuconsole --replay' shows a recording.",
        )
    if yes and report is None:
        raise UsageError(
            "--yes answers what --report asks, and no report is asked for.", hint="Add --report FILE, or leave it out."
        )
    if report is not None and (as_json or read is not None):
        raise UsageError(
            f"--report writes a file, so {'--read' if read is not None else '--json'} does not go with it.",
            hint="Leave one of them out; '--report -' writes the report to standard output, as JSON lines.",
        )


def shown(finding: Finding) -> str:
    """A finding as lines for a terminal."""
    word, colour = _MARKS[finding.level]
    width = terminal_width() - len(_INDENT)
    lines = wrapped(f"{finding.title}: {finding.what}", width, whole_words=True)
    if finding.fix and finding.level is not Level.OK:
        lines += wrapped(finding.fix, width, first="→ ", rest="  ", whole_words=True)
    return "\n".join([f"{paint(word, colour)}  {lines[0]}", *(f"{_INDENT}{line}" for line in lines[1:])])


def verdict(findings: tuple[Finding, ...], mend: tuple[Finding, ...]) -> str:
    """What to mend first, or that nothing needs it."""
    if mend:
        first, *others = [finding.title for finding in mend]
        return f"Mend first: {first}{'; then: ' + ', '.join(others) if others else ''}."
    if any(finding.id == "doctor.gpu-wiring" and finding.level is Level.OK for finding in findings):
        return "Ready: GPU containers can be launched here."
    return "Ready for containers without GPUs."
