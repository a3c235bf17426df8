"""What the console shows, kept up to date: GPUs on one thread, the engine on another, figures of what is on screen."""

from __future__ import annotations

import contextlib
import threading
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from gpuconsole.core.errors import ConsoleError
from gpuconsole.services.imagenews import Around, ImageNews
from gpuconsole.services.machinelook import MachineLook
from gpuconsole.services.sampler import Sampler
from gpuconsole.services.uids import Uids

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gpuconsole.engine.model import Container, EngineEvent, EngineInfo, Usage
    from gpuconsole.engine.protocol import Engine
    from gpuconsole.host.model import HostView
    from gpuconsole.services.containers import ContainerView
    from gpuconsole.services.images import ImageView
    from gpuconsole.services.runs import Run
    from gpuconsole.services.session import Session
    from gpuconsole.services.shelf import Shelf
    from gpuconsole.services.watcher import ContainerWatcher, WatchState


_GPUS_FIRST_S = 0.3
"""The engine waits so long for the first picture with the GPUs, which is there sooner unless the driver starts up."""
_NOT_YET = "the GPUs are still being looked at"


@dataclass(frozen=True, slots=True)
class EngineLink:
    """How the connection to the engine is."""

    connected: bool
    endpoint: str = ""
    message: str = ""
    """What is wrong, in one sentence; empty when nothing is."""
    hint: str = ""
    since: float = 0.0
    """Seconds since the epoch at which it became so."""


class Listener(Protocol):
    """Hears the feed; every method is called on the feed's threads."""

    def host_looked(self, view: HostView) -> None:
        """The GPUs were looked at."""

    def containers_listed(self, views: tuple[ContainerView, ...]) -> None:
        """The containers changed, or their figures."""

    def engine_linked(self, link: EngineLink) -> None:
        """The connection to the engine changed."""

    def engine_known(self, info: EngineInfo) -> None:
        """The engine said what it is."""

    def images_listed(self, views: tuple[ImageView, ...]) -> None:
        """The images changed."""

    def images_judged(self, shelf: Shelf) -> None:
        """What stands beside the images just listed: told only once somebody asked for verdicts."""


