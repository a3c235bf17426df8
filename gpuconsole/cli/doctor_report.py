"""Reports for a bug: shown, asked for, written; and read by whoever gets one."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpuconsole.cli.glyphs import writes_utf8
from gpuconsole.cli.output import confirm, data, paragraph, talk
from gpuconsole.core.errors import ExitCode
from gpuconsole.core.text import duration, plain_line, size
from gpuconsole.host.recording import STANDARD_OUTPUT

if TYPE_CHECKING:
    from gpuconsole.services.reportrecording import Carried
    from gpuconsole.services.reports import Report
    from gpuconsole.services.session import Session

_NAMES = 8
"""Names of one kind that are shown."""
_LONGEST = 72
"""Characters of a name that are shown."""


def report_to(session: Session, path: Path, recording: Path | None, *, yes: bool) -> int:
    """Look at the machine and write what was found, after it was shown and agreed to.

    Args:
        session: The GPUs and the engine.
        path: The report; ``-`` is standard output, and then nothing is asked.
        recording: Carried by the report.
        yes: Do not ask.
    """
    from gpuconsole.services.doctor import examine_host
    from gpuconsole.services.reports import make_report, refuse_place, write_report

    to_file = path != STANDARD_OUTPUT
    if to_file:
        refuse_place(path, recording)
    if recording is not None:
        talk(f"Reading {plain_line(str(recording))} …")
    report = make_report(lambda: examine_host(session), recording)
    if not to_file:
        sys.stdout.write(report.text(ascii_only=not writes_utf8()))
        return ExitCode.OK
    _show(report)
    name = plain_line(str(path))
    there = " in the place of what is there" if os.path.exists(path) else ""
    confirm(f"Write this to {name}{there}?", assume_yes=yes)
    held = write_report(report, path)
    talk(f"Written: {name}, {size(held)}.")
    if report.recording is not None:
        talk(f"  Whoever gets it plays it by 'gpuconsole --replay {name}'.")
    return ExitCode.OK


def _show(report: Report) -> None:
    """Tell the person what is about to be given away."""
    from gpuconsole.cli.doctor import shown
    from gpuconsole.core.document import text_of

    talk("This is all that the report says of the machine:")
    machine = {name: report.doctor[name] for name in ("system", "endpoint", "engine")}
    for line in text_of(machine).splitlines():
        talk(f"  {line}")
    talk("This is what the doctor found:")
    for finding in report.findings:
        for line in shown(finding).splitlines():
            talk(f"  {line}")
    if report.recording is not None:
        for line in _recording(report.recording):
            talk(line)


def _recording(carried: Carried) -> Iterator[str]:
    """What of a recording goes with it, what is in it that people may mind, and what was left out."""
    from gpuconsole.services.reportcontents import contents
    from gpuconsole.services.reportrecording import LIMIT_BYTES

    part = "its newest " if carried.before_s else ""
    yield f"With it goes the recording {carried.name}: {part}{duration(carried.length_s)}."
    for what, names in contents(carried).items():
        if what == "Commands":
            yield "  Commands:"
            yield from (f"    {name}" for name in _some(names))
        else:
            yield f"  {what}: {', '.join(_some(names))}"
    if carried.output_lines:
        yield f"  Lines that containers wrote: {carried.output_lines}, as they are but for names and secrets."
    if carried.before_s:
        limit = size(LIMIT_BYTES)
        yield f"  Left out: the {duration(carried.before_s)} before; a report carries {limit} of a recording at most."
    if carried.unknown:
        kinds = ", ".join(_some(carried.unknown))
        yield f"  Left out: {carried.unknown_lines} lines of kinds that this gpuconsole does not know ({kinds})."
    if carried.cut:
        yield "  The file ends in the middle, as when its recorder was killed; what stands before that is carried."
    yield "  Left out: the values of most variables, and labels that are not ours."
    yield "  Replaced: names of machine, users, folders, images, containers, addresses."
    yield "  Masked: secrets. What programs wrote may tell more: '--report - | less' shows"
    yield "  all that would be written."


def _some(names: Iterable[str]) -> list[str]:
    listed = [plain_line(name, limit=_LONGEST) for name in names]
    rest = len(listed) - _NAMES
    return listed[:_NAMES] + ([f"and {rest} more"] if rest > 0 else [])


def read_from(path: Path, *, as_json: bool) -> int:
    """Say what the doctor found where a report was made."""
    from gpuconsole.cli.doctor import shown, verdict
    from gpuconsole.diagnose.host_rules import to_mend
    from gpuconsole.services.reports import read_report

    report = read_report(path)
    mend = to_mend(report.findings)
    if as_json:
        data(report.document)
        return _code(mend)
    made = time.strftime("%Y-%m-%d %H:%M", time.localtime(report.made_at))
    paragraph(f"Report of {made}, gpuconsole {report.version}: {report.system}")
    for finding in report.findings:
        data(shown(finding))
    data("")
    paragraph(verdict(report.findings, mend))
    if report.length_s is not None:
        name = plain_line(str(path))
        paragraph(f"It carries a recording of {duration(report.length_s)}: 'gpuconsole --replay {name}' plays it.")
    return _code(mend)


def _code(mend: tuple[Any, ...]) -> int:
    return int(ExitCode.FAILED if mend else ExitCode.OK)
