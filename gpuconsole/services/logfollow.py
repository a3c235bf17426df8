"""A container's output followed on a thread of its own, through its restarts and the engine's."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from gpuconsole.core.errors import ConsoleError, EngineUnavailable, NotFound, TimedOut
from gpuconsole.engine.model import Container, ContainerState
from gpuconsole.engine.protocol import Engine, Stream
from gpuconsole.services.endings import describe_ending
from gpuconsole.services.logtext import LineCleaner

TAIL = 5_000
"""Lines of the past that are asked for."""
LONGEST = 128 * 1024
"""Characters of one line that are kept."""
_WAITING_AT_MOST = 4 * 1024 * 1024
"""Characters nobody has taken yet, above which no more are read."""
_OVERLAP_S = 1e-5
_REMEMBERED = 2_048
_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 10.0
_SHORTEST_STAMP = 20
_LINE_COST = 64
"""What a line costs beside its characters."""

_Key = tuple[str, str, int]
"""A line by channel, timestamp and the hash of its text."""


class LogLine(NamedTuple):
    """One line of output, harmless."""

    channel: str
    """``stdout`` or ``stderr``; with a terminal everything is stdout."""
    stamp: str
    """When the engine got it, RFC 3339; empty when it does not say."""
    text: str


class LogState(StrEnum):
    """How the following is."""

    OPENING = "opening"
    FOLLOWING = "following"
    ENDED = "ended"
    """The container does not run; the following goes on by itself once it is woken."""
    LOST = "lost"
    """The engine went away; it is asked again until it is back."""
    REFUSED = "refused"
    """The engine keeps no output of it, or will not give it."""
    GONE = "gone"
    """The container was removed."""


@dataclass(frozen=True, slots=True)
class LogStatus:
    """How the following is, in a sentence where there is something to say."""

    state: LogState
    message: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class LogBatch:
    """What came since the last look."""

    lines: tuple[LogLine, ...]
    partial: tuple[LogLine, ...]
    """Unfinished lines as they are now, such as a progress bar; one a channel at most."""
    status: LogStatus


class LogFollower:
    """Follows the output of a container until it is closed.

    Args:
        engine: Gives the engine, connected anew where it must be; called on the follower's thread.
        container_id: The container.
        on_news: Called on the follower's thread when there is something to take, not again before it was taken; and
            whenever the following changed.
    """

    def __init__(self, engine: Callable[[], Engine], container_id: str, on_news: Callable[[], None]) -> None:
        self._engine = engine
        self._id = container_id
        self._on_news = on_news
        self._lock = threading.Condition()
        self._closed = threading.Event()
        self._woken = threading.Event()
        self._stream: Stream[tuple[str, bytes]] | None = None
        self._status = LogStatus(LogState.OPENING)
        self._told = False
        self._lines: list[LogLine] = []
        self._waiting = 0
        self._cleaners: dict[str, LineCleaner] = {}
        self._long: dict[str, tuple[str, int]] = {}
        """The kept beginning of a line that comes in pieces, and how many characters were let go."""
        self._recent: deque[_Key] = deque(maxlen=_REMEMBERED)
        self._again: set[_Key] = set()
        """Lines that come a second time after the stream was opened anew."""
        self._last_at: float | None = None

    def start(self) -> None:
        """Begin."""
        threading.Thread(target=self._run, name="log-follower", daemon=True).start()

    def wake(self) -> None:
        """Look again now: the container was started, or the engine is back."""
        self._woken.set()

    def close(self) -> None:
        """End it, from any thread, waiting for nobody."""
        self._closed.set()
        self._woken.set()
        with self._lock:
            stream = self._stream
            self._lock.notify_all()
        if stream is not None:
            stream.close()

    def waiting(self) -> tuple[int, int, LogStatus]:
        """How many lines and characters wait to be taken, and how the following is."""
        with self._lock:
            return len(self._lines), self._waiting, self._status

    def take(self) -> LogBatch:
        """What came since the last call."""
        with self._lock:
            lines, self._lines, self._waiting, self._told = tuple(self._lines), [], 0, False
            partial = tuple(
                _split(channel, self._long.get(channel, ("", 0))[0] + cleaner.partial)
                for channel, cleaner in self._cleaners.items()
                if cleaner.partial
            )
            self._lock.notify_all()
            return LogBatch(lines, partial, self._status)

    # --- the thread ---

    def _run(self) -> None:
        pause_s = _FIRST_PAUSE_S
        while not self._closed.is_set():
            self._woken.clear()
            before = self._last_at
            status, again = self._follow_once()
            if self._closed.is_set():
                return
            if status is not None:
                self._say(status)
            if status is not None and status.state is LogState.GONE:
                return
            pause_s = _FIRST_PAUSE_S if self._last_at != before else min(pause_s * 2, _LONGEST_PAUSE_S)
            self._woken.wait(pause_s if again else None)

    def _follow_once(self) -> tuple[LogStatus | None, bool]:
        """Follow until the stream ends; how it is then, and whether to look again by ourselves."""
        try:
            engine = self._engine()
            self._read(engine)
            if self._closed.is_set():
                return None, False
            container = engine.container(self._id)
        except NotFound:
            return LogStatus(LogState.GONE, "The container was removed; this is all that is left of its output."), False
        except (EngineUnavailable, TimedOut) as error:
            return LogStatus(LogState.LOST, error.message, error.hint), True
        except ConsoleError as error:
            return LogStatus(LogState.REFUSED, error.message, error.hint), False
        except Exception as error:  # noqa: BLE001 (a fault of ours must be seen, not end the thread in silence)
            return LogStatus(LogState.REFUSED, f"gpuconsole itself failed: {type(error).__name__}: {error}"), False
        finally:
            self._finish()
        if container.running or container.state is ContainerState.RESTARTING:
            return None, True
        return LogStatus(LogState.ENDED, _ended(container)), False

    def _read(self, engine: Engine) -> None:
        since = None if self._last_at is None else self._last_at - _OVERLAP_S
        # Where the stream is taken up again, what was seen last comes once more.
        self._again = set(self._recent) if since is not None else set()
        tail = TAIL if since is None else None
        stream = engine.logs(self._id, follow=True, tail=tail, since=since, timestamps=True)
        with self._lock:
            self._stream = stream
        try:
            if self._closed.is_set():
                return
            self._say(LogStatus(LogState.FOLLOWING))
            for channel, data in stream:
                self._take_in(channel, data)
        finally:
            with self._lock:
                self._stream = None
            stream.close()

    def _take_in(self, channel: str, data: bytes) -> None:
        with self._lock:
            # Who is not looked at need not read on: the engine keeps it for us.
            while self._waiting > _WAITING_AT_MOST and not self._closed.is_set():
                self._lock.wait()
            cleaner = self._cleaners.get(channel)
            if cleaner is None:
                cleaner = self._cleaners[channel] = LineCleaner(timestamps=True)
            for piece in cleaner.feed(data):
                self._add(channel, piece)
        self._tell()

    def _finish(self) -> None:
        """Take in the unfinished lines, and begin anew."""
        with self._lock:
            for channel, cleaner in self._cleaners.items():
                for piece in cleaner.finish():
                    self._add(channel, piece)
            self._cleaners, self._long = {}, {}
            if self._last_at is None and self._recent:
                self._last_at = time.time()  # an engine that gives no timestamps

    def _add(self, channel: str, piece: str) -> None:
        begun, gone = self._long.pop(channel, ("", 0))
        text = begun + piece
        if not text.endswith("\n"):
            self._long[channel] = (text[:LONGEST], gone + len(text[LONGEST:]))
            return
        line = _split(channel, text[:-1], gone=gone)
        if line.stamp:
            self._last_at = stamp_seconds(line.stamp) or self._last_at
        key = (line.channel, line.stamp, hash(line.text))
        if key in self._again:
            self._again.discard(key)
            return
        self._recent.append(key)
        self._lines.append(line)
        self._waiting += len(line.text) + _LINE_COST

    def _say(self, status: LogStatus) -> None:
        with self._lock:
            self._status, self._told = status, True
        self._on_news()

    def _tell(self) -> None:
        with self._lock:
            told, self._told = self._told, True
        if not told:
            self._on_news()


def _ended(container: Container) -> str:
    how = describe_ending(container)
    return f"{container.name} does not run{f': {how}' if how else ''}."


def _split(channel: str, text: str, *, gone: int = 0) -> LogLine:
    """Take the engine's timestamp off a line of which ``gone`` characters were let go."""
    stamp, _, rest = text.partition(" ")
    if len(stamp) < _SHORTEST_STAMP or stamp[4] != "-" or stamp[10] != "T":
        stamp, rest = "", text
    gone += len(rest[LONGEST:])
    return LogLine(channel, stamp, f"{rest[:LONGEST]}… ({gone:,} more characters)" if gone else rest)


def stamp_seconds(stamp: str) -> float | None:
    """Seconds since the epoch of the engine's timestamp of a line; None when it is none."""
    with contextlib.suppress(ValueError):
        return datetime.fromisoformat(stamp).timestamp()
    return None
