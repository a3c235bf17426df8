"""A recording of the console, read from its file."""

from __future__ import annotations

import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gpuconsole.core.errors import BadFile, UsageError
from gpuconsole.core.revive import revive
from gpuconsole.core.text import plain, plain_line
from gpuconsole.engine.model import Container, EngineInfo
from gpuconsole.gpu.forecast_model import MemorySample
from gpuconsole.host.bareview import bare_view
from gpuconsole.host.facts import LaunchFacts
from gpuconsole.host.longfile import GZIP_MAGIC
from gpuconsole.host.model import HostView
from gpuconsole.host.recorded import SampleReader
from gpuconsole.host.recording import malformed, read_recording
from gpuconsole.services.containers import ContainerView
from gpuconsole.services.feed import EngineLink
from gpuconsole.services.images import ImageView
from gpuconsole.services.runs import Run

LONG, LONG_PACKED = 6 * 2**20, 384 * 2**10
"""Bytes from which on a recording is read as it is played; of a compressed one the second."""
_LATEST = 1e11
"""Seconds since the epoch, or since the start; later times are a fault of the file."""


NO_ENGINE = EngineLink(
    connected=False,
    message="GPU memory alone was recorded: there are no containers and no images to show.",
    hint="The GPUs stand above, who held them in the list of processes.",
)


@dataclass(frozen=True, slots=True)
class Event:
    """Something that was seen or happened."""

    at: float
    """Seconds since the start."""
    kind: str
    body: Any
    """A value of the kind's own type."""


@dataclass(frozen=True, slots=True)
class Recording:
    """A recording of the console, read."""

    name: str
    began_at: float
    """Second 0, in seconds since the epoch."""
    host: str
    user: str
    """Who recorded it."""
    events: Sequence[Event] = ()
    """In the order of their time."""

    @property
    def length_s(self) -> float:
        """Seconds from the first to the last event."""
        times = self.times
        return times[-1] if times else 0.0

    @property
    def times(self) -> Sequence[float]:
        """When each event was, in seconds since the start."""
        known: Sequence[float] | None = getattr(self.events, "times", None)
        return [event.at for event in self.events] if known is None else known

    @property
    def first_look_s(self) -> float:
        """When the GPUs were looked at first; before it there is nothing to see."""
        if (first := getattr(self.events, "first", None)) is not None:
            return float(first("host"))
        return next((event.at for event in self.events if event.kind == "host"), 0.0)


def load(path: Path) -> Recording:
    """Read a recording of the console.

    Raises:
        UsageError: Standard input is meant.
        NotFound: There is no such file.
        BadFile: It cannot be read, is no recording, or holds nothing the console could show.
    """
    if str(path) == "-":
        raise UsageError(
            "A recording is not read from standard input: the console's keys come from there.",
            hint="Write it to a file, and give that one.",
        )
    refuse_pipe(path)
    return _long(path) if _is_long(path) else _whole(path)


def _whole(path: Path) -> Recording:
    header: dict[str, Any] = {}
    events: list[Event] = []
    containers: dict[str, Container] = {}
    samples = SampleReader()
    bare: list[Event] | None = []  # what is shown where memory alone was recorded
    for number, line in read_recording(path):
        try:
            sample = sample_of(samples, line)
            if number == 1:
                header = line
                time_of(line, "began_at", default=0.0)
            elif sample is not None:
                events.append(Event(time_of(line, "t"), "sample", sample))
                if bare is not None:
                    taken_at = time_of(header, "began_at", default=0.0) + sample.t
                    bare.append(Event(time_of(line, "t"), "host", bare_view(sample, line, header, taken_at=taken_at)))
            elif line["type"] in KINDS:
                bare = None if line["type"] == "host" else bare
                body = KINDS[line["type"]](line, containers)
                containers |= {body.id: body} if isinstance(body, Container) else {}
                events.append(Event(time_of(line, "t"), line["type"], body))
        except ValueError as error:
            raise malformed(path, number, str(error)) from error
    if any(event.body.gpus for event in bare or ()):
        events += [*(bare or ()), Event(0.0, "link", NO_ENGINE)]  # the order of those of one time stays
    elif bare is not None:
        raise nothing_to_show(path)
    events.sort(key=lambda event: event.at)
    return _recording(path, header, tuple(events))


