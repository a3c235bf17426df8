"""The report that goes with a bug: what the doctor found, with a recording if one is given, without names and secrets.

It is a recording itself, of format 1, with one line more: ``doctor``. So whoever gets it plays it and forecasts it as
any other, also with a gpuconsole that is older than reports.
"""

from __future__ import annotations

import gzip
import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpuconsole import __version__
from gpuconsole.core.document import body_of, jsonable, text_of
from gpuconsole.core.errors import BadFile, Conflict
from gpuconsole.core.files import remedy, write_whole
from gpuconsole.core.revive import revive
from gpuconsole.core.text import plain_line
from gpuconsole.diagnose.finding import Finding
from gpuconsole.diagnose.host_rules import HostFacts, to_mend
from gpuconsole.host.recording import FORMAT, VERSION, malformed, read_recording
from gpuconsole.services.anonymous import HOST, ME
from gpuconsole.services.replayfile import refuse_pipe, time_of
from gpuconsole.services.reportnames import ReportNames
from gpuconsole.services.reportrecording import LIMIT_BYTES, Carried, Source

_COMPRESSED = ".gz"


@dataclass(frozen=True, slots=True)
class Report:
    """A report, not written yet."""

    doctor: dict[str, Any]
    """The document of ``doctor --json``, without names."""
    findings: tuple[Finding, ...]
    """Those of the document."""
    recording: Carried | None
    header: dict[str, Any]

    def lines(self) -> Iterator[dict[str, Any]]:
        """All there is in it, in the order of the file."""
        yield self.header
        yield {
            "type": "doctor", "t": 0.0, "made_at": round(time.time()), "gpuconsole": __version__,
            "document": self.doctor, "recording": None if self.recording is None else _told(self.recording),
        }  # fmt: skip
        yield from () if self.recording is None else self.recording.lines

    def text(self, *, ascii_only: bool = False) -> str:
        """What is written: JSON lines; with escapes where other characters cannot be written."""
        return "".join(f"{_harmless(each, ascii_only=ascii_only)}\n" for each in self.lines())


def _harmless(line: dict[str, Any], *, ascii_only: bool) -> str:
    """A line of JSON that a terminal can be shown: what it would obey, and what disguises text, is an escape in it."""
    text = json.dumps(line, ensure_ascii=ascii_only, separators=(",", ":"))
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in text)


def _told(recording: Carried) -> dict[str, Any]:
    """What a reader should know of the recording: how much of it there is, and what was left out."""
    return {
        "length_s": round(recording.length_s, 3), "left_out_before_s": round(recording.before_s, 3),
        "left_out_lines": recording.unknown_lines, "cut": recording.cut, "limit_bytes": LIMIT_BYTES,
    }  # fmt: skip


def make_report(
    examine: Callable[[], tuple[HostFacts, tuple[Finding, ...]]],
    recording: Path | None,
    *,
    names: ReportNames | None = None,
) -> Report:
    """Put a report together.

    Args:
        examine: The doctor: what it looks at, and what it finds; not asked where the recording cannot be carried.
        recording: A recording that the report carries.
        names: Stand-ins; None makes those of this machine and who runs this program.

    Raises:
        UsageError, NotFound, BadFile: The recording cannot be carried.
    """
    names = names or ReportNames()
    source = None if recording is None else Source(recording)
    facts, findings = examine()
    body = body_of(
        "doctor", system=facts.machine, endpoint=facts.endpoint or None, engine=facts.engine, findings=findings,
        mend=[finding.id for finding in to_mend(findings)],
    )  # fmt: skip
    if source is not None:
        source.teach(names)
    names.learn(body)
    carried = None if source is None else source.carried(names)
    cleaned = names.clean(body)
    header = names.clean(_header(facts)) if carried is None else carried.header
    return Report(cleaned, tuple(_finding(each) for each in cleaned["findings"]), carried, header)


def _header(facts: HostFacts) -> dict[str, Any]:
    """The first line where there is no recording."""
    gpus = [
        {"index": gpu.index, "uuid": gpu.uuid, "name": gpu.name, "memory_total_bytes": gpu.memory_total_bytes}
        for gpu in facts.gpus.gpus
    ]
    head = {"type": "header", "format": FORMAT, "version": VERSION, "driver": facts.gpus.driver_version, "gpus": gpus}
    whole: dict[str, Any] = jsonable(head | {"host": HOST, "user": ME, "gpuconsole": __version__})
    return whole


def _finding(data: Any) -> Finding:
    return revive(Finding, data)


def write_report(report: Report, path: Path) -> int:
    """Write a report whole or not at all; a name that ends in ``.gz`` is compressed.

    Returns:
        The bytes that were written.

    Raises:
        BadFile: It cannot be written.
    """
    data = report.text().encode("utf-8", errors="replace")
    if path.suffix == _COMPRESSED:
        data = gzip.compress(data, mtime=0)
    try:
        write_whole(Path(os.path.realpath(path)), data)  # of a link what it leads to
    except OSError as error:
        raise BadFile(
            f"The report cannot be written to {plain_line(str(path))}: {error.strerror or error}.",
            hint=remedy(error, "Choose another place."),
        ) from error
    return len(data)


def refuse_place(path: Path, recording: Path | None) -> None:
    """Refuse a place where a report cannot be, before all the work.

    Raises:
        BadFile: It is no place for a file.
        Conflict: It is the recording that the report carries.
    """
    name = plain_line(str(path))
    if os.path.exists(path) and not os.path.isfile(path):
        what = "a folder" if os.path.isdir(path) else "a pipe or a device"
        raise BadFile(f"{name} is {what}, and no file.", hint="Name a file for the report; - is standard output.")
    if not os.path.isdir(path.parent):
        raise BadFile(f"There is no folder {plain_line(str(path.parent))}.", hint="Make it, or choose another place.")
    if recording is not None and os.path.exists(path) and os.path.realpath(path) == os.path.realpath(recording):
        raise Conflict(
            f"{name} is the recording itself, and the report would take its place.",
            hint="Give the report another name.",
        )


@dataclass(frozen=True, slots=True)
class ReadReport:
    """What the doctor said in a report that somebody sent."""

    made_at: float
    """Seconds since the epoch."""
    version: str
    """Of the gpuconsole that made it."""
    document: str
    """That of ``doctor --json``, as it stands in the file; all but ASCII in escapes."""
    system: str
    findings: tuple[Finding, ...]
    length_s: float | None
    """Seconds of the recording in it; None when it carries none."""


def read_report(path: Path) -> ReadReport:
    """What the doctor said in the report at ``path``.

    Raises:
        NotFound: There is no such file.
        BadFile: It cannot be read, or is no report.
    """
    refuse_pipe(path)
    for number, line in read_recording(path):
        if line["type"] != "doctor":
            if number == 1:
                continue
            break
        try:
            document, recording = line["document"], line["recording"]
            system = document["system"]
            return ReadReport(
                made_at=time_of(line, "made_at"),
                version=plain_line(str(line["gpuconsole"]), limit=40),
                document=text_of(document, ascii_only=True),
                system=plain_line(f"{system['os_name']}, kernel {system['kernel']}", limit=160),
                findings=tuple(_finding(each) for each in document["findings"]),
                length_s=None if recording is None else time_of(recording, "length_s"),
            )
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise malformed(path, number, f"it is no doctor's line ({error})") from error
    raise BadFile(
        f"{plain_line(str(path))} is a recording, and no report: the doctor did not write in it.",
        hint="'gpuconsole --replay' plays it; 'gpuconsole doctor --report' makes reports.",
    )
