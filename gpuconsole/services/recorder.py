"""Recording what the console would show: the live services listened to, and all of it written down."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from gpuconsole import __version__
from gpuconsole.core.errors import ConsoleError
from gpuconsole.host.recording import RecordingWriter, sample
from gpuconsole.services.anonymous import HOST, ME, Masked, StandIns
from gpuconsole.services.logfollow import LogFollower

if TYPE_CHECKING:
    from pathlib import Path

    from gpuconsole.engine.model import EngineInfo
    from gpuconsole.gpu.model import GpuSnapshot
    from gpuconsole.host.model import HostView
    from gpuconsole.services.containers import ContainerView
    from gpuconsole.services.desk import Desk
    from gpuconsole.services.feed import EngineLink
    from gpuconsole.services.images import ImageView
    from gpuconsole.services.runs import Run
    from gpuconsole.services.shelf import Shelf

_LINES_AT_MOST = 20_000
"""Lines of a container's output that are recorded."""
_PAST_LINES = 200
"""Of them, those that were written before the recording began."""


class Recorder:
    """Hears a desk and writes what it hears, without names of the machine and its people unless they are wanted.

    Args:
        desk: The live services; not started yet.
        path: The file; a name that ends in ``.gz`` is compressed.
        interval_s: Seconds between looks at the GPUs.
        names: Keep the names; secrets are masked all the same.
    """

    def __init__(self, desk: Desk, path: Path, *, interval_s: float, names: bool = False) -> None:
        self._desk = desk
        self._interval_s = interval_s
        self._names = Masked() if names else StandIns()
        self._whose = (desk.host_name, desk.me) if names else (HOST, ME)
        self._writer = RecordingWriter(path, clean=self._clean)
        self._cleaning = threading.Lock()
        self._lock = threading.RLock()
        self._began_at: float | None = None
        self._ahead_s: float | None = None
        """Seconds from the start to where the clock of samples begins."""
        self._waiting: list[tuple[str, dict[str, object], str | None]] = []
        """News from before the header, which needs the first look at the GPUs."""
        self._followers: dict[str, LogFollower] = {}
        self._lines: dict[str, int] = {}
        self.seen: tuple[ContainerView, ...] = ()
        """The containers as last listed."""
        self.failure: ConsoleError | None = None
        """Why it could not go on."""

    def start(self) -> None:
        """Begin; nothing is drawn, so memory is watched from the first look on."""
        self._desk.look_ahead(self._interval_s).drawn()
        self._desk.start(self, self._interval_s)

    def lines_of(self, container_id: str) -> int:
        """How many lines of a container's output were recorded."""
        return self._lines.get(container_id, 0)

    def close(self) -> None:
        """End the recording, and the desk."""
        for follower in list(self._followers.values()):
            follower.close()
        self._desk.close()
        self._writer.close()

    def _clean(self, data: object) -> object:
        with self._cleaning:
            return self._names.clean(data)

    # --- what is heard, on the services' threads ---

    def host_looked(self, view: HostView) -> None:
        """The GPUs were looked at."""
        with self._lock:
            if self._began_at is None:
                self._began_at = view.snapshot.taken_at
                self._begin(view.snapshot)
        t = view.snapshot.taken_at - self._began_at
        if view.memory is not None:  # its clock is never set
            self._ahead_s = t - view.memory.t if self._ahead_s is None else self._ahead_s
            t = view.memory.t + self._ahead_s
        self._write("sample", sample(view.snapshot, view.memory), t=t)
        self._write("host", {"view": view}, t=t)
        for kind, body, of in self._take_waiting():
            self._news(kind, body, of=of)

    def _begin(self, snapshot: GpuSnapshot) -> None:
        host, user = self._whose
        try:
            self._writer.header(
                snapshot, began_at=snapshot.taken_at, interval_s=self._interval_s, host=host, user=user,
                gpuconsole=__version__,
            )  # fmt: skip
        except ConsoleError as error:
            self.failure = error

    def containers_listed(self, views: tuple[ContainerView, ...]) -> None:
        """The containers changed, or their figures."""
        from gpuconsole.core.document import jsonable

        self.seen = views
        self._desk.look_at(frozenset(view.container.id for view in views if view.container.running))
        figures = []
        for view in views:
            whole = jsonable(view)
            container = whole.pop("container")
            self._news("container", {"container": container}, of=view.container.id)
            figures.append({"id": view.container.id} | whole)
            if view.container.running:
                self._follow(view.container.id)
        self._news("containers", {"views": figures})

    def engine_linked(self, link: EngineLink) -> None:
        """The connection to the engine changed."""
        self._news("link", {"link": link})

    def engine_known(self, info: EngineInfo) -> None:
        """The engine said what it is."""
        from gpuconsole.host.cdi import DEFAULT_DIRS

        self._news("engine", {"info": info})
        self._news("facts", {"facts": self._desk.session.launch_facts(info.cdi_spec_dirs or DEFAULT_DIRS)})

    def images_judged(self, shelf: Shelf) -> None:
        """Not recorded: a verdict is of whoever looks at the recording."""

    def images_listed(self, views: tuple[ImageView, ...]) -> None:
        """The images changed."""
        self._news("images", {"views": views})

    def runs_changed(self, runs: tuple[Run, ...]) -> None:
        """A run changed; those of earlier days are no part of the recording."""
        self._news("runs", {"runs": [run for run in runs if run.started_at >= (self._began_at or time.time())]})

    # --- output ---

    def _follow(self, container_id: str) -> None:
        with self._lock:
            if container_id in self._followers:
                return
            follower = LogFollower(
                lambda: self._desk.session.engine, container_id, lambda: self._take_output(container_id)
            )
            self._followers[container_id] = follower
        follower.start()

    def _take_output(self, container_id: str) -> None:
        count = self._lines.get(container_id, 0)
        lines = self._followers[container_id].take().lines
        if count == 0:
            lines = lines[-_PAST_LINES:]
        lines = lines[: max(0, _LINES_AT_MOST - count)]
        for line in lines:
            self._news(
                "log",
                {"id": container_id, "channel": line.channel, "stamp": line.stamp, "text": line.text},
                of=None,
            )
        self._lines[container_id] = count + len(lines)

    # --- writing ---

    def _take_waiting(self) -> list[tuple[str, dict[str, object], str | None]]:
        with self._lock:
            waiting, self._waiting = self._waiting, []
        return waiting

    def _news(self, kind: str, body: dict[str, object], *, of: str | None = "") -> None:
        """Write what is new of a thing; with None for ``of``, every time."""
        with self._lock:
            if self._began_at is None:
                self._waiting.append((kind, body, of))
                return
            t = time.time() - self._began_at
        try:
            if of is None:
                self._writer.line(kind, max(0.0, t), body)
            else:
                self._writer.news(kind, max(0.0, t), body, of=of)
        except ConsoleError as error:
            self.failure = error

    def _write(self, kind: str, body: dict[str, object], *, t: float) -> None:
        try:
            self._writer.line(kind, t, body)
        except ConsoleError as error:
            self.failure = error
