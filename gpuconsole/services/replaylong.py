"""A long recording of the console: only where each line stands is held, and what it says is read when it is due."""

from __future__ import annotations

import json
import re
import zlib
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, overload

from gpuconsole.core.errors import BadFile
from gpuconsole.core.text import plain_line
from gpuconsole.engine.model import Container
from gpuconsole.host.bareview import bare_view
from gpuconsole.host.longfile import LongFile
from gpuconsole.host.recorded import SampleReader
from gpuconsole.host.recording import LONGEST_LINE, line_of_text, malformed
from gpuconsole.services import replayfile
from gpuconsole.services.replayfile import NO_ENGINE, Event, nothing_to_show

_HEAD = re.compile(rb'\{"type":"([a-z]+)","t":([0-9.]+),')
_BARE, _LINK = "bare", "no engine"
_KINDS = ("sample", *replayfile.KINDS, _BARE, _LINK)
_CODES = {name: code for code, name in enumerate(_KINDS)}


class LongEvents(Sequence[Event]):
    """The events of a recording in the order of their time, each read from the file whenever it is asked for.

    Args:
        path: The file.
        header: Its first line.

    Raises:
        BadFile: It cannot be read, or a line in it is none. What a line says is looked at when it is due.
    """

    def __init__(self, path: Path, header: Mapping[str, Any]) -> None:
        self._path = path
        self._header = header
        self._began_at = float(header.get("began_at") or 0.0)
        self._file = LongFile(path.open("rb"))
        self.times = array("d")
        self._kinds = bytearray()
        self._places = array("q")
        """Where each line begins."""
        self._lengths = array("q")
        self._numbers = array("q")
        """Of each line in the file."""
        self.changes: list[tuple[float, Container]] = []
        """Containers whenever something of them changed, as they stand in the file."""
        self._unseen = 0
        """How many of them were listed since."""
        self._described: dict[str, tuple[list[int], list[Container]]] = {}
        """Container id → where it was described, and how."""
        self._listed = array("q")
        """Where containers were listed."""
        self._lines = 0
        """How many of the entries stand in the order of the file: all but those made of others."""
        self._look_through()
        self._order = array("q", sorted(range(len(self.times)), key=self.times.__getitem__))
        self.times = array("d", (self.times[each] for each in self._order))

    def __len__(self) -> int:
        return len(self._order)

    @overload
    def __getitem__(self, place: int) -> Event: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Event, ...]: ...
    def __getitem__(self, place: int | slice) -> Event | tuple[Event, ...]:
        if isinstance(place, slice):
            return tuple(self[each] for each in range(*place.indices(len(self))))
        entry = self._order[place]
        at = self.times[place]
        kind = _KINDS[self._kinds[entry]]
        if kind == _LINK:
            return Event(at, "link", NO_ENGINE)
        try:
            return self._read(entry, at, kind)
        except (ValueError, RecursionError) as error:
            raise malformed(self._path, self._numbers[entry], str(error)) from error

    def first(self, kind: str) -> float:
        """The time of the first event of a kind; 0 when there is none."""
        codes = {_CODES[kind]} | ({_CODES[_BARE]} if kind == "host" else set())
        return next((self.times[n] for n, entry in enumerate(self._order) if self._kinds[entry] in codes), 0.0)

    # --- one line ---

    def _read(self, entry: int, at: float, kind: str) -> Event:
        offset = self._places[entry]
        line = json.loads(self._file.read(offset, self._lengths[entry]).decode(errors="replace"))
        if kind not in ("sample", _BARE):
            return Event(at, kind, replayfile.KINDS[kind](line, _KnownAt(self._described, offset)))
        sample = replayfile.sample_of(self._reader_at(offset, line), line)
        if sample is None:
            raise ValueError("it is no sample")
        if kind == "sample":
            return Event(at, kind, sample)
        return Event(at, "host", bare_view(sample, line, self._header, taken_at=self._began_at + sample.t))

    def _reader_at(self, offset: int, line: Mapping[str, Any]) -> SampleReader:
        reader = SampleReader()
        reader.take(self._header)
        place = bisect_left(self._listed, offset) - 1
        if "containers" in line or place < 0:
            return reader
        entry = bisect_left(self._places, self._listed[place], hi=self._lines)
        for key in self._described:
            if (one := _KnownAt(self._described, offset).get(key)) is not None:
                reader.take({"type": "container", "container": {"id": one.id, "name": one.name}})
        reader.take(json.loads(self._file.read(self._places[entry], self._lengths[entry])))
        return reader

    # --- the way through ---

    def _look_through(self) -> None:
        name = plain_line(str(self._path))
        number, offset, rest = 0, 0, b""
        try:
            for piece in self._file.pieces():
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    number += 1
                    self._note(line, number, offset)
                    offset += len(line) + 1
                if len(rest) > LONGEST_LINE:
                    raise malformed(self._path, number + 1, "it is no JSON")
            if rest:
                self._note(rest, number + 1, offset, last=True)
        except EOFError:
            pass  # the compressed file ends in the middle
        except (OSError, zlib.error) as error:
            words = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise BadFile(f"{name} cannot be read: {words}.", hint="Give a recording.") from error
        self._lines = len(self._places)
        if not any(_KINDS[code] == "host" for code in self._kinds):
            self._show_samples()

    def _note(self, line: bytes, number: int, offset: int, *, last: bool = False) -> None:
        head = _HEAD.match(line)
        kind, data = (head[1].decode(), None) if head and not last else ("", None)
        if not kind or kind == "container":
            try:
                data = line_of_text(line.decode(errors="replace"))
                kind = str(data["type"])
                t = replayfile.time_of(data, "t") if kind in _CODES else 0.0
                if kind == "container":
                    self._describe(data, offset, t)
            except (ValueError, RecursionError) as error:
                if last:
                    return  # cut off in the middle, as when the recorder was killed
                raise malformed(self._path, number, str(error) or "it is no JSON") from error
        elif head:
            try:
                t = float(head[2])
            except ValueError as error:
                raise malformed(self._path, number, "t is no time") from error
        if number == 1 or kind not in _CODES:
            return
        if kind == "containers":
            self._listed.append(offset)
            # What was described is seen with the list that follows.
            self.changes[self._unseen :] = [(t, one) for _, one in self.changes[self._unseen :]]
            self._unseen = len(self.changes)
        self._add(t, kind, offset, len(line), number)

    def _describe(self, data: dict[str, Any], offset: int, t: float) -> None:
        known: dict[str, Container] = {}
        one = replayfile.KINDS["container"](data, known)
        places, containers = self._described.setdefault(one.id, ([], []))
        places.append(offset)
        containers.append(one)
        self.changes.append((t, one))

    def _add(self, t: float, kind: str, offset: int, length: int, number: int) -> None:
        self.times.append(t)
        self._kinds.append(_CODES[kind])
        self._places.append(offset)
        self._lengths.append(length)
        self._numbers.append(number)

    def _show_samples(self) -> None:
        """Memory alone was recorded: each sample is what is shown, too."""
        if not any(self._read(entry, 0.0, "sample").body.gpus
                   for entry, code in enumerate(self._kinds) if _KINDS[code] == "sample"):  # fmt: skip
            raise nothing_to_show(self._path)
        for entry in range(len(self.times)):
            if _KINDS[self._kinds[entry]] == "sample":
                self._add(self.times[entry], _BARE, self._places[entry], self._lengths[entry], self._numbers[entry])
        self._add(0.0, _LINK, 0, 0, 0)


class _KnownAt(Mapping[str, Container]):
    """Containers as they were described last before a place in the file."""

    def __init__(self, described: Mapping[str, tuple[list[int], list[Container]]], offset: int) -> None:
        self._described = described
        self._offset = offset

    def __getitem__(self, key: str) -> Container:
        places, containers = self._described[key]
        place = bisect_left(places, self._offset) - 1
        return containers[max(place, 0)]

    def __iter__(self) -> Iterator[str]:
        return iter(self._described)

    def __len__(self) -> int:
        return len(self._described)
