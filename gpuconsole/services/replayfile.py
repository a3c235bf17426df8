"""A recording of the console, read from its file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gpuconsole.core.errors import BadFile
from gpuconsole.core.revive import revive
from gpuconsole.core.text import plain, plain_line
from gpuconsole.engine.model import Container, EngineInfo
from gpuconsole.gpu.forecast_model import MemorySample
from gpuconsole.host.bareview import bare_view
from gpuconsole.host.facts import LaunchFacts
from gpuconsole.host.model import HostView
from gpuconsole.host.recorded import SampleReader
from gpuconsole.host.recording import malformed, read_recording
from gpuconsole.services.containers import ContainerView
from gpuconsole.services.feed import EngineLink
from gpuconsole.services.images import ImageView
from gpuconsole.services.runs import Run

_LATEST = 1e11
"""Seconds since the epoch, or since the start; later times are a fault of the file."""


_NO_ENGINE = EngineLink(
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
    events: tuple[Event, ...] = ()
    """In the order of their time."""

    @property
    def length_s(self) -> float:
        """Seconds from the first to the last event."""
        return self.events[-1].at if self.events else 0.0


def load(path: Path) -> Recording:
    """Read a recording of the console.

    Raises:
        NotFound: There is no such file.
        BadFile: It cannot be read, is no recording, or holds nothing the console could show.
    """
    header: dict[str, Any] = {}
    events: list[Event] = []
    containers: dict[str, Container] = {}
    samples = SampleReader()
    bare: list[Event] | None = []  # what is shown where memory alone was recorded
    for number, line in read_recording(path):
        try:
            sample = _sample(samples, line)
            if number == 1:
                header = line
                _number(line, "began_at", default=0.0)
            elif sample is not None:
                events.append(Event(_number(line, "t"), "sample", sample))
                if bare is not None:
                    taken_at = _number(header, "began_at", default=0.0) + sample.t
                    bare.append(Event(_number(line, "t"), "host", bare_view(sample, line, header, taken_at=taken_at)))
            elif line["type"] in _READ:
                bare = None if line["type"] == "host" else bare
                events.append(Event(_number(line, "t"), line["type"], _READ[line["type"]](line, containers)))
        except ValueError as error:
            raise malformed(path, number, str(error)) from error
    if any(event.body.gpus for event in bare or ()):
        events += [*(bare or ()), Event(0.0, "link", _NO_ENGINE)]  # the order of those of one time stays
    elif bare is not None:
        raise BadFile(
            f"{plain_line(str(path))} holds nothing the console could show: no GPU and no container is in it.",
            hint="'gpuconsole --replay' plays recordings of the console.",
        )
    events.sort(key=lambda event: event.at)
    return Recording(
        name=plain_line(path.name),
        began_at=_number(header, "began_at", default=0.0),
        host=plain_line(str(header.get("host") or "recording"), limit=24),
        user=plain_line(str(header.get("user") or ""), limit=64),
        events=tuple(events),
    )


def _sample(reader: SampleReader, line: Mapping[str, Any]) -> MemorySample | None:
    """The sample of a line, if it is one.

    Raises:
        ValueError: It is not what such a line must be.
    """
    try:
        return reader.take(line)
    except (KeyError, TypeError, ArithmeticError, AttributeError) as error:
        raise ValueError(f"it is no {plain_line(line['type'], limit=20)} ({error})") from error


def _number(line: Mapping[str, Any], key: str, *, default: float | None = None) -> float:
    value = line.get(key, default)
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < _LATEST:
        raise ValueError(f"{key} is no time")
    return float(value)


_NOBODY = {"id": "", "name": "", "image": "", "image_id": "", "state": "unknown"}
_Known = dict[str, Container]


def _list(line: Mapping[str, Any], key: str) -> list[Any]:
    items = line.get(key)
    if not isinstance(items, list):
        raise ValueError(f"{key} is no list")
    return items


def _container(line: Mapping[str, Any], known: _Known) -> Container:
    container = revive(Container, line.get("container"))
    known[container.id] = container
    return container


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


_READ: dict[str, Callable[[Mapping[str, Any], _Known], Any]] = {
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
