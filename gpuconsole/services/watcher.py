"""The engine's containers kept up to date: by its events, and by asking anew whenever those could have been missed."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from gpuconsole.core.errors import ConsoleError, EngineUnavailable
from gpuconsole.core.text import plain_line
from gpuconsole.engine.model import Container, EngineEvent
from gpuconsole.engine.protocol import Engine, Stream

_WITHOUT_EFFECT = frozenset(
    {"exec_create", "exec_start", "exec_die", "exec_detach", "exec", "attach", "detach", "resize", "top", "copy"}
    | {"archive-path", "extract-to-dir", "export", "commit"}
)
"""Actions that change nothing in a list of containers; health checks alone cause three of them every few seconds."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How eager the watcher is; all in seconds."""

    settle_s: float = 0.15
    """After an event, wait for so much silence before asking."""
    longest_wait_s: float = 1.0
    """Under a stream of events, ask at least this often."""
    liveness_s: float = 10.0
    """After so much silence, see whether the engine still answers: a frozen one is silent too."""
    refresh_s: float = 60.0
    """Ask at least this often: sentences like "Up 2 hours" grow old without an event."""
    first_retry_s: float = 1.0
    longest_retry_s: float = 30.0


@dataclass(frozen=True, slots=True)
class WatchState:
    """Whether the containers shown are those of now."""

    connected: bool
    error: ConsoleError | None = None
    """Why not, when not."""


_DEFAULT_PACE = Pace()
_WAKE = object()
_ENDED = object()


class ContainerWatcher:
    """Tells what containers there are, from a thread of its own, until it is stopped.

    All callbacks come from that thread. A state is told when it changes, a list whenever it was asked for.

    Args:
        open_engine: Gives the engine; called at each try to connect, and may fail.
        on_containers: Is given all containers.
        on_state: Is told whether they are those of now.
        on_event: Is given every event of the engine, images' too.
        pace: How eager to be.
    """

    def __init__(
        self,
        open_engine: Callable[[], Engine],
        *,
        on_containers: Callable[[tuple[Container, ...]], None],
        on_state: Callable[[WatchState], None],
        on_event: Callable[[EngineEvent], None] | None = None,
        pace: Pace = _DEFAULT_PACE,
    ) -> None:
        self._open_engine = open_engine
        self._on_containers = on_containers
        self._on_state = on_state
        self._on_event = on_event
        self._pace = pace
        self._state: WatchState | None = None
        self._stopping = threading.Event()
        self._inbox: queue.SimpleQueue[object] = queue.SimpleQueue()
        self._stream: Stream[EngineEvent] | None = None
        self._thread = threading.Thread(target=self._run, name="container-watcher", daemon=True)

    def start(self) -> None:
        """Begin, once."""
        self._thread.start()

    def refresh(self) -> None:
        """Ask for the containers now, or try to connect now."""
        self._inbox.put(_WAKE)

    def stop(self, timeout_s: float = 1.0) -> bool:
        """End it and wait for its end; False when it still hangs on the engine, which harms nothing."""
        self._stopping.set()
        self._inbox.put(_WAKE)
        stream = self._stream
        if stream is not None:
            stream.close()
        if self._thread.is_alive():
            self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        retry_s = self._pace.first_retry_s
        while not self._stopping.is_set():
            try:
                self._watch(self._open_engine())
            except ConsoleError as error:
                failure = error
            except Exception as error:  # noqa: BLE001 (the thread must not end in silence)
                failure = ConsoleError(
                    f"Watching the containers failed inside gpuconsole ({type(error).__name__}: "
                    f"{plain_line(str(error))}).",
                    hint="It is tried again; report it if it stays.",
                )
            else:
                return
            if self._state is not None and self._state.connected:
                retry_s = self._pace.first_retry_s
            self._tell(WatchState(connected=False, error=failure))
            self._pause(retry_s)
            retry_s = min(2 * retry_s, self._pace.longest_retry_s)

    def _pause(self, seconds: float) -> None:
        """Wait, unless woken; what the lost connection had still to say does not wake."""
        until = time.monotonic() + seconds
        try:
            while self._inbox.get(timeout=max(0.0, until - time.monotonic())) is not _WAKE:
                pass
        except queue.Empty:
            return

    def _tell(self, state: WatchState) -> None:
        before, self._state = self._state, state
        if self._stopping.is_set():
            return
        if before is None or _sentence(before) != _sentence(state):
            self._on_state(state)

    def _watch(self, engine: Engine) -> None:
        """Follow one connection to its end. Returns when stopped, raises when the engine is lost."""
        # Events first, the list then: what happens between the two is in both rather than in none.
        stream = self._stream = engine.events()
        inbox = self._inbox = queue.SimpleQueue()
        try:
            threading.Thread(target=_read, args=(stream, inbox), name="container-events", daemon=True).start()
            listed_at = self._list(engine)
            while not self._stopping.is_set():
                if self._heard(inbox) or time.monotonic() - listed_at >= self._pace.refresh_s:
                    listed_at = self._list(engine)
                else:
                    engine.ping()
        finally:
            self._stream = None
            stream.close()

    def _list(self, engine: Engine) -> float:
        containers = engine.containers()
        if not self._stopping.is_set():
            self._tell(WatchState(connected=True))
            self._on_containers(containers)
        return time.monotonic()

    def _heard(self, inbox: queue.SimpleQueue[object]) -> bool:
        """Wait for something that asks for a new list, then for it to settle; False after silence."""
        until = time.monotonic() + self._pace.liveness_s
        try:
            while not self._matters(inbox.get(timeout=max(0.0, until - time.monotonic()))):
                pass
        except queue.Empty:
            return False
        until = time.monotonic() + self._pace.longest_wait_s
        while (left_s := until - time.monotonic()) > 0 and not self._stopping.is_set():
            try:
                self._matters(inbox.get(timeout=min(left_s, self._pace.settle_s)))
            except queue.Empty:
                break
        return True

    def _matters(self, item: object) -> bool:
        """Pass an event on, and say whether it changes the list of containers.

        Raises:
            ConsoleError: The stream of events ended.
        """
        if item is _ENDED:
            if self._stopping.is_set():
                return True
            raise EngineUnavailable(
                "The engine ended its stream of events.", hint="It was probably stopped; it is tried again."
            )
        if isinstance(item, ConsoleError):
            raise item
        if isinstance(item, EngineEvent):
            if self._on_event is not None and not self._stopping.is_set():
                self._on_event(item)
            return item.kind == "container" and item.action not in _WITHOUT_EFFECT
        return True


def _sentence(state: WatchState) -> str | None:
    """What tells two states apart."""
    return state.error.message if state.error is not None else None


def _read(stream: Stream[EngineEvent], inbox: queue.SimpleQueue[object]) -> None:
    try:
        for event in stream:
            inbox.put(event)
    except ConsoleError as error:
        inbox.put(error)
    else:
        inbox.put(_ENDED)