def nothing_to_show(path: Path) -> BadFile:
    """The failure of a recording without anything in it."""
    return BadFile(
        f"{plain_line(str(path))} holds nothing the console could show: no GPU and no container is in it.",
        hint="'gpuconsole --replay' plays recordings of the console.",
    )


def _recording(path: Path, header: Mapping[str, Any], events: Sequence[Event]) -> Recording:
    return Recording(
        name=plain_line(path.name),
        began_at=time_of(header, "began_at", default=0.0),
        host=plain_line(str(header.get("host") or "recording"), limit=24),
        user=plain_line(str(header.get("user") or ""), limit=64),
        events=events,
    )


def refuse_pipe(path: Path) -> None:
    """Refuse what is not a file that can be gone to and fro in.

    Raises:
        BadFile: It is a pipe, a device, a socket.
    """
    try:
        mode = path.stat().st_mode
    except OSError:
        return  # that is told by who reads it
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):  # of a folder the system says so itself
        raise BadFile(f"{plain_line(str(path))} is a pipe or a device, and no file.",
                      hint="Write the recording to a file, and give that one.")  # fmt: skip


def _is_long(path: Path) -> bool:
    """It would take too long, and too much memory, to read it whole before it is shown."""
    try:
        with path.open("rb") as file:
            return path.stat().st_size > (LONG_PACKED if file.read(2) == GZIP_MAGIC else LONG)
    except OSError:
        return False  # that is told by who reads it


def _long(path: Path) -> Recording:
    from gpuconsole.services.replaylong import LongEvents

    lines = read_recording(path)
    _, header = next(lines)
    try:
        time_of(header, "began_at", default=0.0)
    except ValueError as error:
        raise malformed(path, 1, str(error)) from error
    return _recording(path, header, LongEvents(path, header))


def sample_of(reader: SampleReader, line: Mapping[str, Any]) -> MemorySample | None:
    """The sample that a line of a recording is, if it is one.

    Raises:
        ValueError: It is not what such a line must be.
    """
    try:
        return reader.take(line)
    except (KeyError, TypeError, ArithmeticError, AttributeError) as error:
        raise ValueError(f"it is no {plain_line(line['type'], limit=20)} ({error})") from error


def time_of(line: Mapping[str, Any], key: str, *, default: float | None = None) -> float:
    """A time in a line of a recording.

    Raises:
        ValueError: It is none.
    """
    value = line.get(key, default)
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < _LATEST:
        raise ValueError(f"{key} is no time")
    return float(value)


_NOBODY = {"id": "", "name": "", "image": "", "image_id": "", "state": "unknown"}
_Known = Mapping[str, Container]


def _list(line: Mapping[str, Any], key: str) -> list[Any]:
    items = line.get(key)
    if not isinstance(items, list):
        raise ValueError(f"{key} is no list")
    return items


def _container(line: Mapping[str, Any], known: _Known) -> Container:
    return revive(Container, line.get("container"))


def _views(line: Mapping[str, Any], known: _Known) -> tuple[ContainerView, ...]:
    """Containers stand in lines of their own, since they seldom change."""
    views = []
    for figures in _list(line, "views"):
        container = known.get(str(figures.get("id"))) if isinstance(figures, dict) else None
        if container is None:
            raise ValueError("a container is listed that was not described before")
        view = revive(ContainerView, figures | {"container": _NOBODY})
        views.append(replace(view, container=container))
    return tuple(views)


def _run(data: Any) -> Run:
    run = revive(Run, data)
    return replace(run, document=plain(data["document"])) if run.document else run  # a document has many lines


@dataclass(frozen=True, slots=True)
class Output:
    """A line that a container wrote."""

    id: str
    """The container's."""
    channel: str
    stamp: str
    """When, RFC 3339; empty when the engine did not say."""
    text: str


KINDS: dict[str, Callable[[Mapping[str, Any], _Known], Any]] = {
    "host": lambda line, known: revive(HostView, line.get("view")),
    "container": _container,
    "containers": _views,
    "images": lambda line, known: tuple(revive(ImageView, view) for view in _list(line, "views")),
    "engine": lambda line, known: revive(EngineInfo, line.get("info")),
    "link": lambda line, known: revive(EngineLink, line.get("link")),
    "runs": lambda line, known: tuple(_run(run) for run in _list(line, "runs")),
    "facts": lambda line, known: revive(LaunchFacts, line.get("facts")),
    "log": lambda line, known: replace(revive(Output, line), text=plain(line["text"]).replace("\n", " ")),
}
"""Kind of line → what is made of it."""
