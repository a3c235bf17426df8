"""The recording in a bug report: the newest part of one, as much as fits, without names and secrets."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpuconsole.core.errors import BadFile, UsageError
from gpuconsole.core.text import plain_line, size
from gpuconsole.engine.model import Container
from gpuconsole.host.recorded import SampleReader
from gpuconsole.host.recording import malformed, read_recording
from gpuconsole.services.anonymous import HOST
from gpuconsole.services.newestlines import LOOKS, Line, Newest, text_of
from gpuconsole.services.replayfile import KINDS, refuse_pipe, sample_of, time_of
from gpuconsole.services.reportnames import ReportNames

LIMIT_BYTES = 16 * 2**20
"""Of a recording in a report, before it is compressed."""
_HEAD_FIELDS = ("type", "format", "version", "interval_s", "driver", "began_at", "gpus", "host", "user", "gpuconsole")
_KINDS = frozenset({"sample", "alarm", *KINDS})


@dataclass(frozen=True, slots=True)
class Carried:
    """What of a recording goes into a report."""

    name: str
    """Of the file, harmless; it does not go into the report."""
    header: dict[str, Any]
    lines: tuple[dict[str, Any], ...]
    """All but the header, cleaned, the first at second 0 or later."""
    length_s: float
    """Seconds that are carried."""
    before_s: float
    """Seconds before them, which are left out."""
    unknown: tuple[str, ...]
    """Kinds of lines that this gpuconsole does not know, which were left out."""
    unknown_lines: int
    cut: bool
    """The file ends in the middle of a line, as when the recorder was killed."""

    @property
    def output_lines(self) -> int:
        """Lines that containers wrote."""
        return sum(line["type"] == "log" for line in self.lines)


class Source:
    """A recording that a report is to carry, read and found to be one that can be played.

    Args:
        path: The recording, of format 1, compressed or not; may be a report that carries one.
        limit: Bytes that the carried lines take at most.

    Raises:
        UsageError: Standard input is meant.
        NotFound: There is no such file.
        BadFile: It cannot be read, is no recording, or holds no look at the machine.
    """

    def __init__(self, path: Path, *, limit: int = LIMIT_BYTES) -> None:
        if str(path) == "-":
            raise UsageError(
                "The recording of a report is not read from standard input: the answer to 'Write this?' comes from it.",
                hint="Write it to a file, and give that one.",
            )
        refuse_pipe(path)
        self._path = path
        self._limit = limit
        self._header, self._newest, self._unknown, self._cut = _read(path, limit)
        _refuse_unplayable(path, self._header, self._newest)
        self._refuse_empty(self._newest)

    def teach(self, names: ReportNames) -> None:
        """Let ``names`` learn from it."""
        names.learn_header(self._header)
        _each(self._path, self._newest.lines(), names.learn)

    def carried(self, names: ReportNames) -> Carried:
        """What goes into the report, cleaned by ``names``."""
        cleaned = Newest(self._limit)
        cleaned.left = self._newest.left
        known = len(self._newest.known)
        for place, (each, line) in enumerate(_cleaned(self._path, self._newest.lines(), names)):
            whole = Line(each.number, each.kind, text_of(line))
            cleaned.hold(whole) if place < known else cleaned.add(whole)
        cleaned.settle()
        self._refuse_empty(cleaned)
        return _carried(self._path, names.clean(self._header), cleaned, self._unknown, self._cut)

    def _refuse_empty(self, newest: Newest) -> None:
        if any(each.kind in LOOKS for each in newest.kept):
            return
        name = plain_line(str(self._path))
        if not newest.left:
            raise BadFile(f"{name} holds no look at the machine.", hint="Let 'gpuconsole record' go on for longer.")
        raise BadFile(
            f"{name} holds no look that fits into {size(self._limit)} with what must be known to show it.",
            hint="Give a recording of fewer containers and images.",
        )


def _carried(path: Path, header: dict[str, Any], newest: Newest, unknown: Mapping[str, int], cut: bool) -> Carried:
    """Let second 0 be where the newest part begins."""
    kept = [json.loads(each.text) for each in newest.kept]
    begin = float(kept[0]["t"]) if newest.left else 0.0
    if "host" in header:
        header["host"] = HOST  # whatever that machine is called
    if begin and "began_at" in header:
        header["began_at"] += begin
    before = [json.loads(each.text) | {"t": 0.0} for each in newest.held()]
    shifted = [line | {"t": round(max(0.0, line["t"] - begin), 3)} for line in kept]
    first = 0.0 if newest.left else min(line["t"] for line in shifted)
    return Carried(
        name=plain_line(path.name),
        header=header,
        lines=(*before, *shifted),
        length_s=max(line["t"] for line in shifted) - first,
        before_s=begin,
        unknown=tuple(unknown),
        unknown_lines=sum(unknown.values()),
        cut=cut,
    )


def _read(path: Path, limit: int) -> tuple[dict[str, Any], Newest, Counter[str], bool]:
    """The header, the newest lines as they are, what is unknown, and whether the file was cut off."""
    header: dict[str, Any] = {}
    newest, unknown, cuts = Newest(limit), Counter[str](), []
    for number, line in read_recording(path, on_cut=lambda: cuts.append(True)):
        kind = line["type"]
        if number == 1:
            header = {name: line[name] for name in _HEAD_FIELDS if name in line}
        elif kind in _KINDS:
            newest.add(Line(number, kind, text_of(line)))
        elif kind != "doctor":  # that of an earlier report
            unknown[plain_line(kind, limit=20)] += 1
    newest.settle()
    return header, newest, unknown, bool(cuts)


def _each(path: Path, lines: list[Line], take: Callable[[dict[str, Any]], object]) -> None:
    """Give each line to ``take``."""
    for each in lines:
        try:
            take(json.loads(each.text))
        except (KeyError, TypeError, ValueError, ArithmeticError, AttributeError, RecursionError) as error:
            raise malformed(path, each.number, f"it is no {each.kind} ({error})") from error


def _refuse_unplayable(path: Path, header: Mapping[str, Any], newest: Newest) -> None:
    """Refuse what the reader of the report could not play."""
    samples, containers = SampleReader(), dict[str, Container]()

    def play(line: Mapping[str, Any]) -> None:
        time_of(line, "t")
        sample_of(samples, line)
        if line["type"] in KINDS:
            body = KINDS[line["type"]](line, containers)
            containers.update({body.id: body} if isinstance(body, Container) else {})

    def begin(line: Mapping[str, Any]) -> None:
        time_of(line, "began_at", default=0.0)
        samples.take(line)

    _each(path, [Line(1, "header", text_of(header))], begin)
    _each(path, newest.lines(), play)


def _cleaned(path: Path, lines: list[Line], names: ReportNames) -> Iterator[tuple[Line, dict[str, Any]]]:
    for each in lines:
        try:
            yield each, names.clean(json.loads(each.text))
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise malformed(path, each.number, f"it is no {each.kind} ({error})") from error