class Feed:
    """Looks at GPUs and engine until it is closed.

    Args:
        session: Where to look.
        interval_s: Seconds between looks at the GPUs.
        runs: The runs, for what checks saw in images.
        on_containers: Called with the engine's containers whenever they changed.
    """

    def __init__(
        self,
        session: Session,
        *,
        interval_s: float,
        runs: Callable[[], Iterable[Run]] = tuple,
        on_containers: Callable[[tuple[Container, ...]], None] = lambda containers: None,
    ) -> None:
        self._session = session
        self._on_containers = on_containers
        self._listener: Listener | None = None
        self._drawn = threading.Event()
        self._seen = threading.Event()
        self._machine = MachineLook(session)
        self._uids = Uids()
        self._images = ImageNews(session, around=self._around_images, listener=lambda: self._told, runs=runs)
        self._lock = threading.Lock()
        self._telling = threading.Lock()
        """Held from reading what is known until it is told: two threads tell, and the later word is the newer one."""
        self._containers: tuple[Container, ...] = ()
        self._host: HostView | None = None
        self._usages: dict[str, Usage] = {}
        self._wanted: frozenset[str] = frozenset()
        self._connected = False
        self._local = True
        self._watcher: ContainerWatcher | None = None
        self._closed = threading.Event()
        self._sampler = Sampler(
            "gpu-sampler", self._look, interval_s=interval_s, on_result=self._looked, on_failure=self._failed
        )

    def start(self) -> None:
        """Begin to look at the GPUs, also before there is anybody to tell: a driver takes its time to start."""
        self._sampler.start()

    def tell(self, listener: Listener) -> None:
        """Tell ``listener`` what was seen and what will be, and begin to connect to the engine."""
        with self._telling:
            with self._lock:
                self._listener, host = listener, self._host
            if host is not None:
                listener.host_looked(host)
        threading.Thread(target=self._watch, name="engine-opener", daemon=True).start()

    def first_look(self, patience_s: float) -> HostView | None:
        """The GPUs as seen first, waited for no longer than ``patience_s``; None while nothing was seen."""
        self._seen.wait(patience_s)
        with self._lock:
            return self._host

    def drawn(self) -> None:
        """The first look at the GPUs was drawn."""
        self._drawn.set()

    def close(self) -> None:
        """End it; what hangs is left behind, and harms nothing."""
        self._closed.set()
        self._images.close()
        self._sampler.stop(0.2)
        watcher = self._watcher
        if watcher is not None:
            watcher.stop(0.2)

    def set_interval(self, interval_s: float) -> None:
        """Look more or less often."""
        self._sampler.set_interval(interval_s)

    def pause(self) -> None:
        """Look no more, as while another program has the terminal."""
        self._sampler.pause()

    def resume(self) -> None:
        """Look again, at once."""
        self._sampler.resume()
        self.refresh()

    def look_at(self, container_ids: frozenset[str]) -> None:
        """The containers whose CPU and memory somebody sees."""
        self._wanted = container_ids

    def refresh_images(self) -> None:
        """Ask for the images anew, soon, and tell them."""
        self._images.ask()

    def judge_images(self) -> None:
        """From now on also tell which images run here, and what could be pulled."""
        self._images.judge()

    def refresh(self) -> None:
        """Ask the engine anew, or try to connect now."""
        if self._watcher is not None:
            self._watcher.refresh()

    @property
    def engine_is_local(self) -> bool:
        """The engine's containers are this machine's, as the engine that was last connected to is."""
        return self._local

    # --- GPUs: the sampler's thread ---

    def _look(self) -> HostView:
        with self._lock:
            containers = self._containers if self._local else ()
        # What watches memory would keep the first look from being drawn.
        view, usages = self._machine.look(
            containers, wanted=self._wanted, watch=self._drawn.is_set, listed=self._connected and self._local
        )
        with self._lock:
            self._usages = {key: usage for key, usage in self._usages.items() if key in self._wanted} | usages
        return view

    def _looked(self, view: HostView) -> None:
        with self._lock:
            self._host, listener = view, self._listener
        self._seen.set()
        self._images.host_looked(view)
        with self._telling:
            # First joined, then told: what comes at the same time is drawn at the same time.
            joined = self._joined()
            if listener is not None:
                listener.host_looked(view)
                if joined is not None:
                    listener.containers_listed(joined)

    def _failed(self, error: ConsoleError) -> None:
        """What was seen last, with what is wrong now."""
        from gpuconsole.gpu.model import GpuSnapshot
        from gpuconsole.host.model import HostView

        with self._lock:
            last = self._host
        before = last.snapshot if last is not None else GpuSnapshot(taken_at=time.time())
        snapshot = replace(before, problem=error.message, hint=error.hint)
        self._looked(HostView(snapshot=snapshot, gpus=last.gpus if last is not None else ()))

    # --- the engine: the watcher's threads ---

    def _watch(self) -> None:
        # Importing what talks to the engine would keep the first look at the GPUs from being drawn.
        self._drawn.wait(_GPUS_FIRST_S)
        from gpuconsole.services.watcher import ContainerWatcher

        if self._closed.is_set():
            return
        self._watcher = ContainerWatcher(
            self._open,
            on_containers=self._listed,
            on_state=self._linked,
            on_event=self._happened,
        )
        self._watcher.start()

    def _open(self) -> Engine:
        engine = self._session.engine
        info = engine.info()
        self._local = info.local
        self._told.engine_known(info)
        return engine

    def _linked(self, state: WatchState) -> None:
        self._connected = state.connected
        if not state.connected:
            # The engine behind an address may be another after a restart.
            self._session.forget_engine()
        endpoint = ""
        with contextlib.suppress(ConsoleError):
            endpoint = self._session.endpoint.url
        error = state.error
        self._told.engine_linked(
            EngineLink(
                connected=state.connected,
                endpoint=endpoint,
                message=error.message if error else "",
                hint=error.hint if error else "",
                since=time.time(),
            )
        )
        if state.connected:
            self.refresh_images()

    def _listed(self, containers: tuple[Container, ...]) -> None:
        with self._lock:
            self._containers = containers
        self._uids.keep(one.id for one in containers)
        with self._telling:
            if (joined := self._joined()) is not None:
                self._told.containers_listed(joined)
        self._on_containers(containers)

    def _happened(self, event: EngineEvent) -> None:
        if event.kind == "image":
            self.refresh_images()

    def _around_images(self) -> Around:
        with self._lock:
            return Around(self._containers, self._host if self._local else None, self._local)

    @property
    def _told(self) -> Listener:
        """Who is told; there is one as soon as the engine is asked."""
        if self._listener is None:
            raise RuntimeError("the engine is asked only when there is somebody to tell")
        return self._listener

    def _joined(self) -> tuple[ContainerView, ...] | None:
        """The containers with what is known of them; None while the engine is away."""
        if not self._connected or self._closed.is_set():
            return None
        from gpuconsole.services.containers import Surroundings, join

        with self._lock:
            containers, host = self._containers, self._host
            usages = dict(self._usages)
        images = self._images.images
        if not self._local:
            known = Surroundings(usages=usages, images=images)
        else:
            known = Surroundings(host=host, no_host=_NOT_YET, usages=usages, images=images, uid_of=self._uids.of)
        return tuple(join(one, known) for one in containers)
